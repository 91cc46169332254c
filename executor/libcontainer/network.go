//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// A network gives every container a namespace of its own and a wire to the
// host, which routes for it. There is no bridge: whatever a container sends
// passes the firewall, also to its neighbour.
type network struct {
	prefix   string // of the names of the host's ends
	firewall *firewall

	mu     sync.Mutex
	subnet netip.Prefix
	claim  int             // a socket whose name keeps the subnet for us, or -1
	taken  map[uint32]bool // pairs of addresses
	next   uint32
}

// A link is the wire of one container.
type link struct {
	name     string     // of the host's end
	gateway  netip.Addr // the host's end
	own      netip.Addr // the container's end
	pair     uint32
	mappings []executor.PortMapping
	egress   bool
}

// address is the container's own, or empty if it has none.
func (l *link) address() string {
	if !l.own.IsValid() {
		return ""
	}
	return l.own.String()
}

// The addresses from which New takes those that nobody uses.
var (
	subnets    = netip.MustParsePrefix("10.224.0.0/11")
	subnetBits = 20
)

func newNetwork(id string, subnet netip.Prefix) (*network, error) {
	n := &network{prefix: "dg" + id[:4], subnet: subnet.Masked(), claim: -1, taken: make(map[uint32]bool)}
	if !subnet.IsValid() {
		var err error
		if n.subnet, n.claim, err = freeSubnet(id); err != nil {
			return nil, fmt.Errorf("no addresses for containers: %w; set Options.Subnet or Options.HostNetwork", err)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return nil, fmt.Errorf("the host cannot be made to route: %w; set net.ipv4.ip_forward=1 or Options.HostNetwork", err)
	}
	var err error
	if n.firewall, err = newFirewall("diego-"+id, n.prefix, n.subnet); err != nil {
		return nil, fmt.Errorf("nftables cannot be used: %w; load the kernel module nf_tables or set Options.HostNetwork", err)
	}
	return n, nil
}

// freeSubnet chooses by id and looks whether somebody is there. Backends of
// one host see each other by a socket that is named after the subnet, and gone
// with its process.
func freeSubnet(id string) (subnet netip.Prefix, claim int, err error) {
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return subnet, -1, err
	}
	seed, err := hex.DecodeString(id)
	if err != nil {
		return subnet, -1, err
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
		if used {
			continue
		}
		if claim, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return subnet, -1, os.NewSyscallError("socket", err)
		}
		if unix.Bind(claim, &unix.SockaddrUnix{Name: "@diego-subnet-" + candidate.String()}) == nil {
			return candidate, claim, nil
		}
		unix.Close(claim)
	}
	return subnet, -1, fmt.Errorf("all of %v is in use", subnets)
}

func addrOf(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// device is the name of the host's end of a container's wire.
func (n *network) device(guid string) string {
	sum := sha256.Sum256([]byte(guid))
	return n.prefix + hex.EncodeToString(sum[:])[:unix.IFNAMSIZ-1-len(n.prefix)]
}

// take reserves a pair of addresses.
func (n *network) take(l *link) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := uint32(1) << (31 - n.subnet.Bits())
	for range count {
		pair := n.next
		n.next = (n.next + 1) % count
		if !n.taken[pair] {
			n.taken[pair] = true
			base := binary.BigEndian.Uint32(n.subnet.Addr().AsSlice()) + pair*2
			l.pair, l.gateway, l.own = pair, addrOf(base), addrOf(base+1)
			return nil
		}
	}
	return fmt.Errorf("all %d addresses of %v are in use; set a larger Options.Subnet", count, n.subnet)
}

// makeLink connects a container. Nothing of the caller's runs in it yet.
func (b *Backend) makeLink(_ context.Context, c *container) error {
	n := b.network
	if n == nil {
		return nil
	}
	c.link.name = n.device(c.guid)
	if err := n.take(&c.link); err != nil {
		return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: c.guid, Detail: err.Error()}
	}
	if err := c.link.connect(c.initPID); err != nil {
		return fmt.Errorf("container %q: connect its network: %w", c.guid, err)
	}
	stage()
	if len(c.spec.EgressRules) > 0 {
		c.link.egress = true
		if err := n.firewall.restrict(&c.link, c.spec.EgressRules); err != nil {
			return fmt.Errorf("container %q: its egress rules: %w", c.guid, err)
		}
	}
	return nil
}

func (l *link) connect(pid int) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return err
	}
	defer ns.Close()
	inside, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer inside.Close()

	attrs := netlink.NewLinkAttrs()
	attrs.Name = l.name
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns)}); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	// The host's end knows no IPv6, by which a container could go round the
	// firewall, and lets connections from the host's loopback be mapped.
	for _, setting := range []struct{ path, value string }{
		{"/proc/sys/net/ipv6/conf/" + l.name + "/disable_ipv6", "1"},
		{"/proc/sys/net/ipv4/conf/" + l.name + "/route_localnet", "1"},
	} {
		if err := os.WriteFile(setting.path, []byte(setting.value), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	host, err := netlink.LinkByName(l.name)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(host, &netlink.Addr{IPNet: pairNet(l.gateway)}); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if err := netlink.LinkSetUp(host); err != nil {
		return err
	}
	peer, err := inside.LinkByName("eth0")
	if err != nil {
		return err
	}
	if err := inside.AddrAdd(peer, &netlink.Addr{IPNet: pairNet(l.own)}); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if err := inside.LinkSetUp(peer); err != nil {
		return err
	}
	return inside.RouteAdd(&netlink.Route{LinkIndex: peer.Attrs().Index, Gw: l.gateway.AsSlice()})
}

func pairNet(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(31, 32)}
}

// publish maps ports of the host to those of the container.
func (n *network) publish(l *link, mappings []executor.PortMapping) error {
	l.mappings = mappings
	if len(mappings) == 0 {
		return nil
	}
	return n.firewall.publish(l)
}

// remove takes away the wire of a container and all rules about it. A
// container of an earlier daemon has only the wire: its rules went with that
// daemon's table.
func (n *network) remove(guid string, l *link) error {
	if err := n.firewall.forget(l); err != nil {
		return err
	}
	l.mappings, l.egress = nil, false
	if err := removeDevice(n.device(guid)); err != nil {
		return err
	}
	if l.own.IsValid() {
		n.mu.Lock()
		delete(n.taken, l.pair)
		n.mu.Unlock()
		l.own = netip.Addr{}
	}
	return nil
}

// removeDevice returns when a device is gone. The kernel removes it with the
// namespace at its other end, and many at once much faster than one by one. A
// connection that somebody still has to the container keeps its namespace.
func removeDevice(name string) error {
	const patience, pause = 100 * time.Millisecond, time.Millisecond
	for waited := time.Duration(0); waited < patience; waited += pause {
		if _, err := os.Lstat("/sys/class/net/" + name); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(pause)
	}
	device, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(device)
	}
	if err != nil && !errors.As(err, new(netlink.LinkNotFoundError)) && !errors.Is(err, unix.ENODEV) {
		return err
	}
	return nil
}

func (n *network) close() error {
	if n.claim >= 0 {
		unix.Close(n.claim)
	}
	return n.firewall.close()
}
