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
// way get the full weight for a while. The price is that weights count less then, and that
// one who keeps a container at its memory limit has the full weight in all that are near
// theirs.

// hurry adds a reason for which the container has the full weight, or takes one back, which
// is -1. Where it fails, nothing has changed.
func (c *container) hurry(reason int) error {
	if c.cgroup == nil || c.spec.CPUWeight == 0 || c.spec.CPUWeight >= executor.MaxCPUWeight {
		return nil
	}
	c.weighing.Lock()
	defer c.weighing.Unlock()
	had, has := c.hurries > 0, c.hurries+reason > 0
	if had != has {
		weight := int64(c.spec.CPUWeight)
		if has {
			weight = executor.MaxCPUWeight
		}
		if err := c.cgroup.SetCPUWeight(weight); err != nil {
			return err
		}
	}
	c.hurries += reason
	return nil
}

// hasten hurries the container until it is called with false. Only one goroutine calls it.
func (c *container) hasten(hasty bool) {
	if hasty == c.hasty {
		return
	}
	reason := 1
	if !hasty {
		reason = -1
	}
	if c.hurry(reason) == nil { // else it is tried again
		c.hasty = hasty
	}
}

// slowStart is how long the first process of a container may take to start before those
// that may hold it up are hurried.
const slowStart = 300 * time.Millisecond

// hurryIfSlow hurries all containers if the caller takes longer than slowStart, until it
// calls done. To move a process to a cgroup, the kernel waits for all forks that go on on
// the host, and lets nobody else fork meanwhile.
func (b *Backend) hurryIfSlow() (done func()) {
	var hurried []*container
	timer := time.NewTimer(slowStart)
	over, noted := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(noted)
		select {
		case <-over:
		case <-timer.C:
			for _, c := range b.made() {
				if c.hurry(1) == nil {
					hurried = append(hurried, c)
				}
			}
		}
	}()
	return func() {
		timer.Stop()
		close(over)
		<-noted
		for _, c := range hurried {
			_ = c.hurry(-1)
		}
	}
}
