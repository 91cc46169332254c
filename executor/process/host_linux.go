package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/diegosdk/diego/executor"
)

// groupsOutliveLeaders is false: once a leader is reaped its number may belong
// to a stranger, and what remains of its group is found in /proc.
const groupsOutliveLeaders = false

// pidfd_open has this number on every architecture.
const (
	sysPidfdOpen  = 434
	pidfdNonblock = syscall.O_NONBLOCK
)

// wait returns when the process has ended, and reaps it. It waits in the
// runtime's poller: a goroutine, but no thread.
func (p *process) wait() (syscall.WaitStatus, time.Duration) {
	var status syscall.WaitStatus
	var usage syscall.Rusage
	try := func(options int) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for {
			pid, err := syscall.Wait4(p.pid, &status, options, &usage)
			if err == syscall.EINTR {
				continue
			}
			p.reaped = pid == p.pid || err != nil
			return p.reaped
		}
	}
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(p.pid), pidfdNonblock, 0)
	if errno == 0 {
		f := os.NewFile(fd, "pidfd")
		defer f.Close()
		if raw, err := f.SyscallConn(); err == nil {
			raw.Read(func(uintptr) bool { return try(syscall.WNOHANG) })
		}
	}
	for !p.reaped { // a kernel without pidfd, or a pidfd that cannot be polled
		if !try(syscall.WNOHANG) {
			time.Sleep(waitPause)
		}
	}
	return status, cpuTime(usage)
}

const waitPause = 10 * time.Millisecond

func cpuTime(u syscall.Rusage) time.Duration {
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// limit sets the limits of a process that has just been started, which is as
// early as it can be without a helper program. What the host does not allow is
// cut to what it does.
func limit(pid int, l executor.ResourceLimits) {
	const rlimitNproc = 6
	nofile := uint64(executor.DefaultNofile)
	if l.Nofile != nil {
		nofile = *l.Nofile
	}
	setLimit(pid, syscall.RLIMIT_NOFILE, nofile)
	if l.Nproc != nil {
		setLimit(pid, rlimitNproc, *l.Nproc)
	}
}

func setLimit(pid, resource int, want uint64) {
	var old syscall.Rlimit
	prlimit(pid, resource, nil, &old)
	want = min(want, old.Max)
	prlimit(pid, resource, &syscall.Rlimit{Cur: want, Max: want}, nil)
}

func prlimit(pid, resource int, next, old *syscall.Rlimit) {
	syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource),
		uintptr(unsafe.Pointer(next)), uintptr(unsafe.Pointer(old)), 0, 0)
}

// A member is a process of a container, as /proc shows it.
type member struct {
	pid, parent, group, session int
	zombie                      bool
	started                     string // with pid, this names one process for ever
	cpu                         time.Duration
	residentPages               int64
}

// members are the processes that belong to the container with a directory:
// those that have it in their environment, those that share a session with
// such a one or with one of the leaders, and the children of all these.
func members(dir string, leaders []int) []member {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	mark := []byte("\x00" + containerDirVar + "=" + dir + "\x00")
	ours := make(map[int]bool)     // pids
	sessions := make(map[int]bool) // session ids
	for _, pid := range leaders {
		sessions[pid] = true
	}
	var all []member
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		m, ok := readMember(pid)
		if !ok {
			continue
		}
		all = append(all, m)
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if bytes.Contains(append([]byte{0}, environ...), mark) {
			ours[pid] = true
			sessions[m.session] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, m := range all {
			if !ours[m.pid] && (sessions[m.session] || ours[m.parent]) {
				ours[m.pid], changed = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(m member) bool { return !ours[m.pid] || m.zombie })
}

// clockTick is the unit of processor time in /proc; Linux shows it as 1/100 s
// on every architecture that Go knows.
const clockTick = 10 * time.Millisecond

func readMember(pid int) (member, bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return member{}, false
	}
	// The name is in parentheses and may contain anything.
	_, rest, ok := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 22 {
		return member{}, false
	}
	n := func(i int) int64 {
		v, _ := strconv.ParseInt(fields[i], 10, 64)
		return v
	}
	return member{
		pid: pid, parent: int(n(1)), group: int(n(2)), session: int(n(3)), zombie: fields[0] == "Z",
		started: fields[19], cpu: time.Duration(n(11)+n(12)) * clockTick, residentPages: n(21),
	}, true
}

// signalOthers signals the members of a container and reports whether there
// are any. It signals whole process groups, as one of them may be a process
// that forks and ends faster than anybody can look.
func signalOthers(dir string, leaders []int, s executor.Signal) bool {
	found := members(dir, leaders)
	done := make(map[int]bool, len(leaders)+1)
	done[syscall.Getpgrp()] = true // never this process itself
	for _, pid := range leaders {
		done[pid] = true
	}
	for _, m := range found {
		// A member that is still the same holds the number of its group.
		if now, ok := readMember(m.pid); ok && now.started == m.started && !done[now.group] {
			done[now.group] = true
			syscall.Kill(-now.group, number(s))
		}
	}
	return len(found) > 0
}

// usage sums up what the living processes of a container use.
func usage(dir string, leaders []int) (memoryBytes, pids int64, cpu time.Duration) {
	for _, m := range members(dir, leaders) {
		memoryBytes += m.residentPages * int64(os.Getpagesize())
		pids++
		cpu += m.cpu
	}
	return memoryBytes, pids, cpu
}

// hostMemoryMB is the memory of the host, or 0.
func hostMemoryMB() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit) >> 20)
}

// diskMB is the space for a user's files on the file system of a directory,
// or 0.
func diskMB(dir string) int64 {
	var info syscall.Statfs_t
	if syscall.Statfs(dir, &info) != nil {
		return 0
	}
	return int64(info.Bavail * uint64(info.Bsize) >> 20)
}
