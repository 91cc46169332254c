//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package daemon

import (
	"errors"
	"os"
)

// lockFile always fails: this system does not tell whether another process has
// the file.
func lockFile(*os.File) (taken bool, err error) { return false, errors.ErrUnsupported }

// gone is not known.
func gone(int) bool { return false }

// lockPlace is not known.
func lockPlace(*os.File) string { return "" }
