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

// crowded reports whether the table is half full. Tests say that it is.
var crowded = func() bool {
	count, err := conntrack("count")
	most, maxErr := conntrack("max")
	return err == nil && maxErr == nil && count > most/2
}

// sweepPause is the least time between two looks at the whole table.
const sweepPause = time.Second

// sweep removes the connections of addresses that no container has any more,
// if there is little room. The kernel would keep them for up to five days. It
// reads the whole table, so one look serves all who come at once.
func (n *Network) sweep() {
	if !crowded() || !n.sweeping.TryLock() {
		return
	}
	defer n.sweeping.Unlock()
	if time.Since(n.swept) < sweepPause {
		return
	}
	// Without this the kernel's time limits do it.
	netlink.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, orphans{n})
	n.swept = time.Now()
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
