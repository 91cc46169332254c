//go:build linux && cgo && (amd64 || arm64)

package network

import (
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
// each container a share of those that it begins. Shares add up, and the kernel
// goes on to track a connection for minutes after its end, when it does not
// count towards a share. So while the table is crowded, [Network.Watch] looks
// at all of it, removes what deleted containers have left there, and lets those
// that have most of it wait.

// DefaultShare returns the share of connections of one container if nothing
// else was said: an eighth of what the host tracks.
func DefaultShare() uint32 {
	const share, usual = 8, 1 << 18
	_, most := tracked()
	if most == 0 { // the kernel begins to track when there is a table
		most = usual
	}
	return uint32(max(1, most/share))
}

// tracked is how many connections the kernel tracks now and at most. Both are 0 if nobody
// knows. Tests say something else.
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

// Parts of the table: it is crowded when looks at the whole of it begin, all containers
// together may have the part that is theirs, and one that has grown much since it was
// looked at is looked at again.
const (
	crowded = 1. / 2
	theirs  = 5. / 8
	much    = 1. / 16
)

// lookPause is the time between two looks at the size of the table.
const lookPause = time.Second / 2

// Watch keeps the table of connections from being filled by containers, until done is
// closed. Without the kernel's nf_conntrack_netlink nobody can look at the table, and only
// shares and the kernel's time limits hold.
func (n *Network) Watch(done <-chan struct{}) {
	var w watch
	for {
		select {
		case <-done:
			return
		case <-time.After(lookPause):
			w.tend(n)
		}
	}
}

// A watch is what Watch remembers.
type watch struct {
	full    float64   // the table, at least since the last look at all of it
	next    time.Time // for the next one; a table may be crowded for good
	waiting bool      // containers are
}

// tend is one step of Watch. Looks at the whole table take at most an eleventh of a
// processor, unless it fills up.
func (w *watch) tend(n *Network) {
	const times = 10
	now, most := tracked()
	full := float64(now) / float64(max(1, most))
	w.full = min(w.full, full)
	began := time.Now()
	switch {
	case full < crowded:
		*w = watch{waiting: w.waiting}
		w.delay(n, nil)
	case !began.Before(w.next), full >= w.full+much:
		w.delay(n, n.look(int(theirs*float64(most))))
		took := time.Since(began)
		w.full, w.next = full, began.Add(took+times*took)
	}
}

// delay lets containers wait, and no others.
func (w *watch) delay(n *Network, containers []netip.Addr) {
	if w.waiting || len(containers) > 0 {
		w.waiting = n.firewall.delay(containers) != nil || len(containers) > 0
	}
}

// look looks at the whole table. It removes the connections of addresses that no
// container has any more, which the kernel would keep for up to five days, and
// returns the containers that have more than their part of room.
func (n *Network) look(room int) (crowding []netip.Addr) {
	remover, err := nl.Subscribe(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil
	}
	defer remover.Close()
	counts := map[netip.Addr]int{}
	// Its error may be that some were missed.
	request(nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP).ExecuteIter(unix.NETLINK_NETFILTER, 0, func(message []byte) bool {
		attributes := message[nl.SizeofNfgenmsg:]
		from, to := sender(attributes, nl.CTA_TUPLE_ORIG), sender(attributes, nl.CTA_TUPLE_REPLY)
		switch {
		case n.orphan(from), n.orphan(to):
			remove := request(nl.IPCTNL_MSG_CT_DELETE, 0)
			remove.AddRawData(attributes)
			remover.Send(remove) // it may have gone by itself
		case n.container(from):
			counts[from]++
		case n.container(to): // from outside, or from the host
			counts[to]++
		}
		return true
	})
	var all []int
	for _, count := range counts {
		all = append(all, count)
	}
	part := fairPart(all, room)
	for address, count := range counts {
		if count > part {
			crowding = append(crowding, address)
		}
	}
	return crowding
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
