//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/internal/reach"
	"github.com/diegosdk/diego/internal/testenv"
)

// testID is an id that no Backend and no other run of these tests has.
func testID() string { return fmt.Sprintf("%08x", os.Getpid()) }

// newNetwork makes a network, which is gone at the end of the test.
func newNetwork(t *testing.T) *Network {
	t.Helper()
	testenv.Root(t)
	n, err := New(testID(), netip.Prefix{}, DefaultShare())
	if err != nil {
		testenv.Missing(t, "a network for containers", err.Error())
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// looseWire makes a wire of a network of its own, without addresses.
func looseWire(t *testing.T) *wire {
	t.Helper()
	n := newNetwork(t)
	w, err := n.wire()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.release(w, false); err != nil {
			t.Error(err)
		}
	})
	return w
}

// The host reaches all ports of a container, so what the daemon downloads must not.
func TestTransfersReachNoContainerOfTheHost(t *testing.T) {
	w := looseWire(t)
	var policy reach.Policy
	host, inner := netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("198.51.100.3")
	if err := policy.Check(inner); err != nil {
		t.Errorf("before there is a container: %v", err)
	}
	if err := w.setAddresses(host, inner); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []netip.Addr{host, inner, netip.AddrFrom16(inner.As16())} {
		if err := policy.Check(addr); !errors.Is(err, reach.ErrRefused) {
			t.Errorf("%v: %v", addr, err)
		}
	}
	if err := policy.Check(inner.Next()); err != nil {
		t.Errorf("beside it: %v", err)
	}
}

func TestWhatALinkHasLeftInTheTableOfConnectionsGoesWhenThereIsLittleRoom(t *testing.T) {
	n := newNetwork(t)
	before := fullness
	t.Cleanup(func() { fullness = before })
	tracked := func(address netip.Addr) (count int) {
		flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
		if err != nil {
			t.Fatal(err)
		}
		for _, flow := range flows {
			if flow.Forward.SrcIP.String() == address.String() {
				count++
			}
		}
		return count
	}
	// begin makes a link over which somebody has reached the host.
	begin := func() *Link {
		l := &Link{GUID: "a"}
		if err := n.Make(l, nil); err != nil {
			t.Fatal(err)
		}
		server, err := net.Listen("tcp", l.Gateway.String()+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		if err := InNamespace(l.wire.ns, func() error {
			client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(client)
			to := server.Addr().(*net.TCPAddr)
			return unix.Connect(client, &unix.SockaddrInet4{Port: to.Port, Addr: l.Gateway.As4()})
		}); err != nil {
			t.Fatalf("nothing is reached: %v", err)
		}
		if tracked(l.Own) == 0 {
			t.Fatal("nothing is tracked")
		}
		return l
	}
	lives := begin()
	for _, test := range []struct {
		name string
		full float64
		stay bool
	}{{"room", 0.49, true}, {"little room", 0.5, false}} {
		fullness = func() float64 { return test.full }
		n.swept = time.Time{}
		l := begin()
		address, want := l.Own, 0
		if test.stay {
			want = tracked(address)
		}
		if err := n.Remove(l, false); err != nil {
			t.Error(err)
		}
		if got := tracked(address); got != want {
			t.Errorf("with %s, %d connections are left, want %d", test.name, got, want)
		}
	}
	if tracked(lives.Own) == 0 { // there may have been more, of an earlier run of this test
		t.Error("of a link that is there no connection is left")
	}
	if err := n.Remove(lives, false); err != nil {
		t.Error(err)
	}
}

func TestLooksAtTheTableOfConnectionsTakeLittleTimeUnlessItIsNearlyFull(t *testing.T) {
	for _, test := range []struct {
		full       float64
		took, want time.Duration
	}{
		{0.5, 0, time.Second},
		{0.5, 100 * time.Millisecond, time.Second},
		{0.5, 600 * time.Millisecond, 6 * time.Second},
		{0.87, 600 * time.Millisecond, 6 * time.Second},
		{0.88, 600 * time.Millisecond, time.Second},
	} {
		if got := sweepPause(test.full, test.took); got != test.want {
			t.Errorf("%v full, after a look of %v: a pause of %v, want %v", test.full, test.took, got, test.want)
		}
	}
}

func TestAddressesAreGivenOnceAndTakenBack(t *testing.T) {
	n := &Network{subnet: netip.MustParsePrefix("10.0.0.0/29"), taken: map[uint32]bool{}}
	seen := map[netip.Addr]bool{}
	for range 4 {
		var l Link
		if err := n.take(&l); err != nil {
			t.Fatal(err)
		}
		for _, a := range []netip.Addr{l.Gateway, l.Own} {
			if seen[a] || !n.subnet.Contains(a) {
				t.Errorf("%v was given twice or does not belong to it", a)
			}
			seen[a] = true
		}
	}
	if err := n.take(new(Link)); err == nil {
		t.Error("more was given than there is")
	}
}

// readOnly makes what is below dir read-only until the end of the test.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	testenv.Root(t)
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}

func TestAHostThatDoesNotRouteIsMadeToOrSaysWhatToDo(t *testing.T) {
	const (
		forward = "net/ipv4/ip_forward"
		advice  = "; make SYSCTL writable, or: sysctl net.ipv4.ip_forward=1"
	)
	for _, test := range []struct {
		name     string
		files    map[string]string
		readOnly bool
		want     string // of the file; empty if it is not there
		err      string
	}{
		{name: "it routes", files: map[string]string{forward: "1\n"}, want: "1\n"},
		{name: "it does not", files: map[string]string{forward: "0\n"}, want: "1"},
		{name: "it says something else", files: map[string]string{forward: "?"}, want: "1"},
		{name: "it does not and cannot be made to", files: map[string]string{forward: "0\n"}, readOnly: true, want: "0\n",
			err: "the host cannot be made to route: open SYSCTL/net/ipv4/ip_forward: read-only file system" + advice},
		{name: "it routes but nothing can be set", files: map[string]string{forward: "1\n"}, readOnly: true, want: "1\n",
			err: "networks of containers cannot be set up, as parameters of the kernel cannot be set: read-only file system; make SYSCTL writable, or embed the backend with Options.HostNetwork"},
		{name: "there is no such parameter", files: map[string]string{"net/ipv4/": ""},
			err: "the host cannot be made to route: open SYSCTL/net/ipv4/ip_forward: no such file or directory" + advice},
		{name: "the parameter is a directory", files: map[string]string{forward + "/": ""},
			err: "the host cannot be made to route: read SYSCTL/net/ipv4/ip_forward: is a directory" + advice},
	} {
		t.Run(test.name, func(t *testing.T) {
			sysctl := t.TempDir()
			for name, content := range test.files {
				path := filepath.Join(sysctl, name)
				err := os.MkdirAll(filepath.Dir(path), 0o755)
				if strings.HasSuffix(name, "/") {
					err = errors.Join(err, os.MkdirAll(path, 0o755))
				} else {
					err = errors.Join(err, os.WriteFile(path, []byte(content), 0o644))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if test.readOnly {
				readOnly(t, sysctl)
			}
			got := ""
			if err := route(sysctl); err != nil {
				got = strings.ReplaceAll(err.Error(), sysctl, "SYSCTL")
			}
			if got != test.err {
				t.Errorf("the error is\n%s, want\n%s", got, test.err)
			}
			text, _ := os.ReadFile(filepath.Join(sysctl, forward))
			if string(text) != test.want {
				t.Errorf("the file is %q, want %q", text, test.want)
			}
		})
	}
}

// Everybody in the host's network sees the names of sockets there, and can take
// them: a tenant of a cell that shares it, or any user of the host.
func TestNobodyWithoutRootTakesTheSubnetsFromTheCellsOfAHost(t *testing.T) {
	testenv.Root(t)
	for third := 0; third < 1<<(subnetBits-subnets.Bits()); third++ {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		name := fmt.Sprintf("@diego-subnet-10.%d.%d.0/%d", 224+third/16, third%16*16, subnetBits)
		unix.Bind(fd, &unix.SockaddrUnix{Name: name}) // unless somebody has it
	}
	const same = "%08x" // but for what chooses the subnet
	var chosen []netip.Prefix
	for i := range 3 {
		subnet, claim, err := freeSubnet(fmt.Sprintf(same, i<<(subnetBits-subnets.Bits())|7))
		if err != nil {
			t.Fatal(err)
		}
		defer claim.Close()
		if slices.Contains(chosen, subnet) {
			t.Errorf("two cells have %v", subnet)
		}
		chosen = append(chosen, subnet)
	}
	info, err := os.Stat(claims)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may lock %s: %v, %v", claims, info, err)
	}
}
