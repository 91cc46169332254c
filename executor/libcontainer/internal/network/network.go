//go:build linux && cgo && (amd64 || arm64)

// Package network gives every container a network of its own. A [Network] holds
// what belongs to all containers of a Backend: addresses, the firewall and wires
// that wait to be used. A [Link] is the part of one container.
//
//	wire         a network namespace and the devices that connect it
//	firewall     which packets pass, and where mapped ports lead
//	table        one table of nftables, gone with the daemon
//	connections  how much of what the kernel tracks containers may have
//	dial         sockets in a container's namespace
package network

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
)

// A Network gives every container a namespace of its own and a wire to the
// host, which routes for it. There is no bridge: everything that a container
// sends passes the firewall, also to its neighbour. Its methods may be called
// concurrently, each with a Link of its own.
type Network struct {
	prefix    string // of the names of the host's ends
	firewall  *firewall
	unbounded string // see Unbounded

	mu     sync.Mutex
	subnet netip.Prefix
	claim  *os.File        // a lock that keeps the subnet for us, or nil
	taken  map[uint32]bool // pairs of addresses; false for one that was, since the table of connections was read
	next   uint32
	idle   []*wire // that containers have left behind
	serial uint64  // of the wire that was made last
	closed bool
}

// A Link is what one container has of the network.
type Link struct {
	GUID    string     // of the container
	Gateway netip.Addr // the host's end
	Own     netip.Addr // the container's end; not valid unless there is a network

	wire *wire // nil before it is made and once it is taken away
	// received and sent count what earlier containers had of the wire.
	received, sent int64
	pair           uint32
	mappings       []executor.PortMapping
	egress         bool
}

// Address returns the container's own address, or "" if it has none.
func (l *Link) Address() string {
	if !l.Own.IsValid() {
		return ""
	}
	return l.Own.String()
}

// Path is where other processes find the network namespace while this one runs.
// It is "" without one.
func (l *Link) Path() string {
	if l.wire == nil {
		return ""
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), l.wire.ns.Fd())
}

// Device returns the name of the host's end, which no other wire of the Network
// has or will have. It is "" without a wire.
func (l *Link) Device() string {
	if l.wire == nil {
		return ""
	}
	return l.wire.name
}

// Close gives the namespace up, which ends with the last process in it. Only
// the end of the Backend closes a Link; Remove is for all others.
func (l *Link) Close() {
	if l.wire != nil {
		l.wire.ns.Close()
	}
}

// The addresses from which New takes those that nobody uses.
var (
	subnets    = netip.MustParsePrefix("10.224.0.0/11")
	subnetBits = 20
)

// IDBytes is the length of a Backend's id before it is written in hexadecimal.
// Names of devices have little room.
const IDBytes = 4

// New returns the network of the Backend with an id. subnet holds the addresses
// of the containers; if it is not valid, a free one is chosen. share is how many
// connections one container may have begun and have open; 0 means an eighth of
// what the host tracks. An error says why this host has no network for
// containers, and what to do.
func New(id string, subnet netip.Prefix, share uint32) (_ *Network, err error) {
	n := &Network{prefix: "dg" + id, subnet: subnet.Masked(), taken: make(map[uint32]bool)}
	if !subnet.IsValid() {
		if n.subnet, n.claim, err = freeSubnet(id); err != nil {
			return nil, fmt.Errorf("no addresses for containers: %w; name a free network (--subnet of the rep, Options.Subnet)", err)
		}
	}
	defer func() {
		if err != nil {
			n.claim.Close() // which nil bears
		}
	}()
	if err := route("/proc/sys"); err != nil {
		return nil, err
	}
	if err := removeDevices(n.prefix); err != nil {
		return nil, fmt.Errorf("devices of an earlier daemon cannot be removed: %w", err)
	}
	n.unbounded = unreadable()
	_, most := tracked()
	all := boundsOf(most, share)
	n.firewall, err = newFirewall(id, n.prefix, n.subnet, all)
	for _, lesser := range []bounds{{share: all.share}, {}} {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
			n.unbounded = "the kernel does not bound connections (" + err.Error() + "); load the modules nft_connlimit and nft_limit"
			n.firewall, err = newFirewall(id, n.prefix, n.subnet, lesser)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("nftables cannot be used: %w; load the kernel module: modprobe nf_tables, or embed the backend with Options.HostNetwork", err)
	}
	if n.unbounded == "" {
		if _, err := n.read(); err != nil { // which removes what the containers of an earlier daemon have left
			n.unbounded = "the connections that the kernel tracks cannot be read: " + err.Error()
		}
	}
	return n, nil
}

// Unbounded says why containers can use up the connections of the host. It is ""
// if they cannot.
func (n *Network) Unbounded() string { return n.unbounded }

// Subnet returns the addresses of all containers.
func (n *Network) Subnet() netip.Prefix { return n.subnet }

// Used reports how many containers have addresses, and the names of the devices
// that wait for the next container.
func (n *Network) Used() (containers int, idle []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.idle {
		idle = append(idle, w.name)
	}
	for _, taken := range n.taken {
		if taken {
			containers++
		}
	}
	return containers, idle
}

// route makes the host forward between its networks, unless it does already.
// What is below sysctl must also be writable for the networks of containers.
func route(sysctl string) error {
	forward := filepath.Join(sysctl, "net/ipv4/ip_forward")
	text, err := os.ReadFile(forward)
	if err == nil && strings.TrimSpace(string(text)) != "1" {
		err = os.WriteFile(forward, []byte("1"), 0)
	}
	if err != nil {
		return fmt.Errorf("the host cannot be made to route: %w; make %s writable, or: sysctl net.ipv4.ip_forward=1", err, sysctl)
	}
	if err := unix.Access(forward, unix.W_OK); err != nil {
		return fmt.Errorf("networks of containers cannot be set up, as parameters of the kernel cannot be set: %w; make %s writable, or embed the backend with Options.HostNetwork", err, sysctl)
	}
	return nil
}

// claims is the file with the locks by which backends of a host see each other's
// subnets: each byte stands for one of them. A lock is gone with its process, and
// only root can take one. Anybody in the host's network could take names of
// sockets.
const claims = "/run/diego-subnets"

// freeSubnet chooses by id, looks whether somebody is there, and claims what it
// has chosen.
func freeSubnet(id string) (subnet netip.Prefix, claim *os.File, err error) {
	var addresses []netlink.Addr
	for err = netlink.ErrDumpInterrupted; errors.Is(err, netlink.ErrDumpInterrupted); { // by a change, such as of another backend
		addresses, err = netlink.AddrList(nil, netlink.FAMILY_V4)
	}
	if err != nil {
		return subnet, nil, err
	}
	seed, err := hex.DecodeString(id)
	if err != nil {
		return subnet, nil, err
	}
	if claim, err = os.OpenFile(claims, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600); err != nil {
		return subnet, nil, err
	}
	count := uint32(1) << (subnetBits - subnets.Bits())
	base := binary.BigEndian.Uint32(subnets.Addr().AsSlice())
	for i := range count {
		nth := (binary.BigEndian.Uint32(seed) + i) % count
		candidate := netip.PrefixFrom(addrOf(base+nth<<(32-subnetBits)), subnetBits)
		used := false
		for _, a := range addresses {
			other, ok := netip.AddrFromSlice(a.IP.To4())
			used = used || ok && candidate.Contains(other)
		}
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(nth), Len: 1}
		if !used && unix.FcntlFlock(claim.Fd(), unix.F_OFD_SETLK, &lock) == nil {
			return candidate, claim, nil
		}
	}
	claim.Close()
	return subnet, nil, fmt.Errorf("all of %v is in use", subnets)
}

func addrOf(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// take reserves a pair of addresses, if possible one of which no connections are left.
func (n *Network) take(l *Link) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := n.pairs()
	for _, clean := range []bool{true, false} {
		for range count {
			pair := n.next
			n.next = (n.next + 1) % count
			if taken, used := n.taken[pair]; !taken && !(used && clean) {
				n.taken[pair] = true
				base := binary.BigEndian.Uint32(n.subnet.Addr().AsSlice()) + pair*2
				l.pair, l.Gateway, l.Own = pair, addrOf(base), addrOf(base+1)
				return nil
			}
		}
	}
	return fmt.Errorf("all %d addresses of %v are in use; set a larger Options.Subnet", count, n.subnet)
}

func (n *Network) pairs() uint32 { return 1 << (31 - n.subnet.Bits()) }

// usedAddresses returns the pairs that are free and were not before the table of
// connections was read last.
func (n *Network) usedAddresses() (used []uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for pair, taken := range n.taken {
		if !taken {
			used = append(used, pair)
		}
	}
	return used
}

// manyUsed reports whether there are at least as many of them as of others that are free.
func (n *Network) manyUsed() bool {
	used := uint32(len(n.usedAddresses()))
	n.mu.Lock()
	defer n.mu.Unlock()
	return used > 0 && used >= n.pairs()-uint32(len(n.taken))
}

// clean says that no connections are left of these pairs, unless they are taken again.
func (n *Network) clean(used []uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, pair := range used {
		if !n.taken[pair] {
			delete(n.taken, pair)
		}
	}
}

// Make makes a Link before anything of its container runs. With rules, the
// container reaches only what they allow. If Make fails, Remove takes away what
// it has made.
func (n *Network) Make(l *Link, rules []executor.EgressRule) error {
	if err := n.take(l); err != nil {
		return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: l.GUID, Detail: err.Error()}
	}
	var err error
	if l.wire, err = n.wire(); err == nil {
		stage.Reached()
		l.received, l.sent = l.wire.traffic()
		err = l.wire.setAddresses(l.Gateway, l.Own)
	}
	if err != nil {
		return fmt.Errorf("container %q: connect its network: %w", l.GUID, err)
	}
	stage.Reached()
	if len(rules) > 0 {
		l.egress = true
		if err := n.firewall.restrict(l, rules); err != nil {
			return fmt.Errorf("container %q: its egress rules: %w", l.GUID, err)
		}
	}
	return nil
}

// Publish maps ports of the host to those of the container.
func (n *Network) Publish(l *Link, mappings []executor.PortMapping) error {
	l.mappings = mappings
	if len(mappings) == 0 {
		return nil
	}
	return n.firewall.publish(l)
}

// Remove takes away the wire of a container in which nothing runs any more,
// and all rules about it. The network of an earlier daemon's container went
// with that daemon, or when New was called. With reuse, the wire may wait for
// the next container if it is as it was when it was made.
func (n *Network) Remove(l *Link, reuse bool) error {
	if err := n.firewall.forget(l); err != nil {
		return err
	}
	l.mappings, l.egress = nil, false
	if l.wire != nil {
		if err := n.release(l.wire, reuse); err != nil {
			return err
		}
		l.wire = nil
	}
	if l.Own.IsValid() {
		n.mu.Lock()
		n.taken[l.pair] = false
		n.mu.Unlock()
		l.Own = netip.Addr{}
	}
	return nil
}

// maxIdle bounds how many wires wait for the next container. As many may be
// made at once before the kernel is slowed down by it.
const maxIdle = 32

// wire returns one that nobody uses.
func (n *Network) wire() (*wire, error) {
	n.mu.Lock()
	if last := len(n.idle) - 1; last >= 0 {
		w := n.idle[last]
		n.idle = n.idle[:last]
		n.mu.Unlock()
		return w, nil
	}
	n.serial++
	name := n.prefix + strconv.FormatUint(n.serial, 36)
	n.mu.Unlock()
	return newWire(name)
}

// release keeps a wire for the next container, or removes it.
func (n *Network) release(w *wire, reuse bool) error {
	if reuse && w.clear() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.closed && len(n.idle) < maxIdle {
			n.idle = append(n.idle, w)
			return nil
		}
	}
	return w.remove()
}

// Close removes what waits for containers and all rules, as the kernel does when
// the daemon dies. It may be called twice.
func (n *Network) Close() error {
	n.mu.Lock()
	idle, claim := n.idle, n.claim
	n.idle, n.claim, n.closed = nil, nil, true
	n.mu.Unlock()
	for _, w := range idle {
		w.ns.Close() // all at once, before the first is waited for
	}
	var err error
	for _, w := range idle {
		err = errors.Join(err, w.remove())
	}
	claim.Close() // which nil bears
	return errors.Join(err, n.firewall.close())
}
