//go:build linux && cgo && (amd64 || arm64)

// Package seccomp makes the filter of system calls of unprivileged containers.
// Its tables say which calls are refused, and which only in part; [Filter] is
// the program that the kernel runs on each call.
package seccomp

import (
	"cmp"
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
)

// A systemCall has a number on each architecture, or absent.
type systemCall struct {
	name         string
	amd64, arm64 uint32
}

const (
	absent = ^uint32(0)
	// newestCall is the last number, on either architecture, that somebody has
	// judged. What a later kernel adds is ENOSYS until somebody does.
	newestCall = 471
)

// refusedCalls are the system calls that no container needs and that lead to
// the host's kernel: without a capability most of them fail anyway, and the
// filter keeps containers from the code that would find that out. They are
// EPERM.
var refusedCalls = []systemCall{
	// The tree of mounts, and ways round it.
	{"mount", 165, 40}, {"umount2", 166, 39}, {"pivot_root", 155, 41}, {"chroot", 161, 51}, {"open_tree", 428, 428},
	{"open_tree_attr", 467, 467}, {"move_mount", 429, 429}, {"mount_setattr", 442, 442}, {"fsopen", 430, 430},
	{"fsconfig", 431, 431}, {"fsmount", 432, 432}, {"fspick", 433, 433}, {"name_to_handle_at", 303, 264},
	{"open_by_handle_at", 304, 265}, {"lookup_dcookie", 212, 18}, {"fanotify_init", 300, 262}, {"quotactl", 179, 60},
	{"quotactl_fd", 443, 443}, {"ustat", 136, absent}, {"sysfs", 139, absent},
	// Namespaces; see also clone and clone3.
	{"unshare", 272, 97}, {"setns", 308, 268}, {"listns", 470, 470}, {"sethostname", 170, 161}, {"setdomainname", 171, 162},
	// Other processes; ptrace reaches no more than its own container.
	{"process_vm_readv", 310, 270}, {"process_vm_writev", 311, 271}, {"pidfd_getfd", 438, 438}, {"kcmp", 312, 272},
	// Large parts of the kernel with a history of holes.
	{"bpf", 321, 280}, {"perf_event_open", 298, 241}, {"userfaultfd", 323, 282}, {"io_uring_setup", 425, 425},
	{"io_uring_enter", 426, 426}, {"io_uring_register", 427, 427}, {"add_key", 248, 217}, {"request_key", 249, 218},
	{"keyctl", 250, 219},
	// Placement of memory, of which other containers would learn or suffer.
	{"mbind", 237, 235}, {"set_mempolicy", 238, 237}, {"get_mempolicy", 239, 236}, {"set_mempolicy_home_node", 450, 450},
	{"migrate_pages", 256, 238}, {"move_pages", 279, 239},
	// The machine.
	{"init_module", 175, 105}, {"finit_module", 313, 273}, {"delete_module", 176, 106}, {"create_module", 174, absent},
	{"get_kernel_syms", 177, absent}, {"query_module", 178, absent}, {"kexec_load", 246, 104}, {"kexec_file_load", 320, 294},
	{"reboot", 169, 142}, {"swapon", 167, 224}, {"swapoff", 168, 225}, {"acct", 163, 89}, {"syslog", 103, 116},
	{"vhangup", 153, 58}, {"settimeofday", 164, 170}, {"adjtimex", 159, 171}, {"clock_settime", 227, 112},
	{"clock_adjtime", 305, 266}, {"iopl", 172, absent}, {"ioperm", 173, absent}, {"modify_ldt", 154, absent},
	{"_sysctl", 156, absent}, {"uselib", 134, absent}, {"nfsservctl", 180, 42},
}

// unknownCalls are answered ENOSYS, as by a kernel without them: programs then
// do without. The flags of clone3 cannot be seen, and libraries use clone. What
// io_setup reserves the kernel counts for the whole host alone, so that one
// container could take it all; databases use threads. How large an attribute is,
// setxattrat says where it cannot be seen. memfd_secret takes each page out of the
// kernel's own map of memory, interrupts all processors for that, and leaves the map in
// small pieces until the host boots again.
var unknownCalls = []systemCall{{"clone3", 435, 435}, {"io_setup", 206, 0}, {"setxattrat", 463, 463}, {"memfd_secret", 447, 447}}

// The calls of which only a part is refused.
var (
	cloneCall     = systemCall{"clone", 56, 220}
	familiesCalls = []systemCall{{"socket", 41, 198}, {"socketpair", 53, 199}}
	setLimitCall  = systemCall{"setrlimit", 160, 164}
	limitCall     = systemCall{"prlimit64", 302, 261} // sets a limit, if its third argument says to what
	optionCall    = systemCall{"setsockopt", 54, 208}
	filterCall    = systemCall{"seccomp", 317, 277}
	controlCall   = systemCall{"prctl", 157, 167}
	// The calls that wait for descriptors, with the place of the argument that says how many.
	waitCalls = []struct {
		systemCall
		count uint32
	}{
		{systemCall{"poll", 7, absent}, 1}, {systemCall{"ppoll", 271, 73}, 1},
		{systemCall{"select", 23, absent}, 0}, {systemCall{"pselect6", 270, 72}, 0},
	}
	mapCall        = systemCall{"mmap", 9, 222}
	memoryCall     = systemCall{"memfd_create", 319, 279}
	segmentCall    = systemCall{"shmget", 29, 194}
	attributeCalls = []systemCall{{"setxattr", 188, 5}, {"lsetxattr", 189, 6}, {"fsetxattr", 190, 7}}
	deviceCall     = systemCall{"ioctl", 16, 29}
)

// setDiscipline is the request to a terminal, TIOCSETD, for another line discipline.
// The kernel loads the module of each that a program names, mostly drivers of modems,
// into the host.
const setDiscipline = 0x5423

// interfaceRequests are requests to a socket for which the kernel loads the module of
// bridges or VLANs into the host, and those of ethtool, for which it holds the lock of
// the host's networks for longer than for others. They are EOPNOTSUPP, as for a device
// without them.
var interfaceRequests = []uint32{siocGetBridge, siocSetBridge, siocAddBridge, siocDelBridge, siocAddToBridge, siocDelFromBridge, siocGetVLAN, siocSetVLAN, unix.SIOCETHTOOL}

// socketPrograms are the options that attach a program to a socket. The kernel
// compiles programs, here and for filters of system calls, in memory that it
// counts for the whole host alone. If one container took it all, no process could
// start in any other, because each start attaches the filter.
var socketPrograms = []uint32{unix.SO_ATTACH_FILTER, unix.SO_ATTACH_REUSEPORT_CBPF}

// keyOptions give a TCP socket keys, for which the kernel keeps 180 KiB a socket and
// counts it for nobody. They are ENOPROTOOPT, as on a kernel without them: routers
// use them among themselves.
var keyOptions = []uint32{unix.TCP_MD5SIG, unix.TCP_MD5SIG_EXT, tcpAOAddKey}

// groupOptions join groups of IPv6, for which the kernel keeps 2 MiB a socket and
// counts it for nobody, and take labels of flows, of which the whole host has 4096.
// IPv6 is off in containers, but these work all the same. They are ENODEV, as where
// no device has IPv6.
var groupOptions = []uint32{unix.IPV6_JOIN_GROUP, unix.IPV6_JOIN_ANYCAST, ipv6FlowLabel, unix.MCAST_JOIN_GROUP, unix.MCAST_JOIN_SOURCE_GROUP}

// What package unix does not name.
const (
	tcpAOAddKey       = 38
	siocGetBridge     = 0x8940 // SIOCGIFBR
	siocSetBridge     = 0x8941 // SIOCSIFBR
	siocAddBridge     = 0x89a0 // SIOCBRADDBR
	siocDelBridge     = 0x89a1 // SIOCBRDELBR
	siocAddToBridge   = 0x89a2 // SIOCBRADDIF
	siocDelFromBridge = 0x89a3 // SIOCBRDELIF
	siocGetVLAN       = 0x8982 // SIOCGIFVLAN
	siocSetVLAN       = 0x8983 // SIOCSIFVLAN
	ipv6FlowLabel     = 32     // IPV6_FLOWLABEL_MGR
	hugeSegment       = 0o4000 // SHM_HUGETLB
)

// maxWaits is for how many descriptors a thread may wait at once with poll or select. The
// kernel keeps 72 bytes for each, the same one as often as it is named, and counts them
// for nobody. More is EINVAL, as for a process that may not have so many files open; epoll
// has no such limit, and what it takes counts.
const maxWaits = 4096

// maxAttribute is the longest value of an extended attribute. The kernel counts lists
// of access rights for nobody. On tmpfs, and so for each memfd, there may be as many
// as files, of 64 KiB; other file systems hold 4 KiB for all attributes of a file.
const maxAttribute = 1024

// namespaceFlags are those of clone. Its exit signal lies where unshare has
// the flag of time namespaces.
const namespaceFlags = unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWNS |
	unix.CLONE_NEWPID | unix.CLONE_NEWUSER | unix.CLONE_NEWUTS

// internetProtocols are those of sockets of IP; 0 is TCP or UDP by the socket's type. What
// waits in the connections of others, such as MPTCP and SCTP, is in no list of sockets from
// which the Backend learns who holds the kernel's memory, and the kernel would load their
// modules into the host. Programs do without MPTCP where the kernel has none.
var internetProtocols = []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6}

// rareTypes is a bit of the types of sockets that only rare protocols have: SOCK_RDM,
// SOCK_SEQPACKET and SOCK_DCCP. With protocol 0 they mean one of those.
const rareTypes = 4

// netlinkProtocols are those of netlink sockets: devices and routes, and what
// sockets there are. Others carry events of the host's devices, or configure
// the kernel.
var netlinkProtocols = []uint32{unix.NETLINK_ROUTE, unix.NETLINK_SOCK_DIAG}

// keptLimits cannot be changed. The mark of a start stays what it is. So does
// [NoCore]: a process that sets the limit of core dumps to 0, as careful ones do,
// would have the kernel run the host's handler again. It wants no dump and gets
// none, so the call succeeds.
var keptLimits = []struct {
	resource uint32
	answer   unix.Errno
}{{pid1.MarkLimit, unix.EPERM}, {unix.RLIMIT_CORE, 0}}

// NoCore is the limit of core dumps, in bytes, for each process of a container. It
// prevents them, because the host would have to handle them. Where core_pattern
// names a program, the kernel ignores a limit of 0; 1 keeps it from running that
// program.
const NoCore = 1

// The layout of struct seccomp_data and what a filter answers.
const (
	dataNumber       = 0
	dataArch         = 4
	dataArgument     = 16 // the low half of the first one, on little-endian machines
	dataArgumentSize = 8

	answerAllow = 0x7fff0000
	answerErrno = 0x00050000
	answerKill  = 0x80000000
)

// An architecture is one for which there is a filter.
type architecture struct {
	audit  uint32 // its name to the kernel
	number func(systemCall) uint32
}

// architectures are by their names in Go.
var architectures = map[string]architecture{
	"amd64": {unix.AUDIT_ARCH_X86_64, func(c systemCall) uint32 { return c.amd64 }},
	"arm64": {unix.AUDIT_ARCH_AARCH64, func(c systemCall) uint32 { return c.arm64 }},
}

// filter is the program for an architecture. A call of another architecture
// kills: its numbers mean something else.
func (a architecture) filter() []unix.SockFilter {
	program := slices.Concat(
		loadWord(dataArch),
		[]unix.SockFilter{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: a.audit, Jt: 1}},
		answer(answerKill),
		loadWord(dataNumber),
		// The calls of x32 too: their numbers have a high bit.
		when(unix.BPF_JGT, newestCall, refuse(unix.ENOSYS)),
	)
	var cases []callCase
	add := func(c systemCall, then ...[]unix.SockFilter) {
		if n := a.number(c); n != absent {
			cases = append(cases, callCase{n, slices.Concat(then...)})
		}
	}
	for _, c := range unknownCalls {
		add(c, refuse(unix.ENOSYS))
	}
	for _, c := range refusedCalls {
		add(c, refuse(unix.EPERM))
	}
	add(cloneCall, loadArgument(0), when(unix.BPF_JSET, namespaceFlags, refuse(unix.EPERM)), answer(answerAllow))
	ofProtocol := loadArgument(2)
	for _, p := range netlinkProtocols {
		ofProtocol = append(ofProtocol, when(unix.BPF_JEQ, p, answer(answerAllow))...)
	}
	ofFamily := slices.Concat(loadArgument(0), when(unix.BPF_JEQ, unix.AF_NETLINK, ofProtocol, refuse(unix.EPROTONOSUPPORT)))
	ofInternet := slices.Concat(loadArgument(1), when(unix.BPF_JSET, rareTypes, refuse(unix.ESOCKTNOSUPPORT)), loadArgument(2))
	for _, p := range internetProtocols {
		ofInternet = append(ofInternet, when(unix.BPF_JEQ, p, answer(answerAllow))...)
	}
	ofInternet = append(ofInternet, refuse(unix.EPROTONOSUPPORT)...)
	// Other families are rarely used parts of the kernel, and some reach past the
	// container's network: AF_VSOCK leads to the machine below a virtual one.
	ofFamily = slices.Concat(ofFamily, when(unix.BPF_JEQ, unix.AF_UNIX, answer(answerAllow)),
		when(unix.BPF_JEQ, unix.AF_INET, ofInternet), when(unix.BPF_JEQ, unix.AF_INET6, ofInternet))
	for _, c := range familiesCalls {
		add(c, ofFamily, refuse(unix.EAFNOSUPPORT))
	}
	setLimit, limit := loadArgument(0), loadArgument(1)
	for _, k := range keptLimits {
		setLimit = append(setLimit, when(unix.BPF_JEQ, k.resource, refuse(k.answer))...)
		isSet := when(unix.BPF_JGT, 0, refuse(k.answer))
		limit = append(limit, when(unix.BPF_JEQ, k.resource,
			loadArgument(2), isSet, loadWord(dataArgument+2*dataArgumentSize+4), isSet, answer(answerAllow))...)
	}
	add(setLimitCall, setLimit, answer(answerAllow))
	add(limitCall, limit, answer(answerAllow))
	ofSocket := loadArgument(2)
	for _, o := range socketPrograms {
		ofSocket = append(ofSocket, when(unix.BPF_JEQ, o, refuse(unix.EPERM))...)
	}
	ofTCP, ofIPv6 := loadArgument(2), loadArgument(2)
	for _, o := range keyOptions {
		ofTCP = append(ofTCP, when(unix.BPF_JEQ, o, refuse(unix.ENOPROTOOPT))...)
	}
	for _, o := range groupOptions {
		ofIPv6 = append(ofIPv6, when(unix.BPF_JEQ, o, refuse(unix.ENODEV))...)
	}
	add(optionCall, loadArgument(1),
		when(unix.BPF_JEQ, unix.SOL_SOCKET, ofSocket, answer(answerAllow)),
		when(unix.BPF_JEQ, unix.IPPROTO_TCP, ofTCP, answer(answerAllow)),
		when(unix.BPF_JEQ, unix.IPPROTO_IPV6, ofIPv6), answer(answerAllow))
	// The host keeps huge pages for programs of its own, and counts them for nobody. A
	// host that keeps none answers ENOMEM, with which programs do without.
	add(mapCall, loadArgument(3), when(unix.BPF_JSET, unix.MAP_HUGETLB, refuse(unix.ENOMEM)), answer(answerAllow))
	add(memoryCall, loadArgument(1), when(unix.BPF_JSET, unix.MFD_HUGETLB, refuse(unix.ENOMEM)), answer(answerAllow))
	add(segmentCall, loadArgument(2), when(unix.BPF_JSET, hugeSegment, refuse(unix.ENOMEM)), answer(answerAllow))
	for _, c := range waitCalls {
		add(c.systemCall, loadArgument(c.count), when(unix.BPF_JGT, maxWaits, refuse(unix.EINVAL)), answer(answerAllow))
	}
	for _, c := range attributeCalls { // the kernel refuses sizes beyond 32 bits
		add(c, loadArgument(3), when(unix.BPF_JGT, maxAttribute, refuse(unix.E2BIG)), answer(answerAllow))
	}
	// A kernel without filters of system calls answers EINVAL, with which programs
	// do without.
	add(filterCall, loadArgument(0), when(unix.BPF_JEQ, unix.SECCOMP_SET_MODE_FILTER, refuse(unix.EINVAL)), answer(answerAllow))
	add(controlCall, loadArgument(0), when(unix.BPF_JEQ, unix.PR_SET_SECCOMP,
		loadArgument(1), when(unix.BPF_JEQ, unix.SECCOMP_MODE_FILTER, refuse(unix.EINVAL))), answer(answerAllow))
	toDevice := slices.Concat(loadArgument(1), when(unix.BPF_JEQ, setDiscipline, refuse(unix.EPERM)))
	for _, r := range interfaceRequests {
		toDevice = append(toDevice, when(unix.BPF_JEQ, r, refuse(unix.EOPNOTSUPP))...)
	}
	add(deviceCall, toDevice, answer(answerAllow))
	slices.SortFunc(cases, func(a, b callCase) int { return cmp.Compare(a.number, b.number) })
	return append(program, choose(cases)...)
}

// A callCase is what is done about one system call, up to the answer.
type callCase struct {
	number uint32
	then   []unix.SockFilter
}

// choose finds the case of the number that was loaded among cases in ascending
// order, by halving them: every process pays for the way of each call through
// the filter, because the kernel tries them all when the process begins. What
// has no case is allowed.
func choose(cases []callCase) []unix.SockFilter {
	const few = 3
	if len(cases) <= few {
		var program []unix.SockFilter
		for _, c := range cases {
			program = append(program, when(unix.BPF_JEQ, c.number, c.then)...)
		}
		return append(program, answer(answerAllow)...)
	}
	middle := len(cases) / 2
	return slices.Concat(when(unix.BPF_JGE, cases[middle].number, choose(cases[middle:])), choose(cases[:middle]))
}

// loadArgument loads the low half of an argument, counted from 0.
func loadArgument(n uint32) []unix.SockFilter { return loadWord(dataArgument + n*dataArgumentSize) }

func loadWord(offset uint32) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}}
}

func answer(value uint32) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: value}}
}

func refuse(e unix.Errno) []unix.SockFilter { return answer(answerErrno | uint32(e)) }

// when skips a part of a program if a test of what was loaded fails.
func when(test uint16, value uint32, parts ...[]unix.SockFilter) []unix.SockFilter {
	then := slices.Concat(parts...)
	if len(then) > math.MaxUint8 {
		panic("seccomp: a part of the filter is longer than a jump")
	}
	return slices.Concat([]unix.SockFilter{{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jf: uint8(len(then))}}, then)
}

// Filter returns the program, in the machine's own form, that every process of
// an unprivileged container runs under, and that it cannot take off. Callers
// share it and must not change it.
func Filter() []byte { return native() }

var native = sync.OnceValue(func() []byte {
	var text []byte
	for _, i := range architectures[runtime.GOARCH].filter() {
		text = binary.NativeEndian.AppendUint16(text, i.Code)
		text = append(text, i.Jt, i.Jf)
		text = binary.NativeEndian.AppendUint32(text, i.K)
	}
	return text
})
