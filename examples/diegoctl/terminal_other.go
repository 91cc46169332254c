//go:build !unix

package main

import "os"

// windowChanges are not told.
func windowChanges() (<-chan os.Signal, func()) { return nil, func() {} }
