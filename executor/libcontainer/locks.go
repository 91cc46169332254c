//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
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
