//go:build unix && !linux

package process

import (
	"context"
	"syscall"
	"time"

	"github.com/diegosdk/diego/executor"
)

// groupsOutliveLeaders is true: without /proc there is no other way to reach
// the children of a process that has ended than the number of its group.
const groupsOutliveLeaders = true

// wait returns when the process has ended, and reaps it.
func (p *process) wait() (syscall.WaitStatus, time.Duration) {
	var status syscall.WaitStatus
	var usage syscall.Rusage
	for {
		if _, err := syscall.Wait4(p.pid, &status, 0, &usage); err != syscall.EINTR {
			break
		}
	}
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	return status, time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// startTime is not known, and not needed.
func startTime(int) string { return "" }

// limit does nothing: only Linux can limit a process from outside.
func limit(int, executor.ResourceLimits) {}

// A member cannot be known here.
type member struct{}

// members finds nobody: only Linux shows the environment of a process.
func (*container) members(context.Context, []leader) ([]member, bool, error) { return nil, false, nil }

func signalGroups([]member, map[int]bool, executor.Signal) {}

func (*container) usage(context.Context, []leader) (memoryBytes, pids int64, cpu time.Duration, err error) {
	return executor.Unknown, executor.Unknown, 0, nil
}

func hostMemoryMB() int64 { return 0 }

func diskMB(string) int64 { return 0 }
