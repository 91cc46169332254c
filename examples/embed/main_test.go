package main

func Example() {
	main()
	// Output:
	// 3 instances run
	// 5 instances run
	// 2 instances run
	// definition v2 runs everywhere
	// task sum: failed: false, result: "42\n"
	// drained: true
}
