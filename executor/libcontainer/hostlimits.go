//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A hostLimit is one that the kernel has only for the whole host, so that a few
// containers could use it up for all others.
type hostLimit struct {
	file, name string // below /proc/sys, and for sysctl
	most       int64  // of each number, if there are several
	what       string // that containers could use up
}

// lifted are the limits that the daemon lifts, as systemd does with the first one.
// Each has a bound for a container instead: its memory, and maxTerminals. A process that
// has ended and that nobody waits for takes 10 KiB, so without this a container of 320 MiB
// with MaxPIDs enough, or 32 small ones, take all 32,768 process ids of a host. Of neighbours
// there can be no more than the host's networks have addresses: a container that calls
// them all has the kernel ask for each, and a network of 1024 would fill the table of
// the whole host. What waits in connections that nobody accepts is bounded by watchSockets;
// with the kernel's own limit, a tenth of the memory, all connections of the host would
// have to wait before.
var lifted = []hostLimit{
	{"fs/file-max", "fs.file-max", math.MaxInt64, "open files"},
	{"kernel/pty/max", "kernel.pty.max", 1 << 20, "terminals"},
	{"kernel/pid_max", "kernel.pid_max", 1 << 22, "process ids"}, // the most that Linux has
	{"kernel/threads-max", "kernel.threads-max", 1 << 22, "threads"},
	{"net/ipv4/tcp_max_orphans", "net.ipv4.tcp_max_orphans", 1 << 24, "connections that are closed before their data is sent"},
	{"net/ipv4/neigh/default/gc_thresh3", "net.ipv4.neigh.default.gc_thresh3", 1 << 17, "neighbours on its networks"},
	{"net/ipv4/tcp_mem", "net.ipv4.tcp_mem", halfOfMemory(), "memory for TCP"},
	{"net/ipv4/udp_mem", "net.ipv4.udp_mem", halfOfMemory(), "memory for UDP"},
}

// halfOfMemory is half of the host's memory, in pages.
func halfOfMemory() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit) / int64(os.Getpagesize()) / 2
}

// liftLimits lifts them, and returns what keeps it from that, or "". sysctl is
// /proc/sys.
func liftLimits(sysctl string) (missing string) {
	for i, l := range lifted {
		path := filepath.Join(sysctl, l.file)
		text, err := os.ReadFile(path)
		now := strings.Join(strings.Fields(string(text)), " ")
		most := l.over(now)
		if err == nil && most != now {
			err = os.WriteFile(path, []byte(most), 0)
		}
		if i > 0 && errors.Is(err, fs.ErrNotExist) { // in a namespace that does not have it
			continue
		}
		if err != nil && missing == "" {
			missing = fmt.Sprintf("a few containers can use up the %s of this host (%s %s), and the daemon cannot lift that limit: %v; set %s to %s", l.what, l.name, now, err, l.name, most)
		}
	}
	return missing
}

// over is what a limit is lifted to: none of its numbers is lowered.
func (l hostLimit) over(now string) string {
	numbers := strings.Split(now, " ")
	for i, text := range numbers {
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < l.most {
			numbers[i] = strconv.FormatInt(l.most, 10)
		}
	}
	return strings.Join(numbers, " ")
}
