//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/network"
	"github.com/diegosdk/diego/internal/testenv"
)

// outside is an address of this host that is not loopback, with a listener on
// TCP and one on UDP: what a container reaches when it goes out.
func outside(f *fixture) (tcp, udp netip.AddrPort) {
	f.Helper()
	// A documentation address on the wire of a container that does nothing
	// else: always there, on any network of the machine.
	guid, _ := f.create()
	host := f.containers[guid].link.Gateway.String()
	tcp = listener(f, host)
	p, err := net.ListenPacket("udp", host+":0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Close() })
	go func() {
		buffer := make([]byte, 100)
		for {
			_, from, err := p.ReadFrom(buffer)
			if err != nil {
				return
			}
			p.WriteTo([]byte("hello\n"), from)
		}
	}()
	return tcp, netip.MustParseAddrPort(p.LocalAddr().String())
}

// listener answers each connection with the address that it comes from.
func listener(t testing.TB, host string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, c.RemoteAddr())
			c.Close()
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

func reaches(f *fixture, guid, protocol string, to netip.AddrPort) bool {
	f.Helper()
	return f.as("nobody", guid, fmt.Sprintf(`perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(Proto => "%s", PeerAddr => "%v", PeerPort => %d, Timeout => 2) or exit 1;
		$SIG{ALRM} = sub { exit 3 }; alarm 2;
		print $s "x\n"; exit(<$s> ? 0 : 2)'`, protocol, to.Addr(), to.Port())).end().Success()
}

func TestAContainerHasItsShareOfTrackedConnectionsAndItsNeighbourTheirs(t *testing.T) {
	const share = 8
	f := newFixture(t, func(o *Options) { o.MaxConnections = share })
	if f.host.connections != "" {
		testenv.Missing(t, "a kernel that counts connections", f.host.connections)
	}
	address, udp := outside(f)
	l, err := net.Listen("tcp", address.Addr().String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "hello")
			t.Cleanup(func() { c.Close() }) // those that are closed count no more
		}
	}()
	tcp := netip.MustParseAddrPort(l.Addr().String())
	for name, to := range map[string]netip.AddrPort{"tcp": tcp, "udp": udp} {
		one, _ := f.create()
		r := f.as("nobody", one, fmt.Sprintf(`perl -MIO::Socket::INET -e '
			for (1..%d) { my $s = IO::Socket::INET->new(Proto => "%s", PeerAddr => "%v", PeerPort => %d, Timeout => 5) or last;
				$SIG{ALRM} = sub { last }; print $s "x\n"; alarm 2; defined <$s> or last; push @all, $s } print scalar @all, "\n"'`, 2*share, name, to.Addr(), to.Port()))
		if !r.end().Success() || r.stdout.String() != fmt.Sprintf("%d\n", share) {
			t.Errorf("it had %s connections over %s, want %d: %s", strings.TrimSpace(r.stdout.String()), name, share, r.stderr)
		}
		other, _ := f.create()
		if !reaches(f, other, name, to) {
			t.Errorf("its neighbour has none over %s", name)
		}
	}
}

func TestEgressRulesAreEnforced(t *testing.T) {
	f := newFixture(t)
	tcp, udp := outside(f)
	host := tcp.Addr().String()
	next := tcp.Addr().Next().String()
	one := func(r executor.EgressRule) []executor.EgressRule { return []executor.EgressRule{r} }
	for _, test := range []struct {
		name     string
		rules    []executor.EgressRule
		tcp, udp bool
	}{
		{"no rules", nil, true, true},
		{"everything to the host", one(executor.EgressRule{Protocol: "all", Destinations: []string{host}}), true, true},
		{"everything to another", one(executor.EgressRule{Protocol: "all", Destinations: []string{next}}), false, false},
		{"a block", one(executor.EgressRule{Protocol: "all", Destinations: []string{host + "/31"}}), true, true},
		{"a range among others", one(executor.EgressRule{Protocol: "all", Destinations: []string{"1.2.3.4," + host + "-" + next}}), true, true},
		{"the TCP port", one(executor.EgressRule{Protocol: "tcp", Destinations: []string{host}, Ports: []uint16{1, tcp.Port()}}), true, false},
		{"another TCP port", one(executor.EgressRule{Protocol: "tcp", Destinations: []string{host}, Ports: []uint16{1}}), false, false},
		{"a range with the UDP port", one(executor.EgressRule{Protocol: "udp", Destinations: []string{host}, PortRange: &executor.PortRange{Start: udp.Port() - 1, End: udp.Port()}}), false, true},
		{"a range below the UDP port", one(executor.EgressRule{Protocol: "udp", Destinations: []string{host}, PortRange: &executor.PortRange{Start: 1, End: udp.Port() - 1}}), false, false},
		{"only ICMP", one(executor.EgressRule{Protocol: "icmp", Destinations: []string{host}, ICMP: &executor.ICMPInfo{Type: -1, Code: -1}}), false, false},
		{"only IPv6", []executor.EgressRule{{Protocol: "all", Destinations: []string{"::/0"}}, {Protocol: "icmpv6", Destinations: []string{"::/0"}, ICMP: &executor.ICMPInfo{}}}, false, false},
		{"two rules, with a log", []executor.EgressRule{
			{Protocol: "udp", Destinations: []string{host}, Ports: []uint16{udp.Port()}, Log: true},
			{Protocol: "tcp", Destinations: []string{host}, Ports: []uint16{tcp.Port()}, Log: true},
		}, true, true},
	} {
		guid, _ := f.create(func(c *executor.ContainerSpec) { c.EgressRules = test.rules })
		if got := reaches(f, guid, "tcp", tcp); got != test.tcp {
			t.Errorf("%s: TCP is reached: %v", test.name, got)
		}
		if got := reaches(f, guid, "udp", udp); got != test.udp {
			t.Errorf("%s: UDP is reached: %v", test.name, got)
		}
		f.delete(guid)
	}
}

// To the kernel, each packet of a connection is the first one until somebody answers.
func TestARuleWithALogWritesALineForAConnectionAndNotManyAtATime(t *testing.T) {
	f := newFixture(t)
	_, udp := outside(f)
	kernel, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(kernel)
	if _, err := unix.Seek(kernel, 0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	silent, err := net.ListenPacket("udp", udp.Addr().String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	guid, _ := f.create(func(c *executor.ContainerSpec) {
		c.EgressRules = []executor.EgressRule{{Protocol: "all", Destinations: []string{udp.Addr().String()}, Log: true}}
	})
	if !reaches(f, guid, "udp", udp) {
		t.Fatal("nobody answers")
	}
	sends := func(connections, packets int) {
		t.Helper()
		r := f.as("nobody", guid, fmt.Sprintf(`perl -MIO::Socket::INET -e 'for (1 .. %d) { push @s, $s = IO::Socket::INET->new(Proto => "udp", PeerAddr => "%s"); $s->send("x") for 1 .. %d }'`,
			connections, silent.LocalAddr(), packets))
		if e := r.end(); !e.Success() {
			t.Fatalf("%v: %s", e, r.stderr)
		}
	}
	lines := func() (n int) {
		record := make([]byte, 8192)
		for {
			length, err := unix.Read(kernel, record)
			if err == unix.EPIPE { // some were lost
				continue
			}
			if err != nil {
				return n
			}
			if strings.Contains(string(record[:length]), "egress "+guid+" ") {
				n++
			}
		}
	}
	sends(20, 100)
	if n := lines(); n != 21 {
		t.Errorf("there are %d lines, for 21 connections", n)
	}
	sends(500, 1)
	if n := lines(); n > 250 {
		t.Errorf("there are %d lines, for 500 connections at once", n)
	}
}

func TestRulesDoNotCutOffWhoComesIn(t *testing.T) {
	f := newFixture(t)
	guid, endpoint := f.create(func(c *executor.ContainerSpec) {
		c.Ports = []uint16{8080}
		c.EgressRules = []executor.EgressRule{{Protocol: "all", Destinations: []string{"192.0.2.1"}}}
	})
	f.as("nobody", guid, `perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 9, LocalPort => 8080); $| = 1; print "ready\n"; while (my $c = $s->accept) { print $c "hello\n"; close $c }'`).says("ready")
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", endpoint.Ports[0].HostPort), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	buffer := make([]byte, 6)
	if _, err := conn.Read(buffer); err != nil || string(buffer) != "hello\n" {
		t.Errorf("it answers %q, %v", buffer, err)
	}
}

func TestAContainerKnowsItsNetwork(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	r := f.as("nobody", guid, "cat /proc/net/fib_trie /etc/hosts /etc/hostname; echo gateways; cut -f 3 /proc/net/route; cat /proc/net/if_inet6")
	if e := r.end(); !e.Success() {
		t.Fatalf("%v: %s", e, r.stderr)
	}
	link := f.containers[guid].link
	gateway := fmt.Sprintf("%08X", binary.NativeEndian.Uint32(link.Gateway.AsSlice()))
	for _, want := range []string{"|-- " + link.Own.String(), gateway, link.Own.String() + " " + guid} {
		if !strings.Contains(r.stdout.String(), want) {
			t.Errorf("it does not know %q: %s", want, r.stdout)
		}
	}
	if strings.Contains(r.stdout.String(), "fe80") {
		t.Errorf("it has IPv6: %s", r.stdout)
	}
}

func TestTrafficIsCountedForEachContainer(t *testing.T) {
	f := newFixture(t)
	_, udp := outside(f)
	used := func(guid string) executor.Usage {
		t.Helper()
		u, err := f.Usage(f.ctx, guid)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first, _ := f.create()
	for range 10 {
		if !reaches(f, first, "udp", udp) {
			t.Fatal("nobody answers")
		}
	}
	before := used(first)
	if before.ReceivedBytes < 10*46 || before.SentBytes < 10*42 { // a frame of UDP with "hello" and with "x"
		t.Errorf("after ten packets each way it has used %+v", before)
	}
	device := f.containers[first].link.Device()
	f.delete(first)
	second, _ := f.create()
	if f.containers[second].link.Device() != device {
		t.Fatal("the network is not used again, so this shows nothing")
	}
	if u := used(second); u.ReceivedBytes < 0 || u.ReceivedBytes > before.ReceivedBytes/2 || u.SentBytes < 0 || u.SentBytes > before.SentBytes/2 {
		t.Errorf("a container that does nothing has used %+v, and the one before in its network %+v", u, before)
	}
}

// A second namespace stands for another machine, which knows this host's
// address and no container's.
func TestAnotherMachineIsReachedInTheNameOfTheHostAndReachesWhatIsMapped(t *testing.T) {
	f := newFixture(t)
	hostAddress, machineAddress := addressesOutside(f)
	machine, inside := anotherMachine(f, hostAddress, machineAddress)
	var l net.Listener
	if err := network.InNamespace(machine, func() (err error) {
		l, err = net.Listen("tcp4", machineAddress+":0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, c.RemoteAddr())
			c.Close()
		}
	}()
	address := netip.MustParseAddrPort(l.Addr().String())

	guid, endpoint := f.create(func(c *executor.ContainerSpec) { c.Ports = []uint16{8080} })
	out := f.as("nobody", guid, fmt.Sprintf(`perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(PeerAddr => "%v", Timeout => 5)->getline'`, address))
	if e := out.end(); !e.Success() || !strings.HasPrefix(out.stdout.String(), hostAddress+":") {
		t.Errorf("the other machine sees %q, want the address %s: %v %s", out.stdout, hostAddress, e, out.stderr)
	}
	strict, _ := f.create(func(c *executor.ContainerSpec) {
		c.EgressRules = []executor.EgressRule{{Protocol: "tcp", Destinations: []string{machineAddress}, Ports: []uint16{address.Port() + 1}}}
	})
	if reaches(f, strict, "tcp", address) {
		t.Error("the other machine was reached against the rules")
	}

	f.as("nobody", guid, `perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 9, LocalPort => 8080); $| = 1; print "ready\n"; while (my $c = $s->accept) { print $c "hello\n"; close $c }'`).says("ready")
	own := f.containers[guid].link.Own
	if err := inside.RouteAdd(&netlink.Route{Dst: &net.IPNet{IP: own.AsSlice(), Mask: net.CIDRMask(32, 32)}, Gw: net.ParseIP(hostAddress)}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, to string
		reached  bool
	}{
		{"the mapped port", fmt.Sprintf("%s:%d", hostAddress, endpoint.Ports[0].HostPort), true},
		{"the container's own address", own.String() + ":8080", false},
	} {
		var conn net.Conn
		err := network.InNamespace(machine, func() (err error) {
			conn, err = net.DialTimeout("tcp4", test.to, 2*time.Second)
			return err
		})
		if (err == nil) != test.reached {
			t.Errorf("%s: %v, want it reached: %v", test.name, err, test.reached)
		}
		if err == nil {
			conn.Close()
		}
	}
}

func TestEgressRulesJudgeTheAddressThatIsDialledAndNotWhereTheMappingLeads(t *testing.T) {
	f := newFixture(t)
	hostAddress, machineAddress := addressesOutside(f)
	anotherMachine(f, hostAddress, machineAddress)
	server, endpoint := f.create(func(c *executor.ContainerSpec) { c.Ports = []uint16{8080} })
	f.as("nobody", server, `perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 9, LocalPort => 8080); $| = 1; print "ready\n"; while (my $c = $s->accept) { print $c "hello\n"; close $c }'`).says("ready")
	own, mapped := f.containers[server].link.Own.String(), endpoint.Ports[0].HostPort
	dialled := netip.AddrPortFrom(netip.MustParseAddr(hostAddress), mapped)
	for _, test := range []struct {
		name    string
		to      string
		ports   []uint16
		reaches bool
	}{
		{"the host and its port", hostAddress, []uint16{mapped}, true},
		{"the host, at any port", hostAddress, nil, true},
		{"the host and the container's port", hostAddress, []uint16{8080}, false},
		{"the container and its port", own, []uint16{8080}, false},
		{"all addresses of containers", f.network.Subnet().String(), nil, false},
		{"the container and the host's port", own, []uint16{mapped}, false},
	} {
		rule := executor.EgressRule{Protocol: executor.ProtocolAll, Destinations: []string{test.to}}
		if test.ports != nil {
			rule.Protocol, rule.Ports = executor.ProtocolTCP, test.ports
		}
		guid, _ := f.create(func(c *executor.ContainerSpec) { c.EgressRules = []executor.EgressRule{rule} })
		if got := reaches(f, guid, "tcp", dialled); got != test.reaches {
			t.Errorf("%s is allowed: %v is reached: %t", test.name, dialled, got)
		}
		f.delete(guid)
	}
}

// addressesOutside are addresses of the block for benchmarks, for this host and
// another machine, and not those of another run of a test.
func addressesOutside(f *fixture) (host, machine string) {
	f.Helper()
	id, err := strconv.ParseUint(f.id, 16, 64)
	if err != nil {
		f.Fatal(err)
	}
	base := netip.MustParseAddr("198.18.0.0").As4()
	base[2], base[3] = byte(id>>8), byte(id)&^3
	first := netip.AddrFrom4(base).Next()
	return first.String(), first.Next().String()
}

// anotherMachine is a namespace with a wire to the host.
func anotherMachine(f *fixture, hostAddress, machineAddress string) (*os.File, *netlink.Handle) {
	f.Helper()
	must := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	var ns *os.File
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			ns, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
	}()
	must(<-made)
	f.Cleanup(func() { ns.Close() })
	inside, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()), unix.NETLINK_ROUTE)
	must(err)
	f.Cleanup(inside.Close)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "dgtest" + f.id
	must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns.Fd())}))
	f.Cleanup(func() {
		if link, err := netlink.LinkByName(attrs.Name); err == nil {
			netlink.LinkDel(link)
		}
	})
	for _, end := range []struct {
		add     func(netlink.Link, *netlink.Addr) error
		up      func(netlink.Link) error
		find    func(string) (netlink.Link, error)
		name    string
		address string
	}{
		{netlink.AddrAdd, netlink.LinkSetUp, netlink.LinkByName, attrs.Name, hostAddress},
		{inside.AddrAdd, inside.LinkSetUp, inside.LinkByName, "eth0", machineAddress},
	} {
		link, err := end.find(end.name)
		must(err)
		must(end.add(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(end.address), Mask: net.CIDRMask(30, 32)}}))
		must(end.up(link))
	}
	return ns, inside
}

func TestTwoBackendsShareAHost(t *testing.T) {
	a, b := newFixture(t), newFixture(t)
	if a.network.Subnet().Overlaps(b.network.Subnet()) {
		t.Errorf("both have chosen %v", a.network.Subnet())
	}
	port := func(c *executor.ContainerSpec) { c.Ports = []uint16{80} }
	inA, atA := a.create(port)
	_, atB := b.create(port)
	if atA.Ports[0].HostPort == atB.Ports[0].HostPort {
		t.Errorf("both have port %d", atA.Ports[0].HostPort)
	}
	if err := b.Delete(b.ctx, "c-1"); err != nil {
		t.Error(err)
	}
	if e := a.as("nobody", inA, "true").end(); !e.Success() {
		t.Errorf("the other's container ended with %v", e)
	}
}
