//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// The kernel does some work with the processor time of one container for which others, or
// the daemon, wait: it looks for a process to kill for lack of memory, it forks, and it ends
// processes. If that container gets little time, because its weight is small and others are
// busy, they wait long. A tenant with both kinds of containers held up kills for lack of
// memory for 37 s, and the creation of containers for 56 s. So containers that may be in the
// way get the full weight for a while.
//
// The price is that weights count less then. A tenant who keeps one container at its memory
// limit has the full weight in all containers that are near theirs. One who makes starts slow,
// or keeps a lock of the host, switches the weights of the cell off for up to slowestStart at a
// time.

// raise adds to the reasons for which the container has the full weight, or takes from them.
func (c *container) raise(reasons int) {
	if c.cgroup == nil || c.spec.CPUWeight == 0 || c.spec.CPUWeight >= executor.MaxCPUWeight {
		return
	}
	c.weighing.Lock()
	defer c.weighing.Unlock()
	c.reasons += reasons
	if full := c.reasons > 0; full != c.full {
		weight := int64(c.spec.CPUWeight)
		if full {
			weight = executor.MaxCPUWeight
		}
		if c.cgroup.SetCPUWeight(weight) == nil { // else the next call tries again
			c.full = full
		}
	}
}

// raiseInTheWay raises the container until it is called with false, or tries again what has
// failed. Only one goroutine calls it.
func (c *container) raiseInTheWay(is bool) {
	reasons := 0
	switch {
	case is && !c.inTheWay:
		reasons = 1
	case !is && c.inTheWay:
		reasons = -1
	}
	c.inTheWay = is
	c.raise(reasons)
}

const (
	// slowStart is how long the first process of a container may take to start, or its
	// wire to be made, before those that may hold it up are raised.
	slowStart = 300 * time.Millisecond
	// slowestStart is how long they stay raised. A start that takes longer is held up by
	// something else, as by a volume that does not answer.
	slowestStart = 30 * time.Second
)

// raiseIfSlow raises all containers if the caller takes longer than slowStart, until it calls
// done. What holds it up is a lock of the kernel, and the process that has it needs processor
// time to give it back. To move a process to a cgroup, the kernel waits for all forks that go
// on on the host, and lets nobody else fork meanwhile.
func (b *Backend) raiseIfSlow() (done func()) {
	over := make(chan struct{})
	timer := time.AfterFunc(slowStart, func() {
		b.slow.Add(1)
		defer b.slow.Add(-1)
		made := b.made()
		for _, c := range made {
			c.raise(1)
		}
		select {
		case <-over:
		case <-time.After(slowestStart):
		}
		for _, c := range made {
			c.raise(-1)
		}
	})
	return func() {
		timer.Stop()
		close(over)
	}
}
