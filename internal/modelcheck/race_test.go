//go:build race

package modelcheck

// The race detector makes a walk ten times as long, and a walk has one goroutine:
// under it, the tests see the beginning of each world. scripts/test walks through
// all of it without.
const mostStates = 1000
