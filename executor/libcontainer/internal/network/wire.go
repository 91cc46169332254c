//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// A wire is a network namespace and the pair of devices that connects it with
// the host. Making and removing one is slow, because the kernel waits for all
// processors, so it outlives its container if nothing of that is left in it.
// Only this daemon holds the namespace: if the daemon is killed, the kernel
// removes it with both devices.
type wire struct {
	ns    *os.File
	name  string // of the host's end
	host  netlink.Link
	inner netlink.Link

	hostAddress, innerAddress *netlink.Addr // nil while no container has it
}

// newWire makes a wire without addresses.
func newWire(name string) (*wire, error) {
	w := &wire{name: name}
	var err error
	if w.ns, err = newNamespace(); err != nil {
		return nil, err
	}
	if err := w.connect(); err != nil {
		return nil, errors.Join(err, w.remove())
	}
	return w, nil
}

// newNamespace makes a network namespace. Without capabilities nobody could
// listen on port 80 in it otherwise. IPv6 is off, since neither mapping nor
// egress rules know it.
func newNamespace() (ns *os.File, err error) {
	err = elsewhere(func() error { return os.NewSyscallError("unshare", unix.Unshare(unix.CLONE_NEWNET)) }, func() error {
		for _, setting := range []struct{ path, value string }{
			{"/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"},
			{"/proc/sys/net/ipv4/igmp_max_memberships", maxGroups},
			{"/proc/sys/net/ipv4/tcp_max_tw_buckets", maxClosed},
			{"/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"},
			{"/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"},
		} {
			if err := set(setting.path, setting.value); err != nil {
				return err
			}
		}
		ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return ns, err
}

// maxGroups is how many multicast groups a socket may join, and maxClosed how many
// connections may wait for packets that come late. The kernel keeps 1 KiB for each group
// and 300 bytes for each connection, and counts them for nobody. By default it keeps 20
// for each socket, and 131,072 for each network on a host of 16 GiB.
const maxGroups, maxClosed = "4", "32768"

// set sets a parameter of the kernel if this kernel has it.
func set(path, value string) error {
	if err := os.WriteFile(path, []byte(value), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// connect makes the devices.
func (w *wire) connect() error {
	inside, err := netlink.NewHandleAt(netns.NsHandle(w.ns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer inside.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = w.name
	if attrs.HardwareAddr, err = hardwareAddress(); err != nil {
		return err
	}
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(w.ns.Fd())}); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	// The host's end knows no IPv6, by which a container could go round the
	// firewall, and lets connections from the host's loopback be mapped.
	for _, setting := range []struct{ path, value string }{
		{"/proc/sys/net/ipv6/conf/" + w.name + "/disable_ipv6", "1"},
		{"/proc/sys/net/ipv4/conf/" + w.name + "/route_localnet", "1"},
	} {
		if err := set(setting.path, setting.value); err != nil {
			return err
		}
	}
	if w.host, err = netlink.LinkByName(w.name); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(w.host); err != nil {
		return err
	}
	loopback, err := inside.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := inside.LinkSetUp(loopback); err != nil {
		return err
	}
	if w.inner, err = inside.LinkByName("eth0"); err != nil {
		return err
	}
	if err := inside.LinkSetUp(w.inner); err != nil {
		return err
	}
	return InNamespace(w.ns, func() error { return set(solicitations, "0") })
}

// hardwareAddress returns a random one for the host's end of a wire. If the kernel chose
// it, udev would soon replace it (MACAddressPolicy=persistent of systemd), and the
// container would go on sending to the former one; see [neighbour].
func hardwareAddress() (net.HardwareAddr, error) {
	address := make(net.HardwareAddr, 6)
	if _, err := rand.Read(address); err != nil {
		return nil, err
	}
	address[0] = address[0]&^1 | 2 // of one device, and not assigned by its maker
	return address, nil
}

// solicitations is how often the kernel asks a container's wire who has an address. The
// one that is there is known; see [neighbour]. The kernel keeps an address that it
// asks for in a table for the whole host and does not give the place away while it
// waits for an answer. A container can send to any address on its wire, past all routes,
// and would fill the table. Without a question, the place can be taken at once.
const solicitations = "/proc/sys/net/ipv4/neigh/eth0/mcast_solicit"

// setAddresses gives a wire its addresses, and the namespace its route.
func (w *wire) setAddresses(host, inner netip.Addr) error {
	w.hostAddress, w.innerAddress = pairAddress(host), pairAddress(inner)
	if err := netlink.AddrAdd(w.host, w.hostAddress); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if err := netlink.NeighSet(neighbour(w.host, w.inner, w.innerAddress)); err != nil {
		return fmt.Errorf("neighbour: %w", err)
	}
	return InNamespace(w.ns, func() error {
		if err := netlink.AddrAdd(w.inner, w.innerAddress); err != nil {
			return fmt.Errorf("address: %w", err)
		}
		if err := netlink.NeighSet(neighbour(w.inner, w.host, w.hostAddress)); err != nil {
			return fmt.Errorf("neighbour: %w", err)
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: w.inner.Attrs().Index, Gw: host.AsSlice()})
	})
}

// neighbour tells the device at one end who is at the other. The kernel then need not
// ask, and has room for this even if the table of neighbours, which is one for the whole
// host, is full.
func neighbour(device, other netlink.Link, address *netlink.Addr) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: device.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
		IP: address.IP, HardwareAddr: other.Attrs().HardwareAddr,
	}
}

func pairAddress(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(31, 32)}}
}

// clear takes the addresses away and reports whether the wire is as it was
// when it was made. It is not if a socket is left, such as one of a connection
// that has just been closed: it could keep the next container from listening.
// Nobody without privileges can have given the wire other addresses, so nothing
// has to be listed: the kernel would list those of all containers.
func (w *wire) clear() bool {
	if w.hostAddress == nil { // it never had any
		return true
	}
	err := InNamespace(w.ns, func() error {
		if left, err := socketsLeft("/proc/thread-self/net/"); err != nil || left {
			return cmp.Or(err, errSocketsLeft)
		}
		return errors.Join(netlink.NeighDel(neighbour(w.inner, w.host, w.hostAddress)), netlink.AddrDel(w.inner, w.innerAddress))
	})
	if err != nil || netlink.NeighDel(neighbour(w.host, w.inner, w.innerAddress)) != nil || netlink.AddrDel(w.host, w.hostAddress) != nil {
		return false
	}
	w.hostAddress, w.innerAddress = nil, nil
	return true
}

var errSocketsLeft = errors.New("sockets are left")

// socketsLeft reads the kernel's statistics of a namespace.
func socketsLeft(dir string) (bool, error) {
	for _, name := range []string{"sockstat", "sockstat6"} {
		text, err := os.ReadFile(dir + name)
		if errors.Is(err, os.ErrNotExist) && name == "sockstat6" { // a kernel without IPv6
			continue
		}
		if err != nil {
			return false, err
		}
		for line := range strings.Lines(string(text)) {
			// As in "TCP: inuse 0 orphan 0 tw 0 alloc 12 mem 3", of which orphan,
			// alloc and mem are of all namespaces. The first line counts others
			// that no process needs.
			fields := strings.Fields(line)
			for i := 1; i+1 < len(fields) && fields[0] != "sockets:"; i += 2 {
				if (fields[i] == "inuse" || fields[i] == "tw") && fields[i+1] != "0" {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// remove gives the namespace up and returns when the devices are gone.
func (w *wire) remove() error {
	w.ns.Close()
	return removeDevice(w.name)
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

// removeDevices returns when there is no device any more whose name begins so.
func removeDevices(prefix string) error {
	entries, err := os.ReadDir("/sys/class/net")
	for _, e := range entries {
		if err == nil && strings.HasPrefix(e.Name(), prefix) {
			err = removeDevice(e.Name())
		}
	}
	return err
}
