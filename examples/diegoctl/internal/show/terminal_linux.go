package show

import (
	"os"
	"syscall"
	"unsafe"
)

// Terminal reports whether a file is a terminal, and its width in characters,
// 0 if that is not known.
func Terminal(f *os.File) (width int, ok bool) {
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	return int(size.columns), errno == 0
}
