package testenv

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Bubble is [synctest.Test] on one processor. With the race detector, Go crashes
// where two threads run timers of one bubble at the same time (golang/go#78156).
// A test that calls it must not be parallel to others.
func Bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, test)
}
