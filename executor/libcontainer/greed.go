//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// Linux counts some memory for nobody. The worst is what an overlay keeps for an open
// directory: all its names, and once more for each descriptor that was opened after a
// change. A process of a small container can use up the memory of the host with it, and
// the kernel would end all others before that process. So when memory that the kernel
// cannot give back exceeds its share of the host's, the Backend ends the container that
// holds most of it by open directories beyond its limit, as if that was out of memory.

// scarceShare is the part of the host's memory, as a divisor, that the kernel may hold.
// On most hosts it holds a twentieth.
const scarceShare = 4

// greedPause is the time between two looks at the kernel's memory, each of which takes
// some 50 µs.
const greedPause = time.Second

// watchGreed ends greedy containers until done is closed.
func (b *Backend) watchGreed(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(greedPause):
		}
		if text, err := os.ReadFile("/proc/meminfo"); err == nil && scarce(string(text)) {
			b.endGreediest()
		}
	}
}

// scarce judges the text of /proc/meminfo.
func scarce(meminfo string) bool {
	var total, held int64
	for line := range strings.Lines(meminfo) {
		name, rest, _ := strings.Cut(line, ":")
		if name != "MemTotal" && name != "SUnreclaim" {
			continue
		}
		n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if name == "MemTotal" {
			total = n
		} else {
			held = n
		}
	}
	return held > total/scarceShare
}

// unlimitedGreed is what a container without a memory limit may hold.
const unlimitedGreed = 1 << 30

// endGreediest ends the processes of the container that holds most beyond its memory
// limit, if there is one.
func (b *Backend) endGreediest() {
	b.mu.Lock()
	var all []*container
	for _, c := range b.containers {
		if c.made {
			all = append(all, c)
		}
	}
	b.mu.Unlock()
	var greediest *container
	most := int64(0)
	for _, c := range all {
		limit := c.spec.Resources.MemoryMB << 20
		if limit <= 0 {
			limit = unlimitedGreed
		}
		if beyond := c.uncounted() - limit; beyond > most {
			greediest, most = c, beyond
		}
	}
	if greediest != nil {
		greediest.endForMemory()
	}
}

// endForMemory ends all processes. Their ends say that they were out of memory.
func (c *container) endForMemory() {
	if c.enter() != nil {
		return
	}
	defer c.life.RUnlock()
	c.mu.Lock()
	c.greedy += int64(len(c.running))
	c.mu.Unlock()
	_ = c.signal(everybody, executor.Kill) // the next look finds what is left
}

// oomKills is how many processes were ended for lack of memory, by the kernel or by us.
// The caller holds mu.
func (c *container) oomKills() int64 { return c.cgroup.OOMKills() + c.greedy }

// uncounted estimates the bytes that the kernel holds for open directories of the
// container and counts for nobody.
func (c *container) uncounted() (bytes int64) {
	var below []*os.File
	for _, dir := range c.below {
		if f, err := os.Open(dir); err == nil {
			defer f.Close()
			below = append(below, f)
		}
	}
	for _, pid := range c.cgroup.Processes() {
		tasks := fmt.Sprintf("/proc/%d/task", pid)
		entries, err := os.ReadDir(tasks)
		if err != nil {
			continue // it has ended
		}
		for _, e := range entries {
			task, _ := strconv.Atoi(e.Name())
			if task == pid || !sharesFiles(pid, task) {
				bytes += uncountedOf(tasks+"/"+e.Name(), below)
			}
		}
	}
	return bytes
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
	// leastDirectory is the size of a directory with few names, for which file systems
	// keep some, too.
	leastDirectory = 4096
	// bytesOfPassed is assumed for a descriptor that is on its way through a socket.
	// What it is can no longer be seen.
	bytesOfPassed = 16 << 20
)

// uncountedOf is for the descriptors of a thread, whose directory in /proc is given, in
// a container with these directories below its own layer. It asks no server of a file
// system.
func uncountedOf(thread string, below []*os.File) (bytes int64) {
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
		for _, name := range names {
			var s unix.Statx_t
			if unix.Statx(int(fds.Fd()), name, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_SIZE, &s) != nil {
				continue
			}
			switch s.Mode & unix.S_IFMT {
			case unix.S_IFDIR:
				bytes += bytesOfByte * max(leastDirectory, int64(s.Size)+sizeBelow(thread+"/fd/"+name, below))
			case unix.S_IFSOCK:
				bytes += bytesOfPassed * passed(thread+"/fdinfo/"+name)
			}
		}
	}
}

// sizeBelow is the size of what an open directory shows of those below. The descriptor
// has the size of the topmost alone.
func sizeBelow(descriptor string, below []*os.File) (size int64) {
	path, err := os.Readlink(descriptor)
	if err != nil {
		return 0
	}
	for _, dir := range below {
		if s, err := rootfs.Stat(dir, strings.TrimSuffix(path, " (deleted)")); err == nil {
			size += s.Size
		}
	}
	return size
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
