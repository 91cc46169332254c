//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
)

// A hunt is one call of KillDescent.
type hunt struct {
	id    uint32
	sent  map[int]bool // who has been sent the signal
	began time.Time
	looks int
	err   error
	over  chan struct{} // closed at its end
}

// A hunt ends without success after maxLooks, which are far more than it takes unless
// they fork as fast as we kill. It ends sooner where each look takes long: then it has
// had at least minLooks and huntTime.
const (
	maxLooks = 100
	minLooks = 3
	huntTime = 2 * time.Second
)

// hunts are those that go on in a cgroup. They share their looks at its processes,
// because a tenant decides how many hunts there are, by timeouts, and how long each
// takes, by processes that come and go.
type hunts struct {
	mu      sync.Mutex
	all     []*hunt
	looking bool      // a goroutine of look goes on
	earned  time.Time // when the looks will have earned the processor time that they took
}

// The looks in a cgroup take at most one part in lookShare of a processor, after a
// burst of lookBurst.
const (
	lookShare = 20
	lookBurst = 50 * time.Millisecond
)

// KillDescent kills what descends from a start, by its id, and the started
// process itself; see [pid1.MarkLimit]. When it returns nil, all have been sent
// the signal, so that none of them can fork.
func (g *Cgroup) KillDescent(id uint32) error {
	h := &hunt{id: id, sent: make(map[int]bool), began: time.Now(), over: make(chan struct{})}
	g.hunts.mu.Lock()
	g.hunts.all = append(g.hunts.all, h)
	if !g.hunts.looking {
		g.hunts.looking = true
		go g.hunt()
	}
	g.hunts.mu.Unlock()
	<-h.over
	return h.err
}

// hunt looks until no hunt is left.
func (g *Cgroup) hunt() {
	for {
		g.hunts.mu.Lock()
		g.hunts.looking = len(g.hunts.all) > 0
		looking, next := g.hunts.looking, g.hunts.earned.Add(-lookShare*lookBurst)
		g.hunts.mu.Unlock()
		if !looking {
			return
		}
		time.Sleep(time.Until(next))
		g.hunts.mu.Lock()
		all := slices.Clone(g.hunts.all) // and those that have begun meanwhile
		g.hunts.mu.Unlock()
		over, took := g.timedLook(all)
		g.hunts.mu.Lock()
		if now := time.Now(); g.hunts.earned.Before(now) {
			g.hunts.earned = now
		}
		g.hunts.earned = g.hunts.earned.Add(lookShare * took)
		g.hunts.all = slices.DeleteFunc(g.hunts.all, func(h *hunt) bool { return slices.Contains(over, h) })
		g.hunts.mu.Unlock()
		for _, h := range over {
			close(h.over)
		}
	}
}

// timedLook is look, and says how much processor time that took.
func (g *Cgroup) timedLook(all []*hunt) (over []*hunt, took time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	over = g.look(all)
	return over, threadTime() - before
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// look looks once for all hunts, and returns those that are over.
func (g *Cgroup) look(all []*hunt) (over []*hunt) {
	pids, err := cgroups.GetAllPids(g.processes())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return all
	}
	again := make(map[*hunt]bool) // who may have forked just before
	for _, pid := range pids {
		var ended bool
		if ended, err = killMarked(pid, all, again); err != nil {
			break
		}
		if ended {
			for _, h := range all {
				again[h] = true
			}
		}
	}
	for _, h := range all {
		h.looks++
		switch {
		case err != nil:
			h.err = err
		case !again[h]:
		case h.looks >= maxLooks || h.looks >= minLooks && time.Since(h.began) >= huntTime:
			h.err = errors.New("its children fork faster than they can be killed; they end with their container")
		default:
			continue
		}
		over = append(over, h)
	}
	return over
}

// killMarked kills a process if it has the mark of a hunt, for which it is in again
// then, and no other that has got its number meanwhile. One that had ended may have had
// any mark.
func killMarked(pid int, all []*hunt, again map[*hunt]bool) (ended bool, err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return true, nil
	}
	if err == unix.EINVAL { // a process of another pid namespace
		return false, nil
	}
	if err != nil {
		return false, os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	marked := false
	if mark, known := pid1.MarkOf(pid); known {
		for _, h := range all {
			if h.id != mark {
				continue
			}
			marked = true
			again[h] = again[h] || !h.sent[pid]
			h.sent[pid] = true
		}
	}
	signal := unix.Signal(0)
	if marked {
		signal = unix.SIGKILL
	}
	err = unix.PidfdSendSignal(fd, signal, nil, 0)
	if err == unix.ESRCH {
		return true, nil
	}
	if !marked {
		err = nil
	}
	return false, os.NewSyscallError("pidfd_send_signal", err)
}
