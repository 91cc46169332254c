//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// Linux looks for a process to kill in one container at a time, for the whole host. All
// that need memory beyond their container's limit wait for their turn meanwhile, and so
// may programs that read the command line of one that waits, as ps does. A container that
// forks without end at its limit holds up its neighbours in this way, and four do so for
// half a minute and more. One container does so too in which hundreds of processes take
// memory and give it back. They all wait, and few are killed, because there is room again
// when the turn of each comes. The Backend ends those that keep the kernel at it.

const (
	// stormPause is the time between two counts of the processes that the kernel has
	// killed and of those that wait.
	stormPause = 5 * time.Second
	// stormBurden is how many these are on the host in a storm. A storm of one container
	// can kill a hundred between two counts; many at a time kill fewer.
	stormBurden = 15
	// leastBurden is how many these are in a container that a storm ends.
	leastBurden = 5
	// dyingTime is how long the processes of a container that was ended may take to die.
	// It counts for nothing meanwhile, or others would look harmless beside it.
	dyingTime = 4 * stormPause
	// sampledThreads is about how many threads of a container are looked at. Each takes
	// 10 to 25 µs, and all containers may hold half of their memory for good.
	sampledThreads = 8
)

// inStorm tells which containers a storm ends: those with at least half of the worst
// one's burden at this count, of those that had a burden at the count before. So neither
// a burst in one container makes it end, nor many containers with a few each.
func inStorm(before, now []int64) []bool {
	total := func(burdens []int64) (all int64) {
		for _, n := range burdens {
			all += n
		}
		return all
	}
	ends := make([]bool, len(now))
	if total(before) < stormBurden || total(now) < stormBurden {
		return ends
	}
	least := max(leastBurden, (slices.Max(now)+1)/2)
	for i, n := range now {
		ends[i] = n >= least && before[i] > 0
	}
	return ends
}

// watchStorms ends the containers in storms until done is closed.
func (b *Backend) watchStorms(done <-chan struct{}) {
	counts := time.NewTicker(stormPause)
	defer counts.Stop()
	for {
		select {
		case <-done:
			return
		case <-counts.C:
			b.endStorms()
		}
	}
}

// endStorms counts, and ends the containers in a storm as if they were out of memory as a
// whole. Only one goroutine calls it.
func (b *Backend) endStorms() {
	made := b.made()
	before, now := make([]int64, len(made)), make([]int64, len(made))
	for i, c := range made {
		before[i] = c.burden
		c.burden = c.burdenForKernel()
		now[i] = c.burden
	}
	for i, ends := range inStorm(before, now) {
		if ends {
			made[i].endForMemory(0)
		}
	}
}

// burdenForKernel counts the processes that the kernel has killed for lack of memory since
// the call before, and the threads that wait until it has looked for one to kill. It is 0
// in a container that was ended lately.
func (c *container) burdenForKernel() int64 {
	before := c.oomKills
	c.oomKills = max(before, c.cgroup.OOMKills())
	if c.endedWithin(dyingTime) {
		return 0
	}
	limit := c.spec.Resources.MemoryMB << 20
	if c.queued == 0 && (limit <= 0 || c.cgroup.Memory() < limit/2) {
		return c.oomKills - before // those that wait make room for each other, but not so much
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
		if bytes.HasPrefix(sleepsIn(threads[i]), []byte("mem_cgroup_out_of_memory")) {
			n += int64(step)
		}
	}
	return n
}

// sleepsIn is the kernel's function in which a thread sleeps.
func sleepsIn(thread int) []byte {
	function, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", thread))
	return function
}
