//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// asked makes the test's own binary ask for system calls in a container. Each
// line of its value is a name, a number and arguments; it answers each with
// its name and an errno.
const asked = "DIEGO_TEST_ASKED"

// ask ends the process.
func ask() {
	for line := range strings.Lines(os.Getenv(asked)) {
		fields := strings.Fields(line)
		var numbers [7]uintptr
		for i, f := range fields[1:] {
			n, _ := strconv.ParseInt(f, 0, 64)
			numbers[i] = uintptr(n)
		}
		r, _, e := unix.RawSyscall6(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6])
		if r == 0 && strings.HasPrefix(fields[0], "clone") {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		fmt.Printf("%s=%d\n", fields[0], e)
	}
	os.Exit(0)
}

func TestACallFromAContainerIsAnsweredByTheFilter(t *testing.T) {
	const bad = -1 // no address, no descriptor, no command
	child := int(unix.SIGCHLD)
	tests := []struct {
		name string
		call []int
		want unix.Errno
	}{
		{"clone", []int{unix.SYS_CLONE, child}, 0},
		{"clone-newuser", []int{unix.SYS_CLONE, unix.CLONE_NEWUSER | child}, unix.EPERM},
		{"clone-newns", []int{unix.SYS_CLONE, unix.CLONE_NEWNS | child}, unix.EPERM},
		{"clone-newpid", []int{unix.SYS_CLONE, unix.CLONE_NEWPID | child}, unix.EPERM},
		{"clone-newnet", []int{unix.SYS_CLONE, unix.CLONE_NEWNET | child}, unix.EPERM},
		{"clone3", []int{unix.SYS_CLONE3, 0, 0}, unix.ENOSYS},
		{"unshare-newuser", []int{unix.SYS_UNSHARE, unix.CLONE_NEWUSER}, unix.EPERM},
		{"unshare-files", []int{unix.SYS_UNSHARE, unix.CLONE_FILES}, unix.EPERM},
		{"setns", []int{unix.SYS_SETNS, bad, 0}, unix.EPERM},
		{"later", []int{600}, unix.ENOSYS},
		{"x32-getpid", []int{1<<30 | unix.SYS_GETPID}, unix.ENOSYS},
		{"x32-mount", []int{1<<30 | unix.SYS_MOUNT}, unix.ENOSYS},
		{"getpid", []int{unix.SYS_GETPID}, 0},
		{"setrlimit-mark", []int{unix.SYS_SETRLIMIT, unix.RLIMIT_LOCKS, bad}, unix.EPERM},
		{"setrlimit-other", []int{unix.SYS_SETRLIMIT, unix.RLIMIT_NOFILE, bad}, unix.EFAULT},
		{"prlimit-mark", []int{unix.SYS_PRLIMIT64, 0, unix.RLIMIT_LOCKS, bad, 0}, unix.EPERM},
		{"prlimit-mark-of-first", []int{unix.SYS_PRLIMIT64, 1, unix.RLIMIT_LOCKS, bad, 0}, unix.EPERM},
		{"prlimit-mark-read", []int{unix.SYS_PRLIMIT64, 0, unix.RLIMIT_LOCKS, 0, 0}, 0},
		{"setrlimit-core", []int{unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, bad}, 0},
		{"prlimit-core", []int{unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, bad, 0}, 0},
		{"prlimit-core-read", []int{unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0, bad}, unix.EFAULT},
		{"prlimit-other", []int{unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, bad, 0}, unix.EFAULT},
		{"ptrace-first", []int{unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1}, unix.EPERM},
		{"ptrace-seize-first", []int{unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1}, unix.EPERM},
		{"keyctl", []int{unix.SYS_KEYCTL, 0, -3, 0}, unix.EPERM},
		{"add-key", []int{unix.SYS_ADD_KEY, bad, bad, bad, 1, -3}, unix.EPERM},
		{"request-key", []int{unix.SYS_REQUEST_KEY, bad, bad}, unix.EPERM},
		{"bpf", []int{unix.SYS_BPF, 0, bad, 0}, unix.EPERM},
		{"perf", []int{unix.SYS_PERF_EVENT_OPEN, bad, 0, bad, bad}, unix.EPERM},
		{"userfaultfd", []int{unix.SYS_USERFAULTFD, 1}, unix.EPERM},
		{"io-uring-setup", []int{unix.SYS_IO_URING_SETUP, 1, bad}, unix.EPERM},
		{"io-uring-enter", []int{unix.SYS_IO_URING_ENTER, bad}, unix.EPERM},
		{"io-uring-register", []int{unix.SYS_IO_URING_REGISTER, bad}, unix.EPERM},
		{"mount", []int{unix.SYS_MOUNT, bad, bad, bad}, unix.EPERM},
		{"umount", []int{unix.SYS_UMOUNT2, bad}, unix.EPERM},
		{"pivot-root", []int{unix.SYS_PIVOT_ROOT, bad, bad}, unix.EPERM},
		{"chroot", []int{unix.SYS_CHROOT, bad}, unix.EPERM},
		{"open-tree", []int{unix.SYS_OPEN_TREE, bad, bad}, unix.EPERM},
		{"move-mount", []int{unix.SYS_MOVE_MOUNT, bad, bad}, unix.EPERM},
		{"mount-setattr", []int{unix.SYS_MOUNT_SETATTR, bad, bad}, unix.EPERM},
		{"fsopen", []int{unix.SYS_FSOPEN, bad}, unix.EPERM},
		{"fsmount", []int{unix.SYS_FSMOUNT, bad}, unix.EPERM},
		{"fsconfig", []int{unix.SYS_FSCONFIG, bad}, unix.EPERM},
		{"fspick", []int{unix.SYS_FSPICK, bad, bad}, unix.EPERM},
		{"open-by-handle", []int{unix.SYS_OPEN_BY_HANDLE_AT, bad, bad}, unix.EPERM},
		{"process-vm-readv", []int{unix.SYS_PROCESS_VM_READV, 1}, unix.EPERM},
		{"pidfd-getfd", []int{unix.SYS_PIDFD_GETFD, bad}, unix.EPERM},
		{"kcmp", []int{unix.SYS_KCMP, 1, 1}, unix.EPERM},
		{"get-mempolicy", []int{unix.SYS_GET_MEMPOLICY}, unix.EPERM},
		{"syslog", []int{unix.SYS_SYSLOG, 10}, unix.EPERM},
		{"kexec", []int{unix.SYS_KEXEC_LOAD, 0, 0, 0, bad}, unix.EPERM},
		{"reboot", []int{unix.SYS_REBOOT, 0, 0, 0}, unix.EPERM},
		{"settimeofday", []int{unix.SYS_SETTIMEOFDAY, bad, 0}, unix.EPERM},
		{"init-module", []int{unix.SYS_INIT_MODULE, bad}, unix.EPERM},
		{"socket-unix", []int{unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM}, 0},
		{"socket-inet", []int{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM}, 0},
		{"socket-netlink", []int{unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW}, 0},
		{"socket-netlink-diag", []int{unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG}, 0},
		{"socket-netlink-uevent", []int{unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, unix.EPROTONOSUPPORT},
		{"socket-netlink-generic", []int{unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC}, unix.EPROTONOSUPPORT},
		{"socket-netlink-audit", []int{unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, unix.EPROTONOSUPPORT},
		{"socket-netlink-netfilter", []int{unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, unix.EPROTONOSUPPORT},
		{"io-setup", []int{unix.SYS_IO_SETUP, 1, bad}, unix.ENOSYS},
		{"socket-raw", []int{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, unix.EPERM},
		{"socket-udp", []int{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP}, 0},
		{"socket-mptcp", []int{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, unix.EPROTONOSUPPORT},
		{"socket-mptcp-of-ipv6", []int{unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, unix.EPROTONOSUPPORT},
		{"socket-sctp", []int{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP}, unix.EPROTONOSUPPORT},
		{"socket-sctp-by-type", []int{unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_SEQPACKET}, unix.ESOCKTNOSUPPORT},
		{"socket-unix-packets", []int{unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_SEQPACKET}, 0},
		{"socket-packet", []int{unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW}, unix.EAFNOSUPPORT},
		{"socket-vsock", []int{unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
		{"socket-alg", []int{unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET}, unix.EAFNOSUPPORT},
		{"socket-filter", []int{unix.SYS_SETSOCKOPT, bad, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}, unix.EPERM},
		{"socket-program-of-a-group", []int{unix.SYS_SETSOCKOPT, bad, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF}, unix.EPERM},
		{"socket-option", []int{unix.SYS_SETSOCKOPT, bad, unix.SOL_SOCKET, unix.SO_REUSEADDR}, unix.EBADF},
		{"socket-key", []int{unix.SYS_SETSOCKOPT, bad, unix.IPPROTO_TCP, unix.TCP_MD5SIG}, unix.ENOPROTOOPT},
		{"socket-key-of-network", []int{unix.SYS_SETSOCKOPT, bad, unix.IPPROTO_TCP, unix.TCP_MD5SIG_EXT}, unix.ENOPROTOOPT},
		{"socket-option-of-tcp", []int{unix.SYS_SETSOCKOPT, bad, unix.IPPROTO_TCP, unix.TCP_NODELAY}, unix.EBADF},
		{"socket-group-of-ipv6", []int{unix.SYS_SETSOCKOPT, bad, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP}, unix.ENODEV},
		{"socket-group-of-any", []int{unix.SYS_SETSOCKOPT, bad, unix.IPPROTO_IPV6, unix.MCAST_JOIN_GROUP}, unix.ENODEV},
		{"socket-group-of-ipv4", []int{unix.SYS_SETSOCKOPT, bad, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP}, unix.EBADF},
		{"mmap-huge", []int{unix.SYS_MMAP, 0, 1 << 21, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_HUGETLB, bad, 0}, unix.ENOMEM},
		{"mmap-other", []int{unix.SYS_MMAP, 0, 1 << 21, unix.PROT_READ, unix.MAP_PRIVATE | unix.MAP_ANON, bad, 0}, 0},
		{"memfd-huge", []int{unix.SYS_MEMFD_CREATE, bad, unix.MFD_HUGETLB}, unix.ENOMEM},
		{"memfd-other", []int{unix.SYS_MEMFD_CREATE, bad, 0}, unix.EFAULT},
		{"shmget-huge", []int{unix.SYS_SHMGET, 0, 1 << 21, 0o5600}, unix.ENOMEM},
		{"shmget-other", []int{unix.SYS_SHMGET, 0, 4096, 0o1600}, 0},
		{"memfd-secret", []int{unix.SYS_MEMFD_SECRET, 0}, unix.ENOSYS},
		{"ppoll-many", []int{unix.SYS_PPOLL, bad, 4097, 0, 0}, unix.EINVAL},
		{"ppoll-few", []int{unix.SYS_PPOLL, bad, 1024, 0, 0}, unix.EFAULT},
		{"pselect-many", []int{unix.SYS_PSELECT6, 4097, bad, 0, 0, 0, 0}, unix.EINVAL},
		{"pselect-few", []int{unix.SYS_PSELECT6, 4096, bad, 0, 0, 0, 0}, unix.EFAULT},
		{"setxattr-large", []int{unix.SYS_SETXATTR, bad, bad, bad, 1025, 0}, unix.E2BIG},
		{"lsetxattr-large", []int{unix.SYS_LSETXATTR, bad, bad, bad, 1025, 0}, unix.E2BIG},
		{"fsetxattr-large", []int{unix.SYS_FSETXATTR, bad, bad, bad, 1025, 0}, unix.E2BIG},
		{"fsetxattr-small", []int{unix.SYS_FSETXATTR, 0, bad, bad, 1024, 0}, unix.EFAULT},
		{"setxattrat", []int{463, bad, bad, 0, bad, bad, 16}, unix.ENOSYS},
		{"line-discipline", []int{unix.SYS_IOCTL, bad, 0x5423}, unix.EPERM},
		{"ethtool", []int{unix.SYS_IOCTL, bad, unix.SIOCETHTOOL}, unix.EOPNOTSUPP},
		{"bridges", []int{unix.SYS_IOCTL, bad, 0x8940}, unix.EOPNOTSUPP},
		{"vlans", []int{unix.SYS_IOCTL, bad, 0x8982}, unix.EOPNOTSUPP},
		{"list-of-addresses", []int{unix.SYS_IOCTL, bad, unix.SIOCGIFCONF}, unix.EBADF},
		{"device-request", []int{unix.SYS_IOCTL, bad, unix.TCGETS}, unix.EBADF},
		{"seccomp-filter", []int{unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, bad}, unix.EINVAL},
		{"prctl-filter", []int{unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, bad}, unix.EINVAL},
		{"prctl-other", []int{unix.SYS_PRCTL, unix.PR_GET_DUMPABLE}, 0},
		{"socketpair-tipc", []int{unix.SYS_SOCKETPAIR, unix.AF_TIPC, unix.SOCK_SEQPACKET, 0, bad}, unix.EAFNOSUPPORT},
	}
	var request, want strings.Builder
	for _, test := range tests {
		fmt.Fprintf(&request, "%s %s\n", test.name, strings.Trim(fmt.Sprint(test.call), "[]"))
		fmt.Fprintf(&want, "%s=%d\n", test.name, test.want)
	}
	f := newFixture(t)
	guid, _ := f.create(withOwnBinary(t))
	for _, user := range []string{"root", "nobody"} {
		r := f.as(user, guid, "", func(s *executor.ProcessSpec) {
			s.Path, s.Args, s.Env = ownBinary, nil, []executor.EnvVar{{Name: asked, Value: request.String()}}
		})
		if e := r.end(); !e.Success() {
			t.Fatalf("as %s it ended with %v: %s", user, e, r.stderr)
		}
		got, wanted := strings.Split(r.stdout.String(), "\n"), strings.Split(want.String(), "\n")
		if len(got) != len(wanted) {
			t.Fatalf("as %s there are %d answers to %d questions: %s", user, len(got), len(wanted), r.stderr)
		}
		for i := range got {
			if got[i] != wanted[i] {
				t.Errorf("as %s: %s, want %s", user, got[i], wanted[i])
			}
		}
	}
}
