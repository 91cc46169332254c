//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"encoding/binary"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The kernel tracks the connections of all containers in one table, for the
// whole host. The firewall gives each container a share of those that it
// begins, and what it leaves behind goes when the table gets full.

// DefaultShare returns the share of connections of one container if nothing
// else was said: an eighth of what the host tracks.
func DefaultShare() uint32 {
	const share, usual = 8, 1 << 18
	most, err := conntrack("max")
	if err != nil { // the kernel begins to track when there is a table
		most = usual
	}
	return uint32(max(1, most/share))
}

// conntrack is a number of the table: "max" or "count".
func conntrack(what string) (uint64, error) {
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_" + what)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
}

// fullness is how much of the table is in use, up to 1, or 0 if nobody knows. Tests say
// something else.
var fullness = func() float64 {
	count, err := conntrack("count")
	most, maxErr := conntrack("max")
	if err != nil || maxErr != nil {
		return 0
	}
	return float64(count) / float64(max(1, most))
}

// A table is crowded when looks at the whole of it begin. When it is nearly full, they
// take what they need, because nobody on the host gets a new connection once it is full.
const (
	crowded    = 1. / 2
	nearlyFull = 7. / 8
)

// sweepPause is the least time between two looks at the whole table, of which the last one
// took so long. A look at 100,000 connections takes half a second, and those of containers
// that are there may crowd the table for good.
func sweepPause(full float64, took time.Duration) time.Duration {
	const least, times = time.Second, 10
	if full >= nearlyFull {
		return least
	}
	return max(least, times*took)
}

// sweep removes the connections of addresses that no container has any more,
// if there is little room. The kernel would keep them for up to five days. It
// reads the whole table, so one look serves all who come at once.
func (n *Network) sweep() {
	full := fullness()
	if full < crowded || !n.sweeping.TryLock() {
		return
	}
	defer n.sweeping.Unlock()
	began := time.Now()
	if began.Sub(n.swept) < sweepPause(full, n.sweepTook) {
		return
	}
	// Without this the kernel's time limits do it.
	netlink.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, orphans{n})
	n.swept = time.Now()
	n.sweepTook = n.swept.Sub(began)
}

// orphans match what one end has lost.
type orphans struct{ *Network }

// MatchConntrackFlow implements [netlink.CustomConntrackFilter].
func (o orphans) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	return o.orphan(flow.Forward.SrcIP) || o.orphan(flow.Reverse.SrcIP)
}

// orphan reports whether an address is one of containers, and of none that is there.
func (o orphans) orphan(ip []byte) bool {
	address, ok := netip.AddrFromSlice(ip)
	if address = address.Unmap(); !ok || !o.subnet.Contains(address) {
		return false
	}
	pair := (binary.BigEndian.Uint32(address.AsSlice()) - binary.BigEndian.Uint32(o.subnet.Addr().AsSlice())) / 2
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.taken[pair]
}
