package main

func Example() {
	main()
	// Output:
	// blog: <nil>
	// wiki: the card was declined
	// paid orders: 1, instances: 2
	// cancelled: <nil>
	// paid orders: 0, instances: 0
}
