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
)

// A hostLimit is one that the kernel has only for the whole host, so that a few
// containers could use it up for all others.
type hostLimit struct {
	file, name string // below /proc/sys, and for sysctl
	most       int64
	what       string // that containers could use up
}

// lifted are the limits that the daemon lifts, as systemd does with the first one.
// Each has a bound for a container instead: its memory, and maxTerminals. A process that
// has ended and that nobody waits for takes 10 KiB, so without this a container of 320 MiB
// with MaxPIDs enough, or 32 small ones, take all 32,768 process ids of a host. Of neighbours
// there can be no more than the host's networks have addresses: a container that calls
// them all has the kernel ask for each, and a network of 1024 would fill the table of
// the whole host.
var lifted = []hostLimit{
	{"fs/file-max", "fs.file-max", math.MaxInt64, "open files"},
	{"kernel/pty/max", "kernel.pty.max", 1 << 20, "terminals"},
	{"kernel/pid_max", "kernel.pid_max", 1 << 22, "process ids"}, // the most that Linux has
	{"kernel/threads-max", "kernel.threads-max", 1 << 22, "threads"},
	{"net/ipv4/tcp_max_orphans", "net.ipv4.tcp_max_orphans", 1 << 24, "connections that are closed before their data is sent"},
	{"net/ipv4/neigh/default/gc_thresh3", "net.ipv4.neigh.default.gc_thresh3", 1 << 17, "neighbours on its networks"},
}

// liftLimits lifts them, and returns what keeps it from that, or "". sysctl is
// /proc/sys.
func liftLimits(sysctl string) (missing string) {
	for i, l := range lifted {
		path := filepath.Join(sysctl, l.file)
		most := strconv.FormatInt(l.most, 10)
		text, err := os.ReadFile(path)
		now := strings.TrimSpace(string(text))
		if n, parseErr := strconv.ParseInt(now, 10, 64); err == nil && (parseErr != nil || n < l.most) {
			err = os.WriteFile(path, []byte(most), 0)
		}
		if i > 0 && errors.Is(err, fs.ErrNotExist) { // in a namespace that does not have it
			continue
		}
		if err != nil && missing == "" {
			missing = fmt.Sprintf("a few containers can use up the %s of this host (%s %s), and the daemon cannot lift that limit: %v; set %s=%s", l.what, l.name, now, err, l.name, most)
		}
	}
	return missing
}
