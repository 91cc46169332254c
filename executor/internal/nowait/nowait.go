//go:build linux

// Package nowait makes system calls that never wait, without telling Go's
// scheduler. If it knew, it would wake up its monitor, a thread that looks after
// calls that take long. That costs more than these calls, which a cell makes for
// each process of a container.
package nowait

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read reads from a pipe or socket that does not block, and that no process of a tenant
// has. A tenant could keep a pipe locked, and all of the daemon would wait; see stdio.Guard.
func Read(fd int, p []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// Close closes a pipe or a file in memory.
func Close(fd int) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }
