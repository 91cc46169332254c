//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
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
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// A network gives every container a namespace of its own and a wire to the
// host, which routes for it. There is no bridge: whatever a container sends
// passes the firewall, also to its neighbour.
type network struct {
	prefix   string // of the names of the host's ends
	firewall *firewall
	// unbounded says why a container has no share of connections.
	unbounded string

	sweeping sync.Mutex
	swept    time.Time // guarded by sweeping

	mu     sync.Mutex
	subnet netip.Prefix
	claim  int             // a socket whose name keeps the subnet for us, or -1
	taken  map[uint32]bool // pairs of addresses
	next   uint32
	idle   []*wire // that containers have left behind
	serial uint64  // of the wire that was made last
	closed bool
}

// A link is what one container has of the network.
type link struct {
	guid     string
	wire     *wire      // nil before it is made and once it is taken away
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

func newNetwork(id string, subnet netip.Prefix, share uint32) (_ *network, err error) {
	n := &network{prefix: "dg" + id, subnet: subnet.Masked(), claim: -1, taken: make(map[uint32]bool)}
	if !subnet.IsValid() {
		if n.subnet, n.claim, err = freeSubnet(id); err != nil {
			return nil, fmt.Errorf("no addresses for containers: %w; set Options.Subnet or Options.HostNetwork", err)
		}
	}
	defer func() {
		if err != nil && n.claim >= 0 {
			unix.Close(n.claim)
		}
	}()
	if err := route("/proc/sys"); err != nil {
		return nil, err
	}
	if err := removeDevices(n.prefix); err != nil {
		return nil, fmt.Errorf("devices of an earlier daemon cannot be removed: %w", err)
	}
	n.firewall, err = newFirewall(id, n.prefix, n.subnet, share)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) { // a kernel that counts no connections
		n.unbounded = "the kernel counts no connections (" + err.Error() + "); load the module nft_connlimit"
		n.firewall, err = newFirewall(id, n.prefix, n.subnet, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("nftables cannot be used: %w; load the kernel module nf_tables or set Options.HostNetwork", err)
	}
	return n, nil
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
		return fmt.Errorf("the host cannot be made to route: %w; set net.ipv4.ip_forward=1 with %s writable, or Options.HostNetwork", err, sysctl)
	}
	if err := unix.Access(forward, unix.W_OK); err != nil {
		return fmt.Errorf("networks of containers cannot be set up, as parameters of the kernel cannot be set: %w; mount %s writable or set Options.HostNetwork", err, sysctl)
	}
	return nil
}

// freeSubnet chooses by id and looks whether somebody is there. Backends of
// one host see each other by a socket that is named after the subnet, and gone
// with its process.
func freeSubnet(id string) (subnet netip.Prefix, claim int, err error) {
	var addresses []netlink.Addr
	for err = netlink.ErrDumpInterrupted; errors.Is(err, netlink.ErrDumpInterrupted); { // by a change, such as of another backend
		addresses, err = netlink.AddrList(nil, netlink.FAMILY_V4)
	}
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

// makeLink makes the network of a container before anything of it runs.
func (b *Backend) makeLink(_ context.Context, c *container) error {
	n := b.network
	if n == nil {
		return nil
	}
	c.link.guid = c.guid
	if err := n.take(&c.link); err != nil {
		return &executor.BackendError{Kind: executor.ErrUnsupported, GUID: c.guid, Detail: err.Error()}
	}
	var err error
	if c.link.wire, err = n.wire(); err == nil {
		stage()
		err = c.link.wire.setAddresses(c.link.gateway, c.link.own)
	}
	if err != nil {
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

// publish maps ports of the host to those of the container.
func (n *network) publish(l *link, mappings []executor.PortMapping) error {
	l.mappings = mappings
	if len(mappings) == 0 {
		return nil
	}
	return n.firewall.publish(l)
}

// remove takes away the wire of a container in which nothing runs any more,
// and all rules about it. The network of an earlier daemon's container went
// with that daemon, or when New was called.
func (n *network) remove(l *link, reuse bool) error {
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
	if l.own.IsValid() {
		n.mu.Lock()
		delete(n.taken, l.pair)
		n.mu.Unlock()
		l.own = netip.Addr{}
		n.sweep()
	}
	return nil
}

// maxIdle bounds how many wires wait for the next container. As many may be
// made at once before the kernel is slowed down by it.
const maxIdle = 32

// wire returns one that nobody uses.
func (n *network) wire() (*wire, error) {
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
func (n *network) release(w *wire, reuse bool) error {
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

func (n *network) close() error {
	n.mu.Lock()
	idle := n.idle
	n.idle, n.closed = nil, true
	n.mu.Unlock()
	for _, w := range idle {
		w.ns.Close() // all at once, before the first is waited for
	}
	var err error
	for _, w := range idle {
		err = errors.Join(err, w.remove())
	}
	if n.claim >= 0 {
		unix.Close(n.claim)
	}
	return errors.Join(err, n.firewall.close())
}
