// Package memcell is a cell in memory: a small model for examples, tests and
// simulations, as package memstore is a small store.
//
// A [Cell] decides by the tables of package rep, reports to a BBS and answers a
// control plane as every cell does. Its containers run nothing: they start, end
// and fail when the caller or the clock says so. Nothing happens by itself. [Cell.Step]
// does what is due now, [Cell.Poll] compares every container with its record, and a
// [Clock] stands still until it is moved, so a program can drive a whole fleet in
// one goroutine:
//
//	clock := memcell.NewClock()
//	cells := memcell.NewFleet(3, clock)
//
// The example of package diego is such a program.
//
// # Concurrent use
//
// The methods of a [Cell] may be called concurrently, if its clock may. A
// [Clock] and a [Fleet] are for one goroutine.
package memcell
