package main

func Example() {
	main()
	// Output:
	// blog: <nil>
	// wiki: the card was declined
	// blog: blog: exists already
	// orders: 1
	// desired: blog
	// event: 1 lrp_deployment_created
	// event: 2 desired_lrp_created
}
