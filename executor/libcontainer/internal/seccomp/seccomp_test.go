//go:build linux && cgo && (amd64 || arm64)

package seccomp

import (
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A wanted is a line of testdata/syscalls.txt.
type wanted struct{ name, answer string }

// wantedCalls reads the table of what every call is to get, by number.
func wantedCalls(t *testing.T) map[string]map[uint32]wanted {
	t.Helper()
	text, err := os.ReadFile("testdata/syscalls.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[uint32]wanted{"amd64": {}, "arm64": {}}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 4 {
			t.Fatalf("the line %q has %d fields", line, len(fields))
		}
		for i, arch := range []string{"amd64", "arm64"} {
			if fields[1+i] == "-" {
				continue
			}
			n, err := strconv.ParseUint(fields[1+i], 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			if other, twice := all[arch][uint32(n)]; twice {
				t.Fatalf("%s: %d is %s and %s", arch, n, other.name, fields[0])
			}
			all[arch][uint32(n)] = wanted{fields[0], fields[3]}
		}
	}
	return all
}

// answerTo runs a filter over one call, as the kernel does.
func answerTo(t *testing.T, program []unix.SockFilter, arch, number uint32, arguments ...uint64) uint32 {
	t.Helper()
	result, _ := run(t, program, arch, number, arguments...)
	return result
}

// run also counts the instructions.
func run(t *testing.T, program []unix.SockFilter, arch, number uint32, arguments ...uint64) (result uint32, steps int) {
	t.Helper()
	var data [64]byte // struct seccomp_data, on a little-endian machine
	binary.LittleEndian.PutUint32(data[0:], number)
	binary.LittleEndian.PutUint32(data[4:], arch)
	for i, a := range arguments {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var a uint32
	for pc := 0; pc < len(program); pc++ {
		steps++
		i := program[pc]
		jump := func(condition bool) {
			if condition {
				pc += int(i.Jt)
			} else {
				pc += int(i.Jf)
			}
		}
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[i.K:])
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == i.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(a > i.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= i.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&i.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return i.K, steps
		default:
			t.Fatalf("instruction %d is %+v", pc, i)
		}
	}
	t.Fatal("the filter ends without an answer")
	return 0, steps
}

func errnoAnswer(e unix.Errno) uint32 { return 0x50000 + uint32(e) }

// The answers to what a line of the table says, by the arguments.
const allowAnswer, killAnswer = 0x7fff0000, 0x80000000

var answersByArguments = map[string]map[[4]uint64]uint32{
	"allow":  {{}: allowAnswer, {^uint64(0)}: allowAnswer},
	"EPERM":  {{}: errnoAnswer(unix.EPERM), {^uint64(0)}: errnoAnswer(unix.EPERM)},
	"ENOSYS": {{}: errnoAnswer(unix.ENOSYS), {^uint64(0)}: errnoAnswer(unix.ENOSYS)},
	"flags": {
		{}: allowAnswer, {uint64(unix.SIGCHLD)}: allowAnswer, {0x3d0f00 /* a thread's */}: allowAnswer,
		{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}: allowAnswer, {0xff}: allowAnswer,
		{unix.CLONE_NEWUSER}: errnoAnswer(unix.EPERM), {unix.CLONE_NEWNS | uint64(unix.SIGCHLD)}: errnoAnswer(unix.EPERM),
		{unix.CLONE_NEWPID}: errnoAnswer(unix.EPERM), {unix.CLONE_NEWNET}: errnoAnswer(unix.EPERM),
		{unix.CLONE_NEWIPC}: errnoAnswer(unix.EPERM), {unix.CLONE_NEWUTS}: errnoAnswer(unix.EPERM),
		{unix.CLONE_NEWCGROUP}: errnoAnswer(unix.EPERM), {0xdead_0000_1000_0000}: errnoAnswer(unix.EPERM),
	},
	"family": {
		{1}: allowAnswer, {2}: allowAnswer, {10}: allowAnswer, {16}: allowAnswer,
		{16, 0, 4}: allowAnswer, {2, 1, 6}: allowAnswer, {2, 2, 17}: allowAnswer, {10, 2, 58}: allowAnswer, {10, 2, 136}: allowAnswer,
		{2, 0x80801, 6}: allowAnswer, {2, 3, 1}: allowAnswer, {1, 5}: allowAnswer, {1, 5, 262}: allowAnswer, {2, 1, 1<<32 + 6}: allowAnswer,
		{2, 0, 15}: errnoAnswer(unix.EPROTONOSUPPORT), {2, 1, 262}: errnoAnswer(unix.EPROTONOSUPPORT), {10, 1, 262}: errnoAnswer(unix.EPROTONOSUPPORT),
		{2, 1, 132}: errnoAnswer(unix.EPROTONOSUPPORT), {10, 1, 1<<32 + 262}: errnoAnswer(unix.EPROTONOSUPPORT), {2, 1, 256}: errnoAnswer(unix.EPROTONOSUPPORT),
		{2, 5}: errnoAnswer(unix.ESOCKTNOSUPPORT), {10, 0x80805, 6}: errnoAnswer(unix.ESOCKTNOSUPPORT), {2, 6, 33}: errnoAnswer(unix.ESOCKTNOSUPPORT),
		{16, 0, 15}: errnoAnswer(unix.EPROTONOSUPPORT),
		{16, 0, 9}:  errnoAnswer(unix.EPROTONOSUPPORT), {16, 0, 16}: errnoAnswer(unix.EPROTONOSUPPORT),
		{0}: errnoAnswer(unix.EAFNOSUPPORT), {17}: errnoAnswer(unix.EAFNOSUPPORT), {40}: errnoAnswer(unix.EAFNOSUPPORT),
		{38}: errnoAnswer(unix.EAFNOSUPPORT), {0xffff}: errnoAnswer(unix.EAFNOSUPPORT),
		{1<<32 + 2}: allowAnswer, {1<<32 + 40}: errnoAnswer(unix.EAFNOSUPPORT), // the kernel takes an int
	},
	"limit": {
		{7, 1}: allowAnswer, {9, 1}: allowAnswer, {11, 1}: allowAnswer, {0, 10}: allowAnswer, {4, 1}: errnoAnswer(0),
		{10}: errnoAnswer(unix.EPERM), {10, 1}: errnoAnswer(unix.EPERM), {1<<32 + 10, 1}: errnoAnswer(unix.EPERM),
	},
	"limits": {
		{0, 7, 1}: allowAnswer, {0, 10, 0}: allowAnswer, {10, 7, 1}: allowAnswer, {1, 11, 10}: allowAnswer,
		{0, 4, 0}: allowAnswer, {4, 7, 1}: allowAnswer, {0, 4, 1}: errnoAnswer(0), {1, 4, 1 << 32}: errnoAnswer(0),
		{0, 10, 1}: errnoAnswer(unix.EPERM), {1, 10, 1}: errnoAnswer(unix.EPERM), {0, 10, 1 << 32}: errnoAnswer(unix.EPERM),
		{0, 1<<32 + 10, 1}: errnoAnswer(unix.EPERM), {0, 10, ^uint64(0)}: errnoAnswer(unix.EPERM),
	},
	"option": {
		{}: allowAnswer, {3, 1, 2}: allowAnswer, {26, 6, 26}: allowAnswer, {3, 0, 51}: allowAnswer, {3, 1, 27}: allowAnswer,
		{3, 1, 26}: errnoAnswer(unix.EPERM), {3, 1, 51}: errnoAnswer(unix.EPERM), {3, 1<<32 + 1, 26}: errnoAnswer(unix.EPERM),
		{3, 1, 1<<32 + 51}: errnoAnswer(unix.EPERM), // the kernel takes ints
		{3, 6, 1}:          allowAnswer, {3, 6, 14}: errnoAnswer(unix.ENOPROTOOPT), {3, 6, 32}: errnoAnswer(unix.ENOPROTOOPT),
		{3, 1<<32 + 6, 38}: errnoAnswer(unix.ENOPROTOOPT), {3, 1, 38}: allowAnswer, {3, 0, 42}: allowAnswer,
		{3, 41, 26}: allowAnswer, {3, 41, 20}: errnoAnswer(unix.ENODEV), {3, 41, 27}: errnoAnswer(unix.ENODEV),
		{3, 41, 32}: errnoAnswer(unix.ENODEV), {3, 41, 42}: errnoAnswer(unix.ENODEV), {3, 41, 1<<32 + 46}: errnoAnswer(unix.ENODEV),
	},
	"map":     {{}: allowAnswer, {0, 1 << 18, 0, 0x22}: allowAnswer, {0, 4096, 3, 0x40022}: errnoAnswer(unix.ENOMEM)},
	"memory":  {{}: allowAnswer, {1, 3}: allowAnswer, {1, 5}: errnoAnswer(unix.ENOMEM), {1, 1<<32 + 4}: errnoAnswer(unix.ENOMEM)},
	"segment": {{}: allowAnswer, {0o4000, 0o4000, 0o1600}: allowAnswer, {0, 1, 0o5600}: errnoAnswer(unix.ENOMEM)},
	"poll":    {{}: allowAnswer, {9999, 4096}: allowAnswer, {0, 4097}: errnoAnswer(unix.EINVAL), {0, ^uint64(0)}: errnoAnswer(unix.EINVAL)},
	"select":  {{}: allowAnswer, {4096, 9999}: allowAnswer, {4097}: errnoAnswer(unix.EINVAL), {1<<32 + 4097}: errnoAnswer(unix.EINVAL)},
	"attribute": {
		{}: allowAnswer, {0, 0, 0, 1024}: allowAnswer, {0, 0, 0, 1025}: errnoAnswer(unix.E2BIG),
		{0, 0, 0, ^uint64(0)}: errnoAnswer(unix.E2BIG), {0, 0, 0, 1 << 32}: allowAnswer, // which the kernel refuses
	},
	"device": {
		{}: allowAnswer, {0, 0x5401}: allowAnswer, {0x5423, 0, 0x5423}: allowAnswer,
		{0, 0x5423}: errnoAnswer(unix.EPERM), {1, 1<<32 + 0x5423}: errnoAnswer(unix.EPERM), // the kernel takes 32 bits
		{3, 0x8912}: allowAnswer, {3, 0x8946}: errnoAnswer(unix.EOPNOTSUPP), {3, 0x8940}: errnoAnswer(unix.EOPNOTSUPP),
		{3, 0x8941}: errnoAnswer(unix.EOPNOTSUPP), {3, 0x8982}: errnoAnswer(unix.EOPNOTSUPP), {3, 0x89a0}: errnoAnswer(unix.EOPNOTSUPP), {3, 0x89a3}: errnoAnswer(unix.EOPNOTSUPP), {3, 0x89a4}: allowAnswer, {3, 1<<32 + 0x8983}: errnoAnswer(unix.EOPNOTSUPP),
	},
	"filter": {
		{}: allowAnswer, {2}: allowAnswer, {3}: allowAnswer,
		{1}: errnoAnswer(unix.EINVAL), {1, 1}: errnoAnswer(unix.EINVAL), {1<<32 + 1}: errnoAnswer(unix.EINVAL),
	},
	"control": {
		{}: allowAnswer, {15, 2}: allowAnswer, {21}: allowAnswer, {22, 1}: allowAnswer, {38, 1}: allowAnswer,
		{22, 2}: errnoAnswer(unix.EINVAL), {1<<32 + 22, 2}: errnoAnswer(unix.EINVAL),
	},
}

func TestTheFilterAnswersEveryCallAsTheTableSays(t *testing.T) {
	audits := map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}
	for arch, calls := range wantedCalls(t) {
		program := architectures[arch].filter()
		if len(program) > unix.BPF_MAXINSNS {
			t.Errorf("%s: the filter has %d instructions", arch, len(program))
		}
		check := func(number uint32) {
			w, known := calls[number]
			switch {
			case !known && number > 471:
				w = wanted{"a later call", "ENOSYS"}
			case !known:
				w = wanted{"a gap, which is the kernel's to refuse", "allow"}
			}
			for arguments, want := range answersByArguments[w.answer] {
				if got := answerTo(t, program, audits[arch], number, arguments[:]...); got != want {
					t.Errorf("%s: %d (%s) with %#x is answered %#x, want %#x", arch, number, w.name, arguments, got, want)
				}
			}
			for _, foreign := range []uint32{0x40000003, 0x40000028, 0, audits["amd64"], audits["arm64"]} {
				if foreign != audits[arch] && answerTo(t, program, foreign, number) != killAnswer {
					t.Errorf("%s: %d of architecture %#x does not kill", arch, number, foreign)
				}
			}
		}
		const x32 = 1 << 30
		for number := range uint32(2048) {
			check(number)
			check(x32 | number)
			check(1<<31 | number)
			check(^number)
		}
	}
}

// The kernel tries every call when a process begins, and runs the filter on each
// call that it could not judge then.
func TestEveryCallIsAnsweredAfterAFewInstructions(t *testing.T) {
	const most = 24 // with as many as the filter of a call that is judged by its arguments has
	for arch, audit := range map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64} {
		program := architectures[arch].filter()
		for number := range uint32(newestCall + 2) {
			for _, arguments := range [][]uint64{{}, {16, 0, 15}, {0, 4, 1 << 32}, {40}, {0, 1, 51}, {0, 6, 38}, {0, 41, 46}, {22, 2}, {0, 0x5423}} {
				if _, steps := run(t, program, audit, number, arguments...); steps > most {
					t.Errorf("%s: %d is answered after %d instructions, more than %d", arch, number, steps, most)
				}
			}
		}
	}
}

func TestNoCallIsRefusedTwice(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range refusedCalls {
		if seen[c.name] {
			t.Errorf("%s is refused twice", c.name)
		}
		seen[c.name] = true
	}
	var waits []systemCall
	for _, c := range waitCalls {
		waits = append(waits, c.systemCall)
	}
	for arch, calls := range wantedCalls(t) {
		for _, c := range slices.Concat(waits, []systemCall{cloneCall, setLimitCall, limitCall, optionCall, filterCall, controlCall, mapCall, memoryCall, segmentCall, deviceCall}, unknownCalls, familiesCalls, attributeCalls, refusedCalls) {
			if n := architectures[arch].number(c); n != absent && calls[n].name != c.name {
				t.Errorf("%s: %d is called %s and is %s", arch, n, c.name, calls[n].name)
			}
		}
	}
}
