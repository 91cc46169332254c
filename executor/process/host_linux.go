package process

import (
	"context"
	"os"
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

// signalGroups signals the process groups of members, but for those that are
// done already. Groups, because one of their members may be a process that
// forks and ends faster than anybody can look.
func signalGroups(found []member, done map[int]bool, s executor.Signal) {
	done[syscall.Getpgrp()] = true // never this process itself
	for _, m := range found {
		// A member that is still the same holds the number of its group.
		if now, err := readMember("/proc", m.pid); err == nil && now.started == m.started && !done[now.group] {
			done[now.group] = true
			syscall.Kill(-now.group, number(s))
		}
	}
}

// usage sums up what the living processes of the container use.
func (c *container) usage(ctx context.Context, leaders []leader) (memoryBytes, pids int64, cpu time.Duration, err error) {
	found, _, err := c.members(ctx, leaders)
	for _, m := range found {
		memoryBytes += m.residentPages * int64(os.Getpagesize())
		pids++
		cpu += m.cpu
	}
	return memoryBytes, pids, cpu, err
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
