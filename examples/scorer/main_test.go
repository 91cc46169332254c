package main

func Example() {
	main()
	// Output:
	// as usual
	//   web/0 on a-1, memory 25%, instead of b-1
	//   web/1 on b-1, memory 25%, instead of b-2
	//   web/2 on b-2, memory 25%, instead of a-1
	//   web/3 on a-1, memory 50%, instead of b-1
	//   web/4 on b-1, memory 50%, instead of b-2
	// cheap first
	//   web/0 on b-1, memory 25%, instead of b-2
	//   web/1 on b-1, memory 50%, instead of b-2
	//   web/2 on b-1, memory 75%, instead of b-2
	//   web/3 on b-2, memory 25%, instead of a-1
	//   web/4 on b-2, memory 50%, instead of a-1
}
