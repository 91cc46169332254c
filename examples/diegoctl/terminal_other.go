//go:build !linux

package main

import "os"

// terminalOf reports whether a file is a terminal. Its width is not known.
func terminalOf(f *os.File) (width int, ok bool) {
	info, err := f.Stat()
	return 0, err == nil && info.Mode()&os.ModeCharDevice != 0
}
