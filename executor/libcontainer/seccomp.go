//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// refusedCalls are the system calls that no container needs and that lead to
// the host's kernel: without a capability most of them fail anyway, and the
// filter keeps containers from the code that would find that out. They are
// EPERM; what libraries try first and do without is ENOSYS.
var refusedCalls = slices.Concat([]uintptr{
	unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_ADJTIMEX, unix.SYS_BPF, unix.SYS_CLOCK_ADJTIME, unix.SYS_CLOCK_SETTIME,
	unix.SYS_DELETE_MODULE, unix.SYS_FANOTIFY_INIT, unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSPICK, unix.SYS_GET_MEMPOLICY, unix.SYS_INIT_MODULE, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_IO_URING_SETUP, unix.SYS_KCMP, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL,
	unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT,
	unix.SYS_MOVE_PAGES, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_NFSSERVCTL, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_OPEN_TREE,
	unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIVOT_ROOT, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_QUOTACTL,
	unix.SYS_QUOTACTL_FD, unix.SYS_REBOOT, unix.SYS_REQUEST_KEY, unix.SYS_SET_MEMPOLICY, unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME,
	unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY, unix.SYS_SWAPOFF, unix.SYS_SWAPON, unix.SYS_SYSLOG, unix.SYS_UMOUNT2, unix.SYS_UNSHARE,
	unix.SYS_USERFAULTFD, unix.SYS_VHANGUP,
}, refusedHere)

// The layout of struct seccomp_data and what a filter answers.
const (
	dataNumber = 0
	dataArch   = 4
	dataFlags  = 16 // the low half of the first argument, on little-endian machines

	answerAllow = 0x7fff0000
	answerErrno = 0x00050000
	answerKill  = 0x80000000

	namespaceFlags = unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWNS |
		unix.CLONE_NEWPID | unix.CLONE_NEWUSER | unix.CLONE_NEWUTS
)

// seccompFilter is the program, in the machine's own form, that every process
// of an unprivileged container runs under, and that it cannot take off. A call
// of another architecture kills: its numbers mean something else.
var seccompFilter = sync.OnceValue(func() []byte {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	const skipNext = 1
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	answer := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
	}
	unless := func(test uint16, value uint32) unix.SockFilter { // skips the next if the test fails
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jf: skipNext}
	}
	program := []unix.SockFilter{
		load(dataArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: skipNext},
		answer(answerKill),
		load(dataNumber),
		unless(unix.BPF_JEQ, unix.SYS_CLONE3), // whose flags cannot be seen; libraries use clone then
		answer(answerErrno | uint32(unix.ENOSYS)),
	}
	if runtime.GOARCH == "amd64" { // the numbers of x32
		program = append(program, unless(unix.BPF_JGE, 0x40000000), answer(answerErrno|uint32(unix.ENOSYS)))
	}
	for _, call := range refusedCalls {
		program = append(program, unless(unix.BPF_JEQ, uint32(call)), answer(answerErrno|uint32(unix.EPERM)))
	}
	const toEnd = 3
	program = append(program,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jf: toEnd},
		load(dataFlags),
		unless(unix.BPF_JSET, namespaceFlags),
		answer(answerErrno|uint32(unix.EPERM)),
		answer(answerAllow))
	var text []byte
	for _, i := range program {
		text = binary.NativeEndian.AppendUint16(text, i.Code)
		text = append(text, i.Jt, i.Jf)
		text = binary.NativeEndian.AppendUint32(text, i.K)
	}
	return text
})
