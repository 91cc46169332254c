//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// few keeps four processes at the memory limit: as many as are in no storm.
const few = `sleep 7; exec perl -e '$end = time + 60; for (1 .. 3) { next if fork; while (time < $end) { if (my $p = fork) { waitpid $p, 0 } else { $x .= "x" x 1_000_000 while 1 } } exit } 1 while wait > 0'`

// The kernel chooses whom to kill with the processor time of the container in which it
// does so. If that has little, all others that are at their limit wait.
func TestContainersOfLittleWeightDoNotHoldUpTheKernelsChoiceForOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 40 s of all processors")
	}
	f := newFixture(t)
	neighbour, _ := f.create(size(32))
	for range 20 {
		guid, _ := f.create(size(16), func(c *executor.ContainerSpec) { c.CPUWeight = 1 })
		f.as("nobody", guid, few)
	}
	for range 4 * runtime.NumCPU() {
		guid, _ := f.create()
		f.as("nobody", guid, `sleep 8; exec perl -e 'for (1 .. 3) { last unless fork } $end = time + 60; 1 while time < $end'`)
	}
	// Without help it waited for 11 to 37 s, as the others came to their limit.
	const most = 8 * time.Second
	var longest time.Duration
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		start := time.Now()
		if end := f.as("nobody", neighbour, "exec "+hog).end(); end.Signal != int(unix.SIGKILL) {
			t.Fatalf("it ended as %+v", end)
		}
		longest = max(longest, time.Since(start))
	}
	if t.Logf("the longest wait was %v", longest); longest > most {
		t.Errorf("a neighbour's process waited %v for its end", longest)
	}
}

func TestAContainerIsHastenedAndNotForGood(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(32), func(c *executor.ContainerSpec) { c.CPUWeight = 10 })
	c := f.containers[guid]
	least := c.cgroup.CPUWeight()
	if c.nearLimit() {
		t.Error("an empty container is near its memory limit")
	}
	for _, hasty := range []bool{true, true, false} {
		c.hasten(hasty)
		if got := c.cgroup.CPUWeight(); (got == least) == hasty || got != least && got < 9*least {
			t.Errorf("hastened %v, it has the weight %d, and %d by itself", hasty, got, least)
		}
	}
}
