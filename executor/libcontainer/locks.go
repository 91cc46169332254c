//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
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
// down all programs of the host. The Backend tries now and then how long a close takes. As
// long as that is too long, it ends the container with most locks.

const (
	closePause = 5 * time.Second
	// slowClose is a hundred times what a close takes, or 10,000 locks.
	slowClose = 500 * time.Microsecond
	// triedFiles is how many files of a process are asked for their locks, and
	// triedProcesses how many processes of a container.
	triedFiles, triedProcesses = 64, 256
)

// sharedFiles open files of the host that programs close all the time. Go's runtime reads the
// second one when a program starts, and C libraries the third.
var sharedFiles = []func() (int, error){
	func() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC) },
	func() (int, error) {
		return unix.Open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	},
	func() (int, error) {
		return unix.Open("/sys/devices/system/cpu/online", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	},
}

// watchFileLocks ends containers with many locks on files of the host until done is closed.
func (b *Backend) watchFileLocks(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(closePause):
			if closeTime() > slowClose {
				b.endLocker(sampleLocks())
			}
		}
	}
}

// closeTime is how long it takes to close the slowest of these files, without the pauses of
// this thread.
func closeTime() (slowest time.Duration) {
	for _, open := range sharedFiles {
		least := time.Hour
		for range 3 {
			fd, err := open()
			if err != nil {
				least = 0
				break
			}
			began := time.Now()
			unix.Close(fd)
			least = min(least, time.Since(began))
		}
		slowest = max(slowest, least)
	}
	return slowest
}

// endLocker ends the container with most locks, if it has many. Only one goroutine calls it.
func (b *Backend) endLocker(locks lockSample) {
	var worst *container
	most := int64(manyLocks - 1)
	for _, c := range b.made() {
		var found int64
		n := int64(0)
		switch {
		case c.endedWithin(dyingTime):
		case c.lockers.complete(sightPatience, func() { found = c.locksOnShared(locks) }):
			n = found
		case c.lockers.Stuck(sightPatience, "ep_show_fdinfo"):
			n = math.MaxInt64 // it keeps an epoll locked, so that the kernel cannot say what locks it has
		}
		if n > most {
			worst, most = c, n
		}
	}
	if worst != nil {
		worst.endFor("had too many file locks, which slowed down all programs of the host", dyingTime)
	}
}

// locksOnShared estimates how many locks the container has: those of its processes in the
// sample, and those of open files of the host, which no sample attributes to a process.
func (c *container) locksOnShared(locks lockSample) (n int64) {
	pids := c.cgroup.Processes()
	for _, pid := range pids {
		n += locks.processes[pid]
	}
	rand.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	tried := pids[:min(len(pids), triedProcesses)]
	var ofFiles int64
	for _, pid := range tried {
		ofFiles += locksOfFiles(fmt.Sprintf("/proc/%d/", pid))
	}
	return n + ofFiles*int64(len(pids))/int64(max(1, len(tried)))
}

// locksOfFiles estimates how many locks the open files of the host have that a process has,
// whose directory in /proc is given.
func locksOfFiles(process string) (n int64) {
	fds, _ := os.ReadDir(process + "fd")
	rand.Shuffle(len(fds), func(i, j int) { fds[i], fds[j] = fds[j], fds[i] })
	tried := 0
	for i, fd := range fds {
		if tried == triedFiles {
			return n * int64(len(fds)) / int64(i) // the others are like these
		}
		name, _ := os.Readlink(process + "fd/" + fd.Name())
		if strings.HasPrefix(name, "anon_inode:") || strings.HasPrefix(name, "/sys/") {
			tried++
			info, _ := os.ReadFile(process + "fdinfo/" + fd.Name())
			n += int64(bytes.Count(info, []byte(" OFDLCK ")))
		}
	}
	return n
}
