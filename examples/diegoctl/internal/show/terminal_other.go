//go:build !linux

package show

import "os"

// Terminal reports whether a file is a terminal. Its width is not known.
func Terminal(f *os.File) (width int, ok bool) {
	info, err := f.Stat()
	return 0, err == nil && info.Mode()&os.ModeCharDevice != 0
}
