//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestNoMoreNetworksWaitThanMayAndNoneWhenTheNetworkIsClosed(t *testing.T) {
	n := newNetwork(t)
	var wires []*wire
	for range maxIdle + 2 {
		w, err := n.wire()
		if err != nil {
			t.Fatal(err)
		}
		wires = append(wires, w)
	}
	for _, w := range wires {
		if err := n.release(w, true); err != nil {
			t.Error(err)
		}
	}
	if got := len(n.idle); got != maxIdle {
		t.Errorf("%d wait", got)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	devices, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		if strings.HasPrefix(d.Name(), n.prefix) {
			t.Errorf("%s is left", d.Name())
		}
	}
	w, err := newWire(n.prefix + "late")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.release(w, true); err != nil || len(n.idle) != 0 {
		t.Errorf("after Close one waits: %v", err)
	}
}

// udev gives a device another hardware address if the kernel has chosen it. The other end
// of the wire would not learn of that.
func TestUdevKeepsTheHardwareAddressOfAWire(t *testing.T) {
	w := looseWire(t)
	const chosen = "3" // NET_ADDR_SET; 1 is NET_ADDR_RANDOM
	text, err := os.ReadFile("/sys/class/net/" + w.name + "/addr_assign_type")
	if err != nil || strings.TrimSpace(string(text)) != chosen {
		t.Errorf("the address was assigned as %q, %v; want %s", text, err, chosen)
	}
}

func TestSocketsThatAreLeftAreCounted(t *testing.T) {
	for _, test := range []struct {
		sockstat, sockstat6 string
		left                bool
	}{
		{"sockets: used 7\nTCP: inuse 0 orphan 3 tw 0 alloc 9 mem 4\nUDP: inuse 0 mem 1\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n", "", false},
		{"TCP: inuse 0 orphan 0 tw 1 alloc 0 mem 0\n", "", true},
		{"TCP: inuse 1 orphan 0 tw 0 alloc 0 mem 0\n", "", true},
		{"TCP: inuse 0 orphan 0 tw 0 alloc 0 mem 0\nUDP: inuse 2 mem 0\n", "", true},
		{"TCP: inuse 0 orphan 0 tw 0 alloc 0 mem 0\n", "TCP6: inuse 1\n", true},
		{"", "", false},
	} {
		dir := t.TempDir() + "/"
		for name, text := range map[string]string{"sockstat": test.sockstat, "sockstat6": test.sockstat6} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if left, err := socketsLeft(dir); left != test.left || err != nil {
			t.Errorf("%q, %q: %v, %v", test.sockstat, test.sockstat6, left, err)
		}
		if err := os.Remove(dir + "sockstat6"); err != nil {
			t.Fatal(err)
		}
		if _, err := socketsLeft(dir); err != nil {
			t.Errorf("without IPv6: %v", err)
		}
	}
	if _, err := socketsLeft(t.TempDir() + "/"); err == nil {
		t.Error("no statistics are taken for no sockets")
	}
}

// A daemon that was killed leaves devices only as long as the kernel takes,
// and the next one waits for no kernel.
func TestDevicesOfAnEarlierDaemonAreRemoved(t *testing.T) {
	n := newNetwork(t)
	w, err := newWire(n.prefix + "old")
	if err != nil {
		t.Fatal(err)
	}
	defer w.ns.Close() // a namespace that somebody keeps
	if err := removeDevices(n.prefix); err != nil {
		t.Error(err)
	}
	if _, err := net.InterfaceByName(w.name); err == nil {
		t.Error("the device is there")
	}
}

// The kernel has one table for the whole host, with 1024 places unless it is set higher.
func TestAContainerThatCallsAllAddressesOnItsWireKeepsNoPlaceAmongTheNeighboursOfTheHost(t *testing.T) {
	w := looseWire(t)
	if err := w.setAddresses(netip.MustParseAddr("198.51.100.0"), netip.MustParseAddr("198.51.100.1")); err != nil {
		t.Fatal(err)
	}
	err := InNamespace(w.ns, func() error {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		if err := unix.BindToDevice(socket, "eth0"); err != nil {
			return err
		}
		for i := range byte(100) {
			err := unix.Sendto(socket, []byte("x"), unix.MSG_DONTROUTE|unix.MSG_DONTWAIT, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{198, 18, 0, i}})
			if err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for end, neighbours := range neighboursOf(t, w) {
		known := 0
		for _, n := range neighbours {
			switch n.State {
			case netlink.NUD_PERMANENT:
				known++
			case netlink.NUD_FAILED: // which the kernel takes back when it needs the place
			default:
				t.Errorf("%s keeps a place for %v", end, n)
			}
		}
		if known != 1 {
			t.Errorf("%s knows %d others", end, known)
		}
	}
	if !w.clear() {
		t.Fatal("the wire is not as it was")
	}
	for end, neighbours := range neighboursOf(t, w) {
		for _, n := range neighbours {
			if n.State == netlink.NUD_PERMANENT {
				t.Errorf("%s still knows %v", end, n)
			}
		}
	}
}

// neighboursOf lists those of both ends.
func neighboursOf(t *testing.T, w *wire) map[string][]netlink.Neigh {
	t.Helper()
	outer, err := netlink.NeighList(w.host.Attrs().Index, unix.AF_INET)
	if err != nil {
		t.Fatal(err)
	}
	var inner []netlink.Neigh
	if err := InNamespace(w.ns, func() (err error) {
		inner, err = netlink.NeighList(w.inner.Attrs().Index, unix.AF_INET)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return map[string][]netlink.Neigh{"the host's end": outer, "the container's end": inner}
}
