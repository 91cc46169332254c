//go:build !race

package testenv

// Race reports whether the race detector watches this program: it does not.
const Race = false
