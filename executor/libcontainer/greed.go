//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/network"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// Linux counts some memory for nobody. The worst is what an overlay keeps for an open
// directory: all its names, and once more for each descriptor that was opened after a
// change. Almost as bad is what waits in sockets, other than data on its way. A process
// of a small container can use up the memory of the host with either, and the kernel
// would end all others before that process. So when memory that the kernel cannot give
// back, and has not counted for containers, exceeds its share of the host's, the Backend
// ends the container that holds most of it beyond its limit, as if that was out of
// memory. Where none does, it ends one that may hide directories in sockets.

// scarceShare is the part of the host's memory, as a divisor, that the kernel may hold.
// On most hosts it holds a twentieth. leastAvailable is the part that must be left for
// programs.
const scarceShare, leastAvailable = 4, 8

const (
	// greedPause is the time between two looks at the kernel's memory, each of which
	// takes some 50 µs.
	greedPause = time.Second
	// The wait after a look at the containers is leastRestraint. It doubles as long as
	// the memory does not come back with the container that was ended, because it is
	// then held for something else, up to mostRestraint.
	leastRestraint, mostRestraint = 5 * time.Second, 10 * time.Minute
)

// watch ends greedy containers, and those in storms, until b.closing is closed. It closes
// b.unwatched at its end.
func (b *Backend) watch() {
	defer close(b.unwatched)
	var others sync.WaitGroup
	// Apart, because a look at 50,000 sockets takes some seconds of a processor.
	others.Go(func() { b.watchStorms(b.closing) })
	others.Go(func() { b.watchHostLocks(b.closing) })
	others.Go(func() { b.watchPipes(b.closing) })
	others.Go(func() { b.watchFileLocks(b.closing) })
	if b.network != nil {
		others.Go(func() { b.network.Watch(b.closing) })
		others.Go(func() { b.watchSockets(b.closing) })
	}
	b.watchMemory(b.closing)
	others.Wait()
}

// watchMemory ends greedy containers until done is closed.
func (b *Backend) watchMemory(done <-chan struct{}) {
	var r restraint
	for {
		select {
		case <-done:
			return
		case <-time.After(greedPause):
			if text, err := os.ReadFile("/proc/meminfo"); err == nil {
				held, much, worst := scarce(string(text), cachedByZFS(), b.countedForContainers)
				r.look(time.Now(), held, much, func() int64 { return b.endGreediest(worst) })
			}
		}
	}
}

// watchSockets ends containers in which most data waits for nobody, before all connections
// of the host have to wait for memory, until done is closed. What is in connections that a
// process has accepted counts as memory of its container.
func (b *Backend) watchSockets(done <-chan struct{}) {
	pause := greedPause
	for {
		select {
		case <-done:
			return
		case <-time.After(pause):
		}
		pause = greedPause
		began := time.Now()
		if held, much := heldByTCP("/proc"); much && b.endHolders(held/2) == 0 {
			pause = max(greedPause, 9*time.Since(began)) // a look may take seconds
		}
	}
}

// A restraint keeps the Backend from ending one container after another for memory that
// none of them holds.
type restraint struct {
	pause time.Duration
	next  time.Time
	// held is what the kernel held at the last end, and freed what that was to free.
	held, freed int64
}

// look lets end end a container, if that is due. end returns what it expects to come
// back, 0 if it has ended none.
func (r *restraint) look(now time.Time, held int64, much bool, end func() (freed int64)) {
	switch {
	case !much:
		*r = restraint{}
	case now.Before(r.next):
	default:
		if r.freed > 0 && held > r.held-r.freed/4 {
			r.pause = min(2*r.pause, mostRestraint)
		} else {
			r.pause = leastRestraint
		}
		r.held, r.freed = held, end()
		r.next = now.Add(r.pause)
	}
}

// scarce reads in the text of /proc/meminfo how many bytes the kernel holds that it
// cannot give back and has not counted for containers, and whether that is too much.
// It is worst if hardly anything is left, or all of it is surely the kernel's own.
// zfs is how much ZFS keeps and gives back. counted is how much the kernel has counted
// for containers; that is only asked if need be.
func scarce(meminfo string, zfs int64, counted func() int64) (held int64, much, worst bool) {
	kib := map[string]int64{}
	for line := range strings.Lines(meminfo) {
		name, rest, _ := strings.Cut(line, ":")
		kib[name], _ = strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
	}
	sum := func(names ...string) (bytes int64) {
		for _, name := range names {
			bytes += kib[name] << 10
		}
		return bytes
	}
	total, own := sum("MemTotal"), sum("SUnreclaim")
	// Data in sockets and pipes is in pages that no line counts. So is what drivers and
	// the machine below a virtual one have taken.
	unlisted := total - zfs - sum("MemFree", "Buffers", "Cached", "SwapCached", "AnonPages", "SReclaimable", "SUnreclaim",
		"KernelStack", "PageTables", "SecPageTables", "VmallocUsed", "Percpu", "Zswap", "Hugetlb", "Balloon")
	share := total / scarceShare
	if held = own + max(0, unlisted); held <= share {
		return held, false, false
	}
	// Of what is counted for containers, as much as possible may be in other lines.
	known := max(0, counted()-sum("SReclaimable", "KernelStack", "PageTables", "Percpu"))
	held -= known
	much = held > share
	return held, much, much && (own-known > share || sum("MemAvailable")+zfs < total/leastAvailable)
}

// heldByTCP reads in proc how many bytes the kernel counts for the TCP connections of all
// networks, and whether that is more than a third of its limit.
func heldByTCP(proc string) (bytes int64, much bool) {
	sockstat, err := os.ReadFile(proc + "/net/sockstat")
	limits, limitsErr := os.ReadFile(proc + "/sys/net/ipv4/tcp_mem")
	numbers := strings.Fields(string(limits))
	if err != nil || limitsErr != nil || len(numbers) == 0 {
		return 0, false
	}
	limit, _ := strconv.ParseInt(numbers[len(numbers)-1], 10, 64)
	for line := range strings.Lines(string(sockstat)) {
		// As in "TCP: inuse 7 orphan 0 tw 2 alloc 8 mem 1", in pages.
		if f := strings.Fields(line); len(f) > 2 && f[0] == "TCP:" && f[len(f)-2] == "mem" {
			pages, _ := strconv.ParseInt(f[len(f)-1], 10, 64)
			return pages * int64(os.Getpagesize()), pages > limit/3
		}
	}
	return 0, false
}

// cachedByZFS is the size of the cache of ZFS, which is in no line of /proc/meminfo and
// may take half of the host's memory; 0 where there is no ZFS.
func cachedByZFS() int64 {
	text, _ := os.ReadFile("/proc/spl/kstat/zfs/arcstats")
	return sizeOfARC(string(text))
}

// sizeOfARC reads the line "size 4 BYTES".
func sizeOfARC(arcstats string) int64 {
	for line := range strings.Lines(arcstats) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "size" {
			n, _ := strconv.ParseInt(f[2], 10, 64)
			return n
		}
	}
	return 0
}

// countedForContainers is the kernel's memory that cgroups count.
func (b *Backend) countedForContainers() (bytes int64) {
	for _, c := range b.made() { // nobody waits for these reads, each of which may take a millisecond
		bytes += c.cgroup.KernelMemory()
	}
	return bytes
}

// made are the containers that have been created and not yet forgotten.
func (b *Backend) made() []*container {
	b.mu.Lock()
	defer b.mu.Unlock()
	made := make([]*container, 0, len(b.containers))
	for _, c := range b.containers {
		if c.made {
			made = append(made, c)
		}
	}
	return made
}

// unlimitedGreed is what a container without a memory limit may hold.
const unlimitedGreed = 1 << 30

// endHolders ends containers in which data waits in connections that no process has, until
// as much as is wanted is expected to come back. One with no more than an even part of that
// goes on, so that a server with a long queue does not end for others. It begins with those
// that have most sockets, because a look at one container walks through the sockets of all.
func (b *Backend) endHolders(wanted int64) (freed int64) {
	type holder struct {
		c       *container
		dying   bool
		sockets int64
	}
	var holders []holder
	for _, c := range b.made() {
		h := holder{c, c.endedWithin(dyingTime), network.InUse(fmt.Sprintf("/proc/%d/net", c.initPID))}
		if h.dying {
			h.sockets = math.MaxInt64 // what it holds is expected back already
		}
		holders = append(holders, h)
	}
	slices.SortFunc(holders, func(a, b holder) int { return cmp.Compare(b.sockets, a.sockets) })
	part := wanted / int64(max(1, len(holders)))
	for _, h := range holders {
		select {
		case <-b.closing:
			return freed
		default:
		}
		if freed >= wanted {
			break
		}
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", h.c.initPID))
		if err != nil {
			continue // it has ended
		}
		held := network.Unaccepted(ns)
		ns.Close()
		if held > part && (h.dying || h.c.endForMemory(mostRestraint)) {
			freed += held
		}
	}
	return freed
}

// endGreediest ends the processes of the container that holds most beyond its memory
// limit, if there is one, and returns what it holds. It takes the next one if the first
// was ended lately or cannot be. At worst, it also ends one that may hide what it holds.
func (b *Backend) endGreediest(worst bool) (freed int64) {
	type suspect struct {
		c            *container
		held, beyond int64
	}
	var suspects []suspect
	for _, c := range b.made() {
		suspects = append(suspects, suspect{c: c})
	}
	var locks lockSample
	if worst {
		locks = sampleLocks()
	}
	for i := range suspects {
		s := &suspects[i]
		limit := s.c.spec.Resources.MemoryMB << 20
		if limit <= 0 {
			limit = unlimitedGreed
		}
		held, waiting, unknown, hides := s.c.inSight(func() (_, _, _ int64) { return s.c.uncounted(locks) })
		if worst {
			held += bytesOfUnseen * waiting
			s.beyond = waiting + unknown
		}
		if hides {
			s.beyond++ // more suspect than one that holds nothing
		}
		s.held, s.beyond = held, max(held-limit, s.beyond)
	}
	slices.SortFunc(suspects, func(a, b suspect) int { return cmp.Compare(b.beyond, a.beyond) })
	for _, s := range suspects {
		if s.beyond > 0 && s.c.endForMemory(mostRestraint) {
			return max(1, s.held) // nobody knows how much it was if that cannot be seen
		}
	}
	return 0
}

// endedWithin reports whether endForMemory has ended the processes less than d ago.
func (c *container) endedWithin(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.greedy) < d
}

// endForMemory is endFor for lack of memory.
func (c *container) endForMemory(pause time.Duration) bool { return c.endFor("", pause) }

// endFor ends all processes, whose ends then say the cause, or that they were out of memory
// if it is empty, and reports whether it could. It does not wait for them. It does nothing where it did
// the same less than pause ago.
func (c *container) endFor(cause string, pause time.Duration) bool {
	if !c.life.TryRLock() {
		return false // it is being deleted
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone.Load() || time.Since(c.greedy) < pause {
		c.life.RUnlock()
		return false
	}
	c.greedy = time.Now()
	for _, p := range c.running {
		p.greedy, p.cause = true, cause
	}
	go func() {
		defer c.life.RUnlock()
		c.raise(1) // processes die with the time of their container
		time.AfterFunc(dyingTime, func() { c.raise(-1) })
		_ = c.signal(everybody, executor.Kill)
	}()
	return true
}

// sightPatience is how long the kernel may keep a look at a container waiting.
const sightPatience = 2 * time.Second

// inSight is uncounted. The container hides if the kernel waits for a thread of it before it
// says what descriptors that has.
func (c *container) inSight(uncounted func() (bytes, waiting, unknown int64)) (bytes, waiting, unknown int64, hides bool) {
	var found [3]int64
	if !c.sights.complete(sightPatience, func() { found[0], found[1], found[2] = uncounted() }) {
		return 0, 0, 0, true
	}
	return found[0], found[1], found[2], false
}

// uncounted estimates the bytes that the kernel holds for open directories and sockets of
// the container and counts for nobody. waiting is how many descriptors have waited in
// sockets since the call before: they may be sockets in which others wait, so any number
// of directories may be behind them. unknown is how many sockets nobody can ask, among
// them those of other networks that the container had at the call before, and file locks
// of those that were looked at, if they are many. Either makes the container a suspect,
// but the last one. Only one goroutine calls it.
func (c *container) uncounted(locks lockSample) (bytes, waiting, unknown int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", c.initPID))
	if err != nil {
		return 0, 0, 0 // it has ended
	}
	var sockets network.Sockets
	if b := c.backend; b.network != nil { // else the sockets are in the host's own network
		if ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.initPID)); err == nil {
			defer ns.Close()
			sockets, _ = network.SocketsIn(ns)
		}
	}
	bytes = sockets.Bytes
	seen := sight{closing: c.backend.closing, overlays: overlaysIn(string(text)), locks: locks, files: map[string]bool{}, sockets: sockets.Listed, strange: map[uint64]bool{}}
	for _, dir := range c.below {
		if f, err := os.Open(dir); err == nil {
			defer f.Close()
			seen.below = append(seen.below, f)
		}
	}
	for _, pid := range c.cgroup.Processes() {
		tasks := fmt.Sprintf("/proc/%d/task", pid)
		entries, err := os.ReadDir(tasks)
		if err != nil {
			continue // it has ended
		}
		seen.locked += locks.processes[pid]
		last := 0
		for _, e := range entries {
			task, _ := strconv.Atoi(e.Name())
			if last != 0 && (sharesFiles(pid, task) || sharesFiles(last, task)) {
				continue
			}
			bytes += seen.uncountedOf(tasks + "/" + e.Name())
			last = task
		}
	}
	if unknown = max(sockets.Unlisted, common(seen.strange, c.strange)); unknown < manyUnlisted {
		unknown = 0
	}
	c.strange = seen.strange
	if seen.locked += locks.on(seen.overlays); seen.locked >= manyLocks {
		unknown += seen.locked
	}
	waiting, c.waited = min(seen.waiting, c.waited), seen.waiting
	return bytes, waiting, unknown
}

// common counts what two sets have in common.
func common(a, b map[uint64]bool) (n int64) {
	for x := range a {
		if b[x] {
			n++
		}
	}
	return n
}

// overlaysIn returns the devices of the overlays in the text of a mountinfo, as
// "MAJOR:MINOR".
func overlaysIn(mountinfo string) map[string]bool {
	devices := map[string]bool{}
	for line := range strings.Lines(mountinfo) {
		mount, fs, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(mount); len(fields) > 2 && strings.HasPrefix(fs, "overlay ") {
			devices[fields[2]] = true
		}
	}
	return devices
}

// A sight is what is needed to judge the open directories of a container: the devices
// of its overlays, and the directories below its own layer. It counts the descriptors
// that wait in sockets, and the file locks.
type sight struct {
	closing <-chan struct{} // ends the look, which Close waits for

	overlays map[string]bool
	below    []*os.File
	waiting  int64

	locks  lockSample
	files  map[string]bool // whose locks have been counted
	locked int64

	sockets map[uint64]bool // that the container's network lists; nil if that is not known
	strange map[uint64]bool // that it does not, such as those of another container's network
}

// sharesFiles reports whether two threads have the same table of descriptors.
func sharesFiles(a, b int) bool {
	const files = 2 // KCMP_FILES
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), files, 0, 0, 0)
	return errno == 0 && r == 0
}

const (
	// An overlay takes 96 bytes for a name that takes 12 in its directory.
	bytesOfByte = 8
	// leastDirectory is the size of a directory with few names.
	leastDirectory = 4096
	// bytesOfPart is what ext4 keeps for a descriptor of a larger directory: the names
	// of the part that was read last. It takes some 11 KiB.
	bytesOfPart = 16 << 10
	// manyUnlisted is more than programs have that use sockets one after the other: a
	// socket that was closed goes some ms later.
	manyUnlisted = 100
	// bytesOfUnseen is assumed for a descriptor that waits in a socket, and for a
	// directory that was removed, whose size can no longer be seen.
	bytesOfUnseen = 16 << 20
)

// uncountedOf is for the descriptors of a thread, whose directory in /proc is given. It
// asks no server of a file system.
func (x *sight) uncountedOf(thread string) (bytes int64) {
	fds, err := os.Open(thread + "/fd")
	if err != nil {
		return 0
	}
	defer fds.Close()
	for {
		names, err := fds.Readdirnames(1024)
		if err != nil {
			return bytes
		}
		select {
		case <-x.closing:
			return bytes // all containers end
		default:
		}
		for _, name := range names {
			var s unix.Statx_t
			if unix.Statx(int(fds.Fd()), name, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_SIZE|unix.STATX_INO, &s) != nil {
				continue
			}
			device := fmt.Sprintf("%d:%d", s.Dev_major, s.Dev_minor)
			if len(x.locks.files) > 0 && !x.overlays[device] { // of overlays, all are the container's
				x.lock(lockedFile(s.Dev_major, s.Dev_minor, s.Ino))
			}
			switch kind := s.Mode & unix.S_IFMT; {
			case kind == unix.S_IFSOCK:
				if x.sockets != nil && !x.sockets[s.Ino] {
					x.strange[s.Ino] = true
				}
				x.waiting += passed(thread + "/fdinfo/" + name)
			case kind == unix.S_IFDIR && x.overlays[device]:
				bytes += x.directory(thread+"/fd/"+name, int64(s.Size))
			case kind == unix.S_IFDIR && s.Size > leastDirectory:
				bytes += bytesOfPart
			}
		}
	}
}

// lock counts the locks of an open file, once.
func (x *sight) lock(file string) {
	if !x.files[file] {
		x.files[file] = true
		x.locked += x.locks.files[file]
	}
}

// directory is for an open directory of an overlay, whose topmost layer has size bytes.
func (x *sight) directory(descriptor string, size int64) int64 {
	path, err := os.Readlink(descriptor)
	if err != nil {
		return 0
	}
	path, removed := strings.CutSuffix(path, " (deleted)")
	for _, dir := range x.below {
		if s, err := rootfs.Stat(dir, path); err == nil {
			size += s.Size
		}
	}
	held := bytesOfByte * max(leastDirectory, size)
	if removed {
		held = max(held, bytesOfUnseen)
	}
	return held
}

// passed is how many descriptors wait in a socket, as a file in /proc says.
func passed(fdinfo string) int64 {
	text, err := os.ReadFile(fdinfo)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "scm_fds:"); ok {
			count, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return count
		}
	}
	return 0
}
