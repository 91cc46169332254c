//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/executor"
)

func TestANetworkIsUsedAgainOnlyIfNothingOfItsContainerIsLeft(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.AllowPrivileged = true })
	const server = `perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(Listen => 9, LocalPort => 8080) or die $!;
		$| = 1; print "ready\n"; my $c = $s->accept; %s; print "done\n"; sleep 1000'`
	visit := func(guid string) {
		conn, err := f.Dial(f.ctx, guid, 8080)
		if err != nil {
			t.Fatal(err)
		}
		conn.Read(make([]byte, 1)) // until the server closes it
		conn.Close()
	}
	for _, test := range []struct {
		name   string
		edit   func(*executor.ContainerSpec)
		use    func(guid string)
		reused bool
	}{
		{"nothing ran", nil, func(string) {}, true},
		{"a server that nobody called", nil, func(guid string) {
			f.as("nobody", guid, fmt.Sprintf(server, "")).says("ready")
		}, true},
		{"a server that has closed a connection", nil, func(guid string) {
			r := f.as("nobody", guid, fmt.Sprintf(server, "close $c"))
			r.says("ready")
			visit(guid)
			r.says("done")
		}, false},
		{"rules", func(c *executor.ContainerSpec) {
			c.EgressRules = []executor.EgressRule{{Protocol: executor.ProtocolAll, Destinations: []string{"10.0.0.1"}}}
		}, func(string) {}, true},
		{"privileges", func(c *executor.ContainerSpec) { c.Privileged = true }, func(string) {}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			edit := test.edit
			if edit == nil {
				edit = func(*executor.ContainerSpec) {}
			}
			guid, _ := f.create(edit)
			first := f.containers[guid].link
			test.use(guid)
			f.delete(guid)
			guid, _ = f.create()
			second := f.containers[guid].link
			if reused := first.wire == second.wire; reused != test.reused {
				t.Errorf("its network is used again: %v", reused)
			}
			if first.own == second.own {
				t.Errorf("the address %v did not rest", first.own)
			}
			if e := f.as("nobody", guid, fmt.Sprintf("[ $(grep -c . /proc/net/route) = 3 ] && grep -q %v /proc/net/fib_trie && ! grep -q '|-- %v$' /proc/net/fib_trie",
				second.own, first.own)).end(); !e.Success() {
				t.Errorf("the next container has more than its own address and route: %v", e)
			}
			if !reaches(f, guid, "tcp", listener(t, second.gateway.String())) {
				t.Error("the next container does not reach its host")
			}
			f.delete(guid)
		})
	}
}

func TestNoMoreNetworksWaitThanMayAndNoneWhenTheBackendIsClosed(t *testing.T) {
	f := newFixture(t)
	var wires []*wire
	for range maxIdle + 2 {
		w, err := f.network.wire()
		if err != nil {
			t.Fatal(err)
		}
		wires = append(wires, w)
	}
	for _, w := range wires {
		if err := f.network.release(w, true); err != nil {
			t.Error(err)
		}
	}
	if n := len(f.network.idle); n != maxIdle {
		t.Errorf("%d wait", n)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left := traces(t, f.Backend); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	w, err := newWire(f.network.prefix + "late")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.network.release(w, true); err != nil || len(f.network.idle) != 0 {
		t.Errorf("after Close one waits: %v", err)
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
	f := newFixture(t)
	w, err := newWire(f.network.prefix + "old")
	if err != nil {
		t.Fatal(err)
	}
	defer w.ns.Close() // a namespace that somebody keeps
	if err := removeDevices(f.network.prefix); err != nil {
		t.Error(err)
	}
	if _, err := net.InterfaceByName(w.name); err == nil {
		t.Error("the device is there")
	}
}
