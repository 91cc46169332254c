//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/reach"
	"github.com/diegosdk/diego/internal/testenv"
)

// testID is an id that no Backend and no other run of these tests has.
func testID() string { return fmt.Sprintf("%08x", os.Getpid()) }

// newNetwork makes a network, which is gone at the end of the test.
func newNetwork(t *testing.T) *Network {
	t.Helper()
	return newNetworkWith(t, 0)
}

// newNetworkWith makes one with this share of connections.
func newNetworkWith(t *testing.T, share uint32) *Network {
	t.Helper()
	testenv.Root(t)
	n, err := New(testID(), netip.Prefix{}, share)
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

// full says how many connections the kernel tracks, for one test.
func full(t *testing.T, now, most uint64) {
	before := tracked
	t.Cleanup(func() { tracked = before })
	tracked = func() (uint64, uint64) { return now, most }
}

// linkTo makes a link, and returns how it connects to what listens at an address. The
// connections are open until the end of the test.
func linkTo(t *testing.T, n *Network) (l *Link, connect func(netip.AddrPort) error) {
	t.Helper()
	l = &Link{GUID: "a"}
	if err := n.Make(l, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Remove(l, false); err != nil {
			t.Error(err)
		}
	})
	return l, func(to netip.AddrPort) error {
		return InNamespace(l.wire.ns, func() error {
			client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			t.Cleanup(func() { unix.Close(client) })
			return unix.Connect(client, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
		})
	}
}

// listen listens on the host's end of a link.
func listen(t *testing.T, l *Link) netip.AddrPort {
	t.Helper()
	server, err := net.Listen("tcp", l.Gateway.String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return netip.MustParseAddrPort(server.Addr().String())
}

func TestWhatALinkHasLeftInTheTableOfConnectionsGoesWhenThereIsLittleRoom(t *testing.T) {
	n := newNetwork(t)
	count := func(address netip.Addr) (count int) {
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
	begin := func() (*Link, netip.Addr) {
		l, connect := linkTo(t, n)
		if err := connect(listen(t, l)); err != nil {
			t.Fatalf("nothing is reached: %v", err)
		}
		if count(l.Own) == 0 {
			t.Fatal("nothing is tracked")
		}
		return l, l.Own
	}
	_, lives := begin()
	for _, test := range []struct {
		name string
		now  uint64
		stay bool
	}{{"room", 49, true}, {"little room", 50, false}} {
		full(t, test.now, 100)
		l, address := begin()
		want := 0
		if test.stay {
			want = count(address)
		}
		if err := n.Remove(l, false); err != nil {
			t.Error(err)
		}
		new(watch).step(n)
		if got := count(address); got != want {
			t.Errorf("with %s, %d connections are left, want %d", test.name, got, want)
		}
	}
	if count(lives) == 0 { // there may have been more, of an earlier run of this test
		t.Error("of a link that is there no connection is left")
	}
}

func TestWhoHasBegunMostOfACrowdedTableOfConnectionsIsRefusedMore(t *testing.T) {
	n := newNetwork(t)
	var w watch
	full(t, 1, 1)
	w.step(n) // removes what earlier tests have left of the same addresses
	const many, few = 200, 20
	greedy, greed := linkTo(t, n)
	modest, modesty := linkTo(t, n)
	toHost := listen(t, modest)
	for i := range many {
		if err := greed(toHost); err != nil {
			t.Fatal(err)
		}
		if i < few {
			if err := modesty(toHost); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Others reach the greedy one at a port of the host.
	const inside, outside = 8080, 30998
	if err := InNamespace(greedy.wire.ns, func() error {
		server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		t.Cleanup(func() { unix.Close(server) })
		return cmp.Or(unix.Bind(server, &unix.SockaddrInet4{Port: inside}), unix.Listen(server, few))
	}); err != nil {
		t.Fatal(err)
	}
	if err := n.Publish(greedy, []executor.PortMapping{{ContainerPort: inside, HostPort: outside}}); err != nil {
		t.Fatal(err)
	}
	toGreedy := netip.AddrPortFrom(modest.Gateway, outside)
	for _, test := range []struct {
		name      string
		now, most uint64
		refused   bool
	}{
		{"half of the table is free", 199, 400, false},
		{"the containers have more than five eighths", 220, 320, true},
		{"nothing has changed", 220, 320, true},
		{"they have less", 250, 400, false},
		{"they have too much again", 220, 320, true},
		{"half of the table is free again", 159, 320, false},
		{"others have the rest", 390, 400, true},
		{"there is no limit", 390, 0, false},
	} {
		full(t, test.now, test.most)
		w.lowest, w.next = 0, time.Time{}
		w.step(n)
		for name, is := range map[string]struct {
			err     error
			refused bool
		}{
			"the greedy one to the host":   {greed(toHost), test.refused},
			"the modest one to the greedy": {modesty(toGreedy), false},
			"the modest one to the host":   {modesty(toHost), false},
		} {
			if refused := errors.Is(is.err, unix.EHOSTUNREACH); refused != is.refused || !refused && is.err != nil {
				t.Errorf("when %s, %s: %v", test.name, name, is.err)
			}
		}
	}
}

func TestAContainerBeginsConnectionsAtABoundedPaceAndTheHostDoesNot(t *testing.T) {
	full(t, 0, 640) // so ten a second
	n := newNetworkWith(t, 1000)
	l, connect := linkTo(t, n)
	to := listen(t, l)
	if err := connect(to); err != nil { // it waits until the kernel has connected the devices
		t.Fatal(err)
	}
	var clients []int
	if err := InNamespace(l.wire.ns, func() error {
		for range 100 {
			client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			t.Cleanup(func() { unix.Close(client) })
			if err := unix.Connect(client, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil && err != unix.EINPROGRESS {
				return err
			}
			clients = append(clients, client)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // they try again after a second
	begun := 0
	for _, client := range clients {
		if _, err := unix.Getpeername(client); err == nil {
			begun++
		}
	}
	if begun < 9 || begun > 50 { // more if this machine is slow
		t.Errorf("of 100 at once, it has begun %d, want about 9", begun)
	}
	for range 20 {
		c, err := net.Dial("tcp", to.String())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

func TestTheBoundsOfConnectionsFollowTheTable(t *testing.T) {
	for _, test := range []struct {
		most  uint64
		share uint32
		want  bounds
	}{
		{640, 0, bounds{80, 10}},
		{640, 7, bounds{7, 10}},
		{0, 0, bounds{32768, 0}}, // nobody knows
		{7, 0, bounds{1, 0}},
	} {
		if got := boundsOf(test.most, test.share); got != test.want {
			t.Errorf("of %d with %d they are %v, want %v", test.most, test.share, got, test.want)
		}
	}
}

func TestTheTableOfConnectionsIsReadWhenItIsTimeOrWhenItHasGrown(t *testing.T) {
	n := newNetwork(t)
	soon, late := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	manyUsed := func(n *Network) {
		for pair := range n.pairs() / 2 {
			n.taken[pair] = pair%2 == 0
		}
		for pair := range n.pairs() / 4 {
			n.taken[n.pairs()/2+pair] = true
		}
	}
	for _, test := range []struct {
		name   string
		lowest float64
		next   time.Time
		now    uint64 // of 1,600
		many   bool   // addresses have been used
		reads  bool
	}{
		{"it has just become crowded", 0, time.Time{}, 800, false, true},
		{"it is not crowded", 0, time.Time{}, 799, false, false},
		{"it was read", 0.5, late, 800, false, false},
		{"it has grown a little", 0.5, late, 899, false, false},
		{"it has grown", 0.5, late, 900, false, true},
		{"it is time", 0.5, soon, 800, false, true},
		{"it has shrunk, and it is not time", 0.9, late, 900, false, false},
		{"it has become smaller and crowded again since it was read", 0.5, late, 700, false, false},
		{"many addresses have been used", 0, soon, 10, true, true},
		{"many addresses have been used, and it is not time", 0, late, 10, true, false},
	} {
		full(t, test.now, 1600)
		clear(n.taken)
		if test.many {
			manyUsed(n)
		}
		w := watch{lowest: test.lowest, next: test.next}
		if w.step(n); w.next.Equal(test.next) == test.reads {
			t.Errorf("%s: the table was read: %v", test.name, !test.reads)
		}
		if n.manyUsed() != (test.many && !test.reads) {
			t.Errorf("%s: then many addresses have been used: %v", test.name, n.manyUsed())
		}
	}
}

func TestContainersHaveWhatOthersLeaveOfTheTableOfConnections(t *testing.T) {
	one, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.3")
	for _, test := range []struct {
		counts    map[netip.Addr]int
		now, most float64
		want      []netip.Addr
	}{
		{nil, 800, 800, nil},
		{map[netip.Addr]int{one: 500}, 500, 800, nil},
		{map[netip.Addr]int{one: 501}, 501, 800, []netip.Addr{one}},
		{map[netip.Addr]int{one: 400, other: 101}, 501, 800, []netip.Addr{one}},
		{map[netip.Addr]int{one: 350}, 700, 800, nil}, // as much as another Backend
		{map[netip.Addr]int{one: 351}, 702, 800, []netip.Addr{one}},
		{map[netip.Addr]int{one: 100}, 800, 800, nil},
		{map[netip.Addr]int{one: 101}, 800, 800, []netip.Addr{one}},
	} {
		if got := crowding(test.counts, test.now, test.most); !slices.Equal(got, test.want) {
			t.Errorf("of %v among %v of %v, too many are those of %v, want %v", test.counts, test.now, test.most, got, test.want)
		}
	}
}

func TestAFairPartLeavesNobodyWithLessForThoseWhoWantMore(t *testing.T) {
	for _, test := range []struct {
		counts []int
		room   int
		want   int
	}{
		{nil, 10, math.MaxInt},
		{[]int{10}, 10, math.MaxInt},
		{[]int{11}, 10, 10},
		{[]int{4, 6}, 10, math.MaxInt},
		{[]int{9, 3}, 10, 7},
		{[]int{9, 9}, 10, 5},
		{[]int{1, 100, 2, 100}, 23, 10},
		{[]int{1, 1, 1}, 2, 0},
	} {
		if got := fairPart(slices.Clone(test.counts), test.room); got != test.want {
			t.Errorf("of %d for %v, a part is %d, want %d", test.room, test.counts, got, test.want)
		}
	}
}

func TestAnAttributeIsFoundInAnythingThatTheKernelMaySay(t *testing.T) {
	of := func(kind uint16, value ...byte) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
		b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
		return append(b, make([]byte, (4-len(b)%4)%4)...)
	}
	all := slices.Concat(of(1, 10), of(2|unix.NLA_F_NESTED, of(1, 1, 2, 3, 4)...), of(3))
	for _, test := range []struct {
		attributes []byte
		kind       uint16
		want       []byte
	}{
		{all, 1, []byte{10}},
		{all, 2, of(1, 1, 2, 3, 4)},
		{all, 3, []byte{}},
		{all, 4, nil},
		{all[:5], 1, []byte{10}}, // without what fills it up
		{all[:5], 2, nil},
		{all[:4], 1, nil},
		{all[:3], 1, nil},
		{nil, 1, nil},
		{make([]byte, 8), 1, nil}, // of no length
	} {
		if got := attribute(test.attributes, test.kind); !bytes.Equal(got, test.want) {
			t.Errorf("%d in %v is %v, want %v", test.kind, test.attributes, got, test.want)
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

func TestAnAddressIsGivenAgainAfterOthersUntilTheTableOfConnectionsWasRead(t *testing.T) {
	n := &Network{subnet: netip.MustParsePrefix("10.0.0.0/29"), taken: map[uint32]bool{0: false, 2: true, 3: false}}
	next := func() uint32 {
		var l Link
		if err := n.take(&l); err != nil {
			t.Fatal(err)
		}
		return l.pair
	}
	used := n.usedAddresses()
	if got := next(); got != 1 {
		t.Errorf("the first is %d, want 1", got)
	}
	if got := next(); got != 3 {
		t.Errorf("when there is no other, it is %d, want 3", got)
	}
	n.clean(used)
	if _, used := n.taken[0]; used || !n.taken[3] {
		t.Errorf("after the table was read, the addresses are %v", n.taken)
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
