//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// Linux looks for a process to kill in one container at a time, for the whole host. All
// that need memory beyond their container's limit wait for their turn meanwhile, and so
// may programs that read the command line of one that waits, as ps does. A container that
// forks without end at its limit holds up its neighbours in this way, and four do so for
// half a minute and more. So does one in which hundreds of processes take memory and give
// it back: those that wait are many, and hardly any is killed because there is room again
// when its turn comes. The Backend ends those that keep the kernel at it.

const (
	// stormPause is the time between two counts of the processes that the kernel has
	// killed and of those that wait.
	stormPause = 5 * time.Second
	// stormVictims is how many those are in a storm. A storm of one container can kill a
	// hundred between two counts; many at a time kill fewer.
	stormVictims = 15
	// sampledThreads is about how many threads of a container are looked at. Each takes
	// 10 µs, and any number of containers may be near their limits for good, with files
	// that the kernel could drop.
	sampledThreads = 32
)

// A storm goes on if it raged at the count before.
type storm struct{ raging bool }

// count is told how many victims each container has: the processes that the kernel has
// killed since the count before, and those that wait. It returns how many make a container
// end: at least half of what the worst has, and never a single one. A burst, which is in
// one count, makes none end.
func (s *storm) count(victims []int64) (least int64) {
	var all int64
	for _, n := range victims {
		all += n
	}
	before := s.raging
	s.raging = all >= stormVictims
	if !before || !s.raging {
		return math.MaxInt64
	}
	return max(2, (slices.Max(victims)+1)/2)
}

// watchStorms ends the containers in storms until done is closed.
func (b *Backend) watchStorms(done <-chan struct{}) {
	var s storm
	counts := time.NewTicker(stormPause)
	defer counts.Stop()
	for {
		select {
		case <-done:
			return
		case <-counts.C:
			b.endStorms(&s)
		}
	}
}

// endStorms counts, and ends the containers that have too many victims as if they were
// out of memory as a whole. Only one goroutine calls it.
func (b *Backend) endStorms(s *storm) {
	made := b.made()
	victims := make([]int64, len(made))
	for i, c := range made {
		victims[i] = c.victimsOfStorm()
	}
	least := s.count(victims)
	for i, c := range made {
		if victims[i] >= least {
			c.endForMemory()
		}
	}
}

// victimsOfStorm counts the processes that the kernel has killed for lack of memory since
// the call before, and the threads that wait until it has looked for one to kill. Only one
// goroutine calls it.
func (c *container) victimsOfStorm() int64 {
	before := c.oomKills
	c.oomKills = max(before, c.cgroup.OOMKills())
	limit := c.spec.Resources.MemoryMB << 20
	if c.queued == 0 && (limit <= 0 || c.cgroup.Memory() < limit/2) {
		return c.oomKills - before // most containers never come near their limit
	}
	c.queued = queuedForMemory(c.cgroup.Threads())
	return c.oomKills - before + c.queued
}

// queuedForMemory estimates how many of some threads wait for the kernel's look, from
// where it says that they sleep. Reading that never waits for them. On a kernel that does
// not name its functions, none does.
func queuedForMemory(threads []int) (n int64) {
	step := 1 + len(threads)/sampledThreads
	for i := rand.IntN(step); i < len(threads); i += step {
		function, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", threads[i]))
		if bytes.HasPrefix(function, []byte("mem_cgroup_out_of_memory")) {
			n += int64(step)
		}
	}
	return n
}
