//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/executor"
)

// A host runs two cells. Root in a container of one attacks a container of the
// other, and the attackers' daemon ends in each way that there is. Containers
// of both cells have the same guid, so that a mistake would hit the other one.
func TestATenantOfOneCellDoesNotHarmAnotherCellOfTheHost(t *testing.T) {
	victim, attacker := newFixture(t), newFixture(t)
	target, endpoint := victim.create(func(c *executor.ContainerSpec) {
		c.Ports, c.Resources.DiskMB = []uint16{8080}, 16
	})
	server := victim.as("nobody", target, `perl -MIO::Socket::INET -e 'my @s = map { IO::Socket::INET->new(Listen => 9, LocalPort => $_) or die } 8080, 9090; $| = 1; print "ready\n"; my $n = fork ? 0 : 1; while (my $c = $s[$n]->accept) { print $c "hello\n"; close $c }'`)
	server.says("ready")
	mapped := fmt.Sprint(endpoint.Ports[0].HostPort)
	serves := func(after string) {
		t.Helper()
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+mapped, patience)
		if err != nil {
			t.Errorf("after %s: %v", after, err)
			return
		}
		defer conn.Close()
		if said, err := io.ReadAll(conn); string(said) != "hello\n" {
			t.Errorf("after %s it says %q, %v", after, said, err)
		}
		if exit := victim.as("nobody", target, "echo x >/tmp/x && exit 3").end(); exit.Status != 3 {
			t.Errorf("after %s a process in it ended with %+v", after, exit)
		}
	}
	serves("its start")

	free, _ := attacker.create()
	bound, _ := attacker.create(func(c *executor.ContainerSpec) {
		c.EgressRules = []executor.EgressRule{{Protocol: executor.ProtocolAll, Destinations: []string{"192.0.2.0/24"}}}
	})
	if free != target {
		t.Fatalf("the containers are %s and %s", free, target)
	}
	own, its := attacker.containers[free], victim.containers[target]
	if a, b := own.ids, its.ids; a.First < b.First+b.Size && b.First < a.First+a.Size {
		t.Errorf("both have ids from %d and %d on", a.First, b.First)
	}
	for _, test := range []struct {
		name, from, host, port string
		reached                bool
	}{
		{"its mapped port", free, own.link.Gateway.String(), mapped, true},
		{"its mapped port by its own gateway", free, its.link.Gateway.String(), mapped, true},
		{"its mapped port, against the rules", bound, own.link.Gateway.String(), mapped, false},
		{"its mapped port by its own gateway, against the rules", bound, its.link.Gateway.String(), mapped, false},
		{"its port by its address", free, its.link.Address(), "8080", false},
		{"a port that is not mapped", free, its.link.Address(), "9090", false},
	} {
		dial := fmt.Sprintf(`perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(PeerAddr => "%s", PeerPort => %s, Timeout => 2) or exit 1; exit(<$s> eq "hello\n" ? 0 : 2)'`, test.host, test.port)
		if got := attacker.as("root", test.from, dial).end().Success(); got != test.reached {
			t.Errorf("%s was reached: %v, want %v", test.name, got, test.reached)
		}
	}
	for name, script := range map[string]string{
		"signals all processes":              "trap '' TERM; kill -TERM -1; kill -TERM " + fmt.Sprint(its.initPID),
		"sees the cgroup":                    "ls -d /sys/fs/cgroup/*/*" + victim.id + "* /sys/fs/cgroup/*" + victim.id + "*",
		"sees the files":                     "ls " + victim.dir(target),
		"sees the mounts":                    "ls " + victim.mounts,
		"sees a disk":                        "ls /dev/loop*",
		"makes a device of a disk":           "mknod /tmp/disk b 7 0 && cat /tmp/disk >/dev/null",
		"attaches a file to a device":        "mknod /tmp/control c 10 237 && : </tmp/control",
		"changes the firewall":               "nft delete table diego-" + victim.id,
		"takes an address":                   "ip address add " + its.link.Address() + "/32 dev eth0",
		"removes the device":                 "ip link delete " + its.link.Device(),
		"changes a parameter of the network": "echo 0 >/proc/sys/net/ipv4/ip_forward",
	} {
		if exit := attacker.as("root", free, script).end(); exit.Success() {
			t.Errorf("somebody in another cell %s", name)
		}
		serves("somebody " + name)
	}

	// Everything that is bounded at once, while the other cell works.
	flood := attacker.as("root", free, `echo ready; while :; do
		(for i in 1 2 3 4 5 6 7 8; do perl -MIO::Socket::INET -e 'push @s, IO::Socket::INET->new(PeerAddr => "`+own.link.Gateway.String()+`", PeerPort => 1, Timeout => 1) for 1..100' & done
		dd if=/dev/zero of=/dev/shm/x bs=1M count=64 & wait) 2>/dev/null; done`)
	flood.says("ready")
	for range 5 {
		serves("a flood has begun")
	}
	other, _ := victim.create()
	victim.delete(other)

	attacker.delete(free)
	serves("the other container with its guid was deleted")
	dir := filepath.Join(t.TempDir(), "killed")
	killedDaemon(t, dir)
	serves("a daemon was killed")
	heir := newFixture(t, func(o *Options) { o.Dir = dir }) // which removes what is left
	serves("that daemon has begun anew")
	heir.eventually("what ran has ended", func() bool { return !running(t, heir.Backend) })
	heir.delete("a")
	serves("what was left has been deleted")
}
