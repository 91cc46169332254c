//go:build linux && cgo

package libcontainer

// refusedHere exist on this architecture only.
var refusedHere []uintptr
