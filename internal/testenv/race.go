//go:build race

package testenv

// Race reports whether the race detector watches this program. It makes a walk
// through many states ten times as long, and finds nothing in one goroutine. So
// under it, such a test may go only a part of the way if it is in a package of
// lint.Pure or lint.WithoutRace: scripts/test runs these without it as well.
const Race = true
