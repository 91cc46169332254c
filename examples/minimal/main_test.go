package main

func Example() {
	main()
	// Output:
	// three instances are desired:
	//   web/0: no instance at a desired index
	//   web/1: no instance at a desired index
	//   web/2: no instance at a desired index
	//   web/0 is RUNNING on cell-b, crashes: 0
	//   web/1 is RUNNING on cell-a, crashes: 0
	//   web/2 is RUNNING on cell-b, crashes: 0
	// one has crashed:
	//   web/0 is RUNNING on cell-b, crashes: 0
	//   web/1 is RUNNING on cell-a, crashes: 1
	//   web/2 is RUNNING on cell-b, crashes: 0
	// cell-a is lost:
	//   web/1: the cell is missing
	//   web/0 is RUNNING on cell-b, crashes: 0
	//   web/1 is RUNNING on cell-b, crashes: 1
	//   web/2 is RUNNING on cell-b, crashes: 0
	// one instance is enough:
	//   web/1: an instance that is not desired
	//   web/2: an instance that is not desired
	//   web/0 is RUNNING on cell-b, crashes: 0
}
