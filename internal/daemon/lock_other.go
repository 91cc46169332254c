//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package daemon

import (
	"errors"
	"os"
)

// lockFile is always refused: nothing says here whether another process has it.
func lockFile(*os.File) (taken bool, err error) { return false, errors.ErrUnsupported }

// lockPlace is not known.
func lockPlace(*os.File) string { return "" }
