// Package stage marks where making or removing a container may be cut short. A
// test kills or disturbs the daemon there.
package stage

// Reached is called between the parts of Create and of Delete. It does nothing
// unless a test has set it.
var Reached = func() {}
