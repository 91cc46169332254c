//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
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
			first, device := f.containers[guid].link, f.containers[guid].link.Device()
			test.use(guid)
			f.delete(guid)
			guid, _ = f.create()
			second := f.containers[guid].link
			if reused := device == second.Device(); reused != test.reused {
				t.Errorf("its network is used again: %v", reused)
			}
			if first.Own == second.Own {
				t.Errorf("the address %v did not rest", first.Own)
			}
			if e := f.as("nobody", guid, fmt.Sprintf("[ $(grep -c . /proc/net/route) = 3 ] && grep -q %v /proc/net/fib_trie && ! grep -q '|-- %v$' /proc/net/fib_trie",
				second.Own, first.Own)).end(); !e.Success() {
				t.Errorf("the next container has more than its own address and route: %v", e)
			}
			if !reaches(f, guid, "tcp", listener(t, second.Gateway.String())) {
				t.Error("the next container does not reach its host")
			}
			f.delete(guid)
		})
	}
}
