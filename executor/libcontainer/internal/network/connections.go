//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"cmp"
	"encoding/binary"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The kernel tracks the connections of all containers in one table, for the
// whole host, and once it is full, nobody gets a new one. So the firewall gives
// each container a share of those that it begins. But shares add up, and the
// kernel tracks a connection for minutes after its end, without counting it for
// the share. So [Network.Watch] reads the table when it is crowded, and the
// firewall then refuses new connections to the containers that have begun most
// of those in it. Each begins them at a bounded pace, so that there is time for
// that.

// bounds are those that the firewall keeps by itself, for each container; 0 is none.
type bounds struct {
	share uint32 // connections that it may have begun and have open
	pace  uint32 // connections that it may begin in a second, and as many at once before
}

// boundsOf returns them for a table of most connections. A share of 0 means the default, an
// eighth of the table.
func boundsOf(most uint64, share uint32) bounds {
	const shares, paces, usual = 8, 64, 1 << 18
	b := bounds{share: share, pace: uint32(most / paces)}
	if share == 0 {
		b.share = uint32(max(1, cmp.Or(most, usual)/shares))
	}
	return b
}

// tracked is how many connections the kernel tracks now and at most. most is 0 if there is
// no limit, or nobody knows. Tests say something else.
var tracked = func() (now, most uint64) {
	for name, number := range map[string]*uint64{"count": &now, "max": &most} {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_" + name)
		if err == nil {
			*number, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
		}
		if err != nil {
			return 0, 0
		}
	}
	return now, most
}

const (
	tick = time.Second / 2 // between two looks at how full the table is

	// The whole table is read when this part of it is in use.
	crowded = 1. / 2
	// It is read again after ten times as long as that took, but at most
	// longestPause, and at once when it has grown by this part.
	grown        = 1. / 16
	longestPause = 15 * time.Second

	// The part of it that containers together may fill.
	theirs = 5. / 8
	// With much else in it, their part is what is left of this,
	usable = 7. / 8
	// and at least this.
	leastTheirs = 1. / 8
)

// Watch keeps containers from filling the table of connections, until done is closed.
func (n *Network) Watch(done <-chan struct{}) {
	var w watch
	for {
		select {
		case <-done:
			return
		case <-time.After(tick):
			w.step(n)
		}
	}
}

// A watch is what Watch remembers.
type watch struct {
	lowest   float64   // part of the table that was in use since it was read
	next     time.Time // when it may be read again
	refusing bool      // containers are refused, or it is not known that none are
}

func (w *watch) step(n *Network) {
	now, most := tracked()
	full := 0.
	if most > 0 {
		full = float64(now) / float64(most)
	}
	w.lowest = min(w.lowest, full)
	began := time.Now()
	due := !began.Before(w.next)
	if full < crowded {
		w.refuse(n, nil)
		if !due || !n.manyUsed() {
			return
		}
	} else if !due && full < w.lowest+grown {
		return
	}
	counts, err := n.read()
	pause := min(10*time.Since(began), longestPause)
	switch {
	case err != nil:
		pause = longestPause
	case full >= crowded:
		now, _ = tracked() // without what was removed
		w.refuse(n, crowding(counts, float64(now), float64(most)))
	}
	w.lowest, w.next = full, time.Now().Add(pause)
}

// refuse refuses new connections to these containers, and to no others.
func (w *watch) refuse(n *Network, containers []netip.Addr) {
	if w.refusing || len(containers) > 0 {
		w.refusing = n.firewall.refuse(containers) != nil || len(containers) > 0
	}
}

// crowding returns the containers that have begun more connections than their
// part of the table, by what each has begun. now are all that there are.
func crowding(counts map[netip.Addr]int, now, most float64) (addresses []netip.Addr) {
	var all []int
	others := now
	for _, count := range counts {
		all = append(all, count)
		others -= float64(count)
	}
	part := fairPart(all, int(max(leastTheirs*most, min(theirs*most, usable*most-others))))
	for address, count := range counts {
		if count > part {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// read reads the whole table. It returns how many connections each container has
// begun, and removes those of addresses that no container has any more, which the
// kernel would keep for up to five days and count for the next container there.
func (n *Network) read() (counts map[netip.Addr]int, err error) {
	remover, err := nl.Subscribe(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, err
	}
	defer remover.Close()
	used := n.usedAddresses()
	counts = map[netip.Addr]int{}
	var sendErr error
	err = request(nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP).ExecuteIter(unix.NETLINK_NETFILTER, 0, func(message []byte) bool {
		attributes := message[nl.SizeofNfgenmsg:]
		from, to := sender(attributes, nl.CTA_TUPLE_ORIG), sender(attributes, nl.CTA_TUPLE_REPLY)
		switch {
		case n.orphan(from), n.orphan(to):
			remove := request(nl.IPCTNL_MSG_CT_DELETE, 0)
			remove.AddRawData(attributes)
			if sendErr == nil {
				sendErr = remover.Send(remove) // it may have gone by itself
			}
		case n.container(from):
			counts[from]++
		}
		return true
	})
	if err := cmp.Or(err, sendErr); err != nil {
		return nil, err
	}
	n.clean(used)
	return counts, nil
}

// fairPart returns what each may have at most, so that all together have no more than
// room, and who has less than others leaves the rest to them (max-min fairness).
func fairPart(counts []int, room int) int {
	slices.Sort(counts)
	for i, count := range counts {
		part := room / (len(counts) - i)
		if count > part {
			return part
		}
		room -= count
	}
	return math.MaxInt
}

// unreadable says why the table cannot be read, or is "". Asking makes the kernel load
// what tracks connections.
func unreadable() string {
	const statistics = 5 // IPCTNL_MSG_CT_GET_STATS
	if _, err := request(statistics, unix.NLM_F_ACK).Execute(unix.NETLINK_NETFILTER, 0); err != nil {
		return "the kernel does not show which connections it tracks (" + err.Error() + "); load the module nf_conntrack_netlink"
	}
	return ""
}

func request(kind, flags int) *nl.NetlinkRequest {
	r := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|kind, flags)
	r.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: nl.NFNETLINK_V0})
	return r
}

// sender returns who sends in one direction of a connection; after the mapping of ports,
// the sender of replies is the container.
func sender(attributes []byte, direction uint16) netip.Addr {
	address, _ := netip.AddrFromSlice(attribute(attribute(attribute(attributes, direction), nl.CTA_TUPLE_IP), nl.CTA_IP_V4_SRC))
	return address
}

// attribute returns the value of an attribute of netlink, or nil.
func attribute(attributes []byte, kind uint16) []byte {
	const header = unix.SizeofNlAttr
	for len(attributes) >= header {
		length, is := int(binary.NativeEndian.Uint16(attributes)), binary.NativeEndian.Uint16(attributes[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)
		if length < header || length > len(attributes) {
			return nil
		}
		if is == kind {
			return attributes[header:length]
		}
		attributes = attributes[min(len(attributes), (length+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1)):]
	}
	return nil
}

// container reports whether an address is at a container's end of its wire.
func (n *Network) container(address netip.Addr) bool {
	return n.subnet.Contains(address) && address.As4()[3]%2 == 1
}

// orphan reports whether an address is one of containers, and of none that is there.
func (n *Network) orphan(address netip.Addr) bool {
	if !n.subnet.Contains(address) {
		return false
	}
	pair := (binary.BigEndian.Uint32(address.AsSlice()) - binary.BigEndian.Uint32(n.subnet.Addr().AsSlice())) / 2
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.taken[pair]
}
