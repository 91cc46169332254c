//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

func perl(script string) func(*executor.ProcessSpec) {
	return func(s *executor.ProcessSpec) { s.Path, s.Args = "perl", []string{"-e", "$| = 1; " + script} }
}

// The kernel counts terminals for the whole host alone.
func TestAContainerHasAShareOfTheTerminals(t *testing.T) {
	eachIDs(t, func(t *testing.T, ids func(*Options)) {
		f := newFixture(t, ids)
		guid, _ := f.create()
		r := f.as("nobody", guid, "", perl(`my @f; while (@f < 200 && open(my $f, "+<", "/dev/ptmx")) { push @f, $f } print scalar(@f), " opened"`))
		if e := r.end(); !e.Success() || r.stdout.String() != "8 opened" {
			t.Errorf("%v: %s %s", e, r.stdout, r.stderr)
		}
	})
}

// Buffers of sockets are memory, but cgroup v1 does not count them as such.
func TestSocketsHoldNoMoreMemoryThanTheirContainerMayHave(t *testing.T) {
	const fill = `use IO::Socket::INET; use IO::Handle; use Socket;
		my $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 1000, Timeout => 5) or die; my ($held, $before, @all) = (0, 0);
		for (1..60) {
			my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $l->sockport, Timeout => 5) or last;
			my $a = $l->accept or last; push @all, $c, $a;
			for ($c, $a) { setsockopt($_, SOL_SOCKET, SO_SNDBUF, 8 << 20); setsockopt($_, SOL_SOCKET, SO_RCVBUF, 8 << 20); $_->blocking(0) }
			for my $s ($c, $a) { while (defined(my $n = syswrite($s, "x" x 65536))) { $held += $n } }
			printf "%d\n", $held >> 20;
			last if $held < $before + (1 << 20); # no more than the least for each socket
			$before = $held;
		}`
	f := newFixture(t)
	guid, _ := f.create(func(s *executor.ContainerSpec) { s.Resources.MemoryMB = 64 })
	r := f.as("nobody", guid, "", perl(fill))
	r.end() // with v2 it may run out of memory
	var held int
	for line := range strings.Lines(r.stdout.String()) {
		held, _ = strconv.Atoi(strings.TrimSpace(line))
	}
	if held == 0 || held > 64 {
		t.Errorf("sockets of a container of 64 MiB hold %d MiB: %s", held, r.stderr)
	}
}

// Who has the same user as a child may stop it before it is its program.
func TestAChildThatIsStoppedBeforeItIsItsProgramHoldsNobodyUp(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	r := f.as("root", guid, "", perl(`print "stops"; while (1) { kill 'STOP', -1 }`))
	r.says("stops")
	began := time.Now()
	for range 100 { // some get through
		if _, err := f.try("root", guid, "sleep 1000"); err != nil {
			if !strings.Contains(err.Error(), "has not become its program") {
				t.Errorf("the error is %v", err)
			}
			return
		}
		if time.Since(began) > patience {
			break
		}
	}
	t.Error("no child was stopped in time, or none failed")
}
