//go:build linux && cgo

package libcontainer

import "golang.org/x/sys/unix"

// refusedHere exist on this architecture only.
var refusedHere = []uintptr{
	unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_MODIFY_LDT, unix.SYS_QUERY_MODULE,
	unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS__SYSCTL,
}
