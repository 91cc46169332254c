//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"time"
)

// Many calls hold a lock while they read or write the memory of their process. If a page of
// it is not there, they wait for the lock of the whole memory, and other threads of the
// process decide how long that takes: sixty of them that change the rights of 12 GB of
// pages, which take 24 MiB, keep a call waiting for a minute. What the call holds may be
// the host's, for example the lock of a directory of host:. Not all such locks are known,
// so the Backend does not look at them. It ends containers in which a thread waits so for
// longer than stallPause, and which compute meanwhile. One that hardly computes may just
// be slow.

// stallPause is the time between two looks, at both of which a thread must be waiting, and
// stallShare the part of a processor, as a divisor, that its container must have used.
const stallPause, stallShare = 3 * time.Second, 2

// mostStalling is about how many threads of a container are looked at, some 10 µs each.
const mostStalling = 4096

// waitsForMemory is the kernel's function in which a thread sleeps that waits for the lock
// of its memory, because a page is not there. Inside a call, its stack is inCall.
var waitsForMemory, inCall = regexp.MustCompile(`page_fault|user_addr_fault|lock_mm_and_find_vma`), regexp.MustCompile(`(?s)page_fault.*(do_syscall|el0_svc)`)

// watchStalls ends containers whose calls wait for memory until done is closed.
func (b *Backend) watchStalls(done <-chan struct{}) {
	last := time.Now()
	for {
		select {
		case <-done:
			return
		case <-time.After(stallPause):
			now := time.Now()
			b.endStalls(now.Sub(last))
			last = now
		}
	}
}

// endStalls looks at the containers that have computed in the time since the look before.
// Only one goroutine calls it.
func (b *Backend) endStalls(since time.Duration) {
	busy := hostBusy()
	idle := busy-b.busy < since/stallShare // as most often: then no container has computed either
	b.busy = busy
	if idle {
		return
	}
	for _, c := range b.made() {
		used, _ := c.cgroup.CPU()
		computes := used-c.used >= since/stallShare
		c.used = used
		if !computes {
			continue
		}
		c.stalls.begin(func() {
			if c.stalled() {
				c.endFor(fmt.Sprintf("waited in a call for its own memory for longer than %v, and may have kept others from what the call holds", stallPause), dyingTime)
			}
		})
	}
}

// stalled reports whether a thread has been waiting for memory in a call since the call of
// stalled before. The kernel may wait before it answers: see [glance].
func (c *container) stalled() bool {
	before := c.waiting
	c.waiting = map[int]string{}
	threads := c.cgroup.Threads()
	step := 1 + len(threads)/mostStalling
	for i := rand.IntN(step); i < len(threads); i += step {
		thread := threads[i]
		if !waitsForMemory.Match(sleepsIn(thread)) {
			continue
		}
		times := switches(thread)
		c.waiting[thread] = times
		if times == "" || before[thread] != times {
			continue
		}
		var stack []byte
		c.stalls.Watch(func() { stack = stackOf(thread) })
		if inCall.Match(stack) {
			return true
		}
	}
	return false
}

// switches is how often a thread has begun to sleep. It stays the same as long as the thread
// sleeps.
func switches(thread int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	_, rest, _ := bytes.Cut(text, []byte("\nvoluntary_ctxt_switches:"))
	number, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(bytes.TrimSpace(number))
}

// hostBusy is how long the processors of the host have been computing, or waiting for their
// host to let them, since it booted.
func hostBusy() time.Duration {
	text, _ := os.ReadFile("/proc/stat") // cpu user nice system idle iowait irq softirq steal guest guest_nice
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var user, nice, system, idle, iowait, irq, softirq, steal int64
	_, _ = fmt.Sscanf(string(line), "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal)
	const perSecond = 100 // USER_HZ
	return time.Duration(user+nice+system+irq+softirq+steal) * time.Second / perSecond
}
