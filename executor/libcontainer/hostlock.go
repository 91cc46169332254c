//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Linux has some locks of which there is one for the whole host. It changes the networks of
// all containers under one, and under another one each epoll that is or has a nested one.
// Each directory has a lock, and all containers on host: share those of the host: as long as
// one reads names, no program of the host changes the directory, and as long as one of these
// waits for that, nobody looks a new name up there. A container may hold such locks in calls
// that wait for the memory of their process. The list of addresses (SIOCGIFCONF) holds that
// of the networks while it is written there, and getdents that of a directory. A process
// decides how long that takes: it may change the rights of a huge mapping at the same time,
// or have too little memory. Hundreds of threads that take such a lock all the time keep it
// too, because each of them that has it waits for a processor before it gives it back. The
// Backend asks for these locks once a second. As long as it waits, it looks for threads in
// containers that hold one in this way, and for containers in which many threads take it at
// once, and ends containers that do so often.

const (
	// lockPatience is how long a lock may be held before the Backend looks for those who
	// hold it, and between two looks.
	lockPatience = 100 * time.Millisecond
	// mostHolds is how often a container may be found to hold a lock within holdsTime,
	// of which one in each second counts. It may happen to a program whose memory is on a
	// slow disk.
	mostHolds, holdsTime = 3, time.Minute
	// outage is how long everybody may have waited for a lock before once is too often.
	outage = 2 * time.Second
	// lookTime is how long a look waits for its results, and hangTime how long the kernel
	// may take to say where one thread sleeps.
	lookTime, hangTime = 200 * time.Millisecond, 50 * time.Millisecond
	// alarm is for how long, after a container was ended for a lock, it is enough to be found
	// once: the same tenant may have others, or start it again.
	alarm = time.Minute
	// lookedAt is about how many threads a look reaches in all containers, and lookedAtEach
	// how many at least in each. One takes 10 to 20 µs.
	lookedAt, lookedAtEach = 4096, 128
	// flood is more threads than a program has that take the same lock at the same time.
	flood = 16
)

// A hostLock is such a lock.
type hostLock struct {
	take func() // waits for it, and gives it back; it may do nothing
	// holds matches the stack in the kernel of a thread that holds it while its call waits
	// for the memory of its process, and of no call that waits for the lock itself. A call
	// with the lock may also wait for one that has none: then changes matches the first
	// one, whose stack does not show whether it has the lock, and waits the second.
	holds, changes, waits *regexp.Regexp
	// takes matches the stack of a thread that has the lock, waits for it, or is in a call that
	// may take it. It and holds may be nil.
	takes *regexp.Regexp
}

// hostLocks are those that the Backend watches. A call with the lock of the networks may wait
// for a thread that waits for memory and has locked the same socket. Before Linux 6.4, to
// close an epoll, or what it watches, takes the lock of nested epolls too. The lock of all
// mounts is held while a process reads which it has, and each start takes it a hundred times.
func hostLocks() []*hostLock {
	dirs := sharedDirectories()
	return []*hostLock{
		{
			take: takeNetworkLock, holds: regexp.MustCompile(`(?s)(page_fault|lock_sock).*(dev_ioctl|dev_ifconf|gifconf|dev_ethtool|inet_ioctl|do_ip(v6)?_[gs]etsockopt|ip_mc_|mcast_msfilter)`),
			takes: regexp.MustCompile(`dev_ioctl|dev_ifconf|do_ip(v6)?_setsockopt`), // not netlink, which every lookup of a name uses on some kernels
		},
		{
			take: takeEpollLock, holds: regexp.MustCompile(`^\[<0>\] (ep_loop_check|ep_insert)`),
			changes: regexp.MustCompile(`^\[<0>\] (do_epoll_ctl|eventpoll_release|ep_free)`), waits: regexp.MustCompile(`(?s)page_fault.*(ep_send_events|ep_poll|epoll_wait)`),
		},
		{take: func() { takeDirectoryLocks(dirs) }, holds: regexp.MustCompile(`(?s)page_fault.*(filldir|iterate_dir)`)},
		// What a process reads below seq_read are its own mappings.
		{take: takeMountLock, takes: regexp.MustCompile(`show_(mountinfo|vfsmnt|vfsstat)| m_start\S*\n\S+ seq_read_iter\S*\n\S+ ([^s]|s[^e]|se[^q])|(stat|list)mount`)},
		// That of /sys, for which only a change of the host's devices waits.
		{take: func() {}, takes: regexp.MustCompile(` kernfs_[di]op_`)},
	}
}

// sharedDirectories are those of the host in which most programs look names up.
func sharedDirectories() (dirs []string) {
	for _, pattern := range []string{"/", "/usr", "/usr/*", "/usr/local/*", "/usr/lib/*-linux-gnu*"} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	return dirs
}

// watchHostLocks ends containers that hold a lock of the host until done is closed.
func (b *Backend) watchHostLocks(done <-chan struct{}) {
	var watches sync.WaitGroup
	for _, l := range hostLocks() {
		watches.Go(func() { b.watchHostLock(l, done) })
	}
	watches.Wait()
}

func (b *Backend) watchHostLock(l *hostLock, done <-chan struct{}) {
	var alarmed time.Time // until then
	for {
		select {
		case <-done:
			return
		case <-time.After(greedPause):
		}
		asked, free := time.Now(), make(chan struct{})
		lower := b.raiseIfSlow() // one that has the lock may wait for a processor
		go func() {
			defer close(free)
			defer lower()
			l.take()
		}()
		for pause := lockPatience; ; {
			select {
			case <-done:
				return
			case <-free:
			case <-time.After(pause):
				began := time.Now()
				each := max(lookedAtEach, lookedAt/max(1, len(b.made())))
				if b.endLockHolders(l, each, began.Sub(asked) > outage, began.Before(alarmed), stackOf) {
					alarmed = began.Add(alarm)
				}
				pause = max(lockPatience, 4*time.Since(began))
				continue
			}
			break
		}
		// The kernel gives some locks to those who find them free before those who wait, as a
		// start may.
		if now := time.Now(); l.takes != nil && b.slow.Load() > 0 && b.endLockHolders(l, lookedAtEach, false, now.Before(alarmed), stackOf) {
			alarmed = now.Add(alarm)
		}
	}
}

// takeNetworkLock waits for the lock, and gives it back.
func takeNetworkLock() {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return // it looks free until there are descriptors again
	}
	defer unix.Close(socket)
	var list struct { // struct ifconf, which asks how long the list is
		length int32
		_      int32
		buffer uintptr
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCGIFCONF, uintptr(unsafe.Pointer(&list)))
}

// takeEpollLock is the same for the lock of nested epolls.
func takeEpollLock() {
	outer, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return
	}
	defer unix.Close(outer)
	inner, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return
	}
	defer unix.Close(inner)
	// Not unix.EpollCtl, of which Go's scheduler does not know that it may wait.
	_, _, _ = unix.Syscall6(unix.SYS_EPOLL_CTL, uintptr(outer), unix.EPOLL_CTL_ADD, uintptr(inner), uintptr(unsafe.Pointer(&unix.EpollEvent{})), 0, 0)
}

// takeMountLock is the same for the lock of all mounts, which five copies of a mount take ten
// times: a start takes it far more often.
func takeMountLock() {
	for range 5 {
		if fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err == nil {
			unix.Close(fd)
		}
	}
}

// takeDirectoryLocks is the same for the locks of directories. No file has so long a name, and
// only the file system knows that, so the kernel takes the lock and remembers nothing.
func takeDirectoryLocks(dirs []string) {
	for _, dir := range dirs {
		var s unix.Stat_t
		_ = unix.Lstat(dir+"/"+longName, &s)
	}
}

var longName = strings.Repeat("x", 256)

// endLockHolders looks at some threads of each container, and ends containers that have held
// a lock too often, or many of whose threads have taken it too often. Once is too often after
// such an end and, for those that hold it, during an outage, because others may be waiting to
// hold the lock next; but not where a stack does not show who has it. Threads that take a lock
// which another container holds only wait for it, and so may those of a container that has
// far fewer than another. A container that keeps the kernel from saying where its threads are
// counts as if it held the lock.
func (b *Backend) endLockHolders(l *hostLock, each int, outage, alarmed bool, stackOf func(thread int) []byte) (ended bool) {
	b.looking.Lock()
	defer b.looking.Unlock()
	made := b.made()
	var looks []<-chan struct{}
	for _, c := range made {
		over := c.looks.begin(func() {
			holds, taking := c.lookFor(l, each, stackOf)
			if holds {
				c.holding.Store(true)
			}
			c.taking.Store(int64(taking))
		})
		if over != nil {
			looks = append(looks, over)
		}
	}
	timeout := time.After(lookTime)
	for _, over := range looks {
		select {
		case <-over:
			continue
		case <-timeout:
		}
		break
	}
	held, most := false, int64(flood)
	for _, c := range made {
		held = held || c.holding.Load()
		most = max(most, c.taking.Load())
	}
	for _, c := range made {
		holds, taking := c.holding.Swap(false), c.taking.Swap(0)
		floods := !held && taking >= flood && 2*taking >= most
		var cause string
		switch {
		case holds:
			cause = "held a lock that the kernel has for the whole host, by calls that wait for memory"
		case floods:
			cause = "held up the whole host: many of its threads took a lock of the kernel all the time"
		case c.looks.Stuck(hangTime, "proc_pid", "lock_trace"):
			cause = "kept the daemon from seeing whether it holds a lock that the kernel has for the whole host"
		default:
			continue
		}
		once := l.changes == nil && (holds && outage || (holds || floods) && alarmed)
		if c.holds.often(time.Now()) || once {
			c.endFor(cause, dyingTime)
			ended = true
		}
	}
	return ended
}

// lookFor looks at about most threads, beginning with any. It reports whether one of them
// holds the lock, and how many take it.
func (c *container) lookFor(l *hostLock, most int, stackOf func(thread int) []byte) (holds bool, taking int) {
	threads := c.cgroup.Threads()
	step := 1 + len(threads)/most
	changes, waits := false, false
	for i := rand.IntN(step); i < len(threads); i += step {
		var stack []byte
		c.looks.Watch(func() { stack = stackOf(threads[i]) })
		if l.changes != nil {
			changes = changes || l.changes.Match(stack)
			waits = waits || l.waits.Match(stack)
		}
		if l.holds != nil && l.holds.Match(stack) || changes && waits {
			return true, taking
		}
		if l.takes != nil && l.takes.Match(stack) {
			taking++
		}
	}
	return false, taking
}

// holds are how often a container has held a lock.
type holds struct {
	number      int
	first, last time.Time
}

// often counts one more, and reports whether there are too many.
func (h *holds) often(now time.Time) bool {
	if now.Sub(h.first) > holdsTime {
		*h = holds{first: now}
	}
	if now.Sub(h.last) >= time.Second {
		h.number++
		h.last = now
	}
	return h.number >= mostHolds
}

// stackOf is where a thread is in the kernel, whether it sleeps or waits for a processor. It
// is empty on a kernel that does not say so, and for a thread that runs, which on arm64 may
// have the one that it had last. The kernel may wait for a thread that is becoming another
// program.
func stackOf(thread int) []byte {
	stack, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stack", thread))
	return stack
}
