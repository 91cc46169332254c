//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Linux counts file locks for nobody and has no limit for them. A process has a file
// open for its locks, so the Backend can say whose some of the host's locks are. It does
// not look at all of them: while they are listed, nobody on the host gets a lock.

const (
	// sampledLocks is how many of the host's locks are looked at, which takes a
	// millisecond. The kernel lists them processor by processor, and on each the
	// newest first.
	sampledLocks = 4000
	// manyLocks of those are more than a program takes that has a few files.
	manyLocks = 100
)

// A lockSample counts some of the host's file locks.
type lockSample struct {
	processes map[int]int64    // by the number of the process that has them
	files     map[string]int64 // those of no process but of an open file, as "MAJOR:MINOR:INODE" in decimal
}

// sampleLocks returns an empty sample if the host has so few locks that they take no
// room.
func sampleLocks() lockSample {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return lockSample{}
	}
	defer f.Close()
	return locksIn(f)
}

// locksIn reads the beginning of the text of /proc/locks.
func locksIn(text io.Reader) lockSample {
	s := lockSample{map[int]int64{}, map[string]int64{}}
	lines := bufio.NewScanner(text)
	for range sampledLocks {
		if !lines.Scan() {
			return lockSample{}
		}
		// As in "1: POSIX  ADVISORY  WRITE 2634 00:5d:1162 88 88".
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 {
			s.processes[pid]++
			continue
		}
		var major, minor uint32
		var inode uint64
		if n, _ := fmt.Sscanf(fields[5], "%x:%x:%d", &major, &minor, &inode); n == 3 {
			s.files[lockedFile(major, minor, inode)]++
		}
	}
	return s
}

func lockedFile(major, minor uint32, inode uint64) string {
	return fmt.Sprintf("%d:%d:%d", major, minor, inode)
}

// on counts the locks of files on devices, as "MAJOR:MINOR".
func (s lockSample) on(devices map[string]bool) (n int64) {
	for file, count := range s.files {
		if devices[file[:strings.LastIndexByte(file, ':')]] {
			n += count
		}
	}
	return n
}

// Some files are one for the whole host: all eventfds, epolls and timers are one file to the
// kernel, and all containers have the same files of /sys. To close one of them, the kernel
// walks through all locks that anybody has on it. So a container with many such locks slows
// down all programs of the host. The Backend tries how long a close takes now and then. If
// that is too long, it ends containers that have many such locks.

const (
	closePause = 5 * time.Second
	// slowClose is a thousand times what a close takes, or 10,000 locks.
	slowClose = 500 * time.Microsecond
	// manyShared locks on files of the host are more than a program takes, and
	// triedFiles and triedProcesses how many are looked at, in a process and a container.
	manyShared, triedFiles, triedProcesses = 1000, 64, 256
)

// watchFileLocks ends containers with many locks on files of the host until done is closed.
func (b *Backend) watchFileLocks(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(closePause):
			if closeTime() > slowClose {
				b.endLockers()
			}
		}
	}
}

// closeTime is how long it takes to close a file of the host, without the pauses of this
// thread.
func closeTime() time.Duration {
	var least time.Duration
	for i := range 3 {
		longest := time.Duration(0)
		for _, open := range []func() (int, error){
			func() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC) },
			// Go's runtime opens this one when a program starts.
			func() (int, error) {
				return unix.Open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			},
		} {
			if fd, err := open(); err == nil {
				began := time.Now()
				unix.Close(fd)
				longest = max(longest, time.Since(began))
			}
		}
		if i == 0 || longest < least {
			least = longest
		}
	}
	return least
}

// endLockers ends containers with many locks on files of the host. Only one goroutine calls
// it.
func (b *Backend) endLockers() {
	for _, c := range b.made() {
		c.lockers.begin(func() {
			var many bool
			c.lockers.Watch(func() { many = c.locksShared() })
			if many {
				c.endFor("had too many locks on files that are one for the whole host", dyingTime)
			}
		})
	}
}

// locksShared reports whether a process has many locks on a file of the host.
func (c *container) locksShared() bool {
	pids := c.cgroup.Processes()
	rand.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	for _, pid := range pids[:min(len(pids), triedProcesses)] {
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		rand.Shuffle(len(fds), func(i, j int) { fds[i], fds[j] = fds[j], fds[i] })
		tried := 0
		for _, fd := range fds {
			name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
			if !strings.HasPrefix(name, "anon_inode:") && !strings.HasPrefix(name, "/sys/") {
				continue
			}
			if tried++; tried > triedFiles {
				break
			}
			// The kernel lists the locks of the process, or of this descriptor.
			info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, fd.Name()))
			if bytes.Count(info, []byte("\nlock:")) >= manyShared {
				return true
			}
		}
	}
	return false
}
