//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
)

// Linux looks for a process to kill in one container at a time, for the whole host. All
// that need memory beyond their container's limit wait for their turn meanwhile, and so
// may programs that read the command line of one that waits, as ps does. A container that
// forks without end at its limit holds up its neighbours in this way, and four do so for
// half a minute and more. One container does so too in which hundreds of processes take
// memory and give it back. They all wait, and few are killed, because there is room again
// when the turn of each comes. The Backend ends containers in which many wait. On a slow
// processor, few may wait at the moment of a count; so those that are killed count as well,
// where there are many. In a container with few processes, one is killed after the other
// and holds up nobody.

const (
	// stormPause is the time between two counts of the threads that wait, give or take a
	// fifth, so that nobody can wait with his next burst until a count is over.
	stormPause = 5 * time.Second
	// stormQueue is how many wait on the host in a storm. Each holds up the others for
	// some ms, or for 50 on busy processors.
	stormQueue = 15
	// leastQueue is how many wait in a container that a storm ends.
	leastQueue = 5
	// manyThreads are so many that most of them may wait.
	manyThreads = 32
	// dyingTime is how long the processes of a container that was ended may take to die.
	// It counts for nothing meanwhile, or others would look harmless beside it.
	dyingTime = 4 * stormPause
	// sampledThreads is about how many threads of a container are looked at. Each takes
	// 10 to 25 µs, and all containers may hold half of their memory for good.
	sampledThreads = 8
)

// inStorm tells which containers a storm ends, from how many wait in each of them now and
// have waited before: those with at least half as many as the worst one at this count, if
// some waited before. So neither a burst in one container makes it end, nor many
// containers with a few each.
func inStorm(before, now []int64) []bool {
	total := func(queues []int64) (all int64) {
		for _, n := range queues {
			all += n
		}
		return all
	}
	ends := make([]bool, len(now))
	if total(before) < stormQueue || total(now) < stormQueue {
		return ends
	}
	least := max(leastQueue, (slices.Max(now)+1)/2)
	for i, n := range now {
		ends[i] = n >= least && before[i] > 0
	}
	return ends
}

// watchStorms ends the containers in storms until done is closed.
func (b *Backend) watchStorms(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(stormPause*4/5 + rand.N(stormPause*2/5)):
			b.endStorms(sleepsIn)
		}
	}
}

// remembered is what before is at the next count. A burst of 80 makes a storm together with
// another one within 30 s.
func remembered(before, now int64) int64 { return max(now, before*3/4) }

// endStorms counts, from where sleepsIn says that threads sleep, and ends the containers in a
// storm as if they were out of memory as a whole. Only one goroutine calls it.
func (b *Backend) endStorms(sleepsIn func(thread int) []byte) {
	made := b.made()
	stall, known := cgroup.HostStall()
	calm := known && stall == b.stall
	b.stall = stall
	before, now := make([]int64, len(made)), make([]int64, len(made))
	for i, c := range made {
		if calm && c.queued == 0 {
			continue // as most often: looking at all is an eighth of what idle containers cost
		}
		before[i], now[i] = c.queued, c.queue(sleepsIn)
		c.queued = remembered(before[i], now[i])
	}
	for i, ends := range inStorm(before, now) {
		if ends {
			made[i].endForMemory(0)
		}
	}
	somebodyWaits := slices.ContainsFunc(now, func(n int64) bool { return n > 0 })
	for _, c := range made {
		c.raiseInTheWay(somebodyWaits && c.nearLimit())
	}
}

// nearLimit reports whether the kernel may be looking for a process of the container.
func (c *container) nearLimit() bool {
	limit := c.spec.Resources.MemoryMB << 20
	return limit > 0 && c.cgroup.Memory() >= limit/8*7
}

// queue estimates how many threads of the container wait until the kernel has looked for
// one to kill, from where it says that they sleep, and adds those that it has killed since
// the call before, if the container has many. The result is 0 for a container that was
// ended lately, and for one that has much room: those that wait make room for each other,
// but not so much. Only one goroutine calls it.
func (c *container) queue(sleepsIn func(thread int) []byte) int64 {
	kills := c.oomKills
	c.oomKills = max(kills, c.cgroup.OOMKills())
	kills = c.oomKills - kills
	limit := c.spec.Resources.MemoryMB << 20
	if limit <= 0 || c.endedWithin(dyingTime) || c.queued == 0 && c.cgroup.Memory() < limit/2 {
		return 0
	}
	threads := c.cgroup.Threads()
	step := 1 + len(threads)/sampledThreads
	n := 0
	if len(threads) >= manyThreads {
		n = int(kills)
	}
	for i := rand.IntN(step); i < len(threads); i += step {
		if bytes.HasPrefix(sleepsIn(threads[i]), []byte("mem_cgroup_out_of_memory")) {
			n += step
		}
	}
	return int64(n)
}

// sleepsIn is the kernel's function in which a thread sleeps. It is "0" on a kernel that
// does not name its functions. Reading it never waits for the thread.
func sleepsIn(thread int) []byte {
	function, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", thread))
	return function
}
