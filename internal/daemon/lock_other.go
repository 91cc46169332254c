//go:build !unix

package main

import (
	"errors"
	"os"
)

// lockFile is always refused: no backend runs on this system either.
func lockFile(*os.File) (taken bool, err error) { return false, errors.ErrUnsupported }
