//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"sync/atomic"
	"time"

	"github.com/diegosdk/diego/executor/internal/stdio"
)

// pipePatience is for how long a container may keep the daemon from its own output; see
// [stdio.Guard]. A program may do so without wanting it, while its memory comes from a
// slow disk.
const pipePatience = 3 * time.Second

// watchPipes ends containers in which a process holds the lock of a pipe from the daemon
// for longer than pipePatience, until done is closed.
func (b *Backend) watchPipes(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(greedPause):
		}
		for _, c := range b.made() {
			if c.pipes.Stuck(pipePatience, "pipe", "tty", "pty", "ldsem") {
				c.endFor("kept the daemon from its output, or from its input", 0)
				// The first process may wait for the same lock, and then kills nobody.
				c.cgroup.KillOthers(c.initPID)
			}
		}
	}
}

// A glance asks the kernel about the processes of a container. The kernel may wait for one of
// them before it answers, for example as long as a thread becomes another program. So each
// container is looked at by a goroutine of its own, and keeps nobody from looking at others.
// The zero value is ready for use.
type glance struct {
	stdio.Guard // for the calls for which the kernel may wait

	going atomic.Bool
}

// begin calls f, and closes over at its end. It is nil if the one before is not over; then
// nothing has begun.
func (g *glance) begin(f func()) (over <-chan struct{}) {
	if !g.going.CompareAndSwap(false, true) {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer g.going.Store(false)
		f()
	}()
	return ended
}

// complete calls f and reports whether it has ended. If the kernel waits in it for longer than
// patience, f goes on without the caller; it is not called while an earlier call goes on.
func (g *glance) complete(patience time.Duration, f func()) bool {
	over := g.begin(func() { g.Watch(f) })
	for over != nil {
		select {
		case <-over:
			return true
		case <-time.After(hangTime):
			if g.Stuck(patience) {
				return false
			}
		}
	}
	return false
}
