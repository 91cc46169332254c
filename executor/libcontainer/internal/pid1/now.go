//go:build linux && cgo && (amd64 || arm64)

package pid1

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls never wait, so Go's scheduler need not know about them. If it did, it
// would wake up its monitor, a thread that looks after calls that take long, and
// that costs more than the calls.

// readNow reads from a descriptor that does not block.
func readNow(fd int, p []byte) (int, error) {
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

// closeNow closes a pipe or a file in memory.
func closeNow(fd int) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// reportedNow are those of the watched descriptors of which there is news.
func reportedNow(epoll int, events []unix.EpollEvent) []unix.EpollEvent {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return nil
	}
	return events[:n]
}
