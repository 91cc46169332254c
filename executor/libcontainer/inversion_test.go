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
	light, busy, lasts, most := 20, 4*runtime.NumCPU(), 30*time.Second, 8*time.Second
	if testing.Short() { // an emulated processor is slow
		light, busy, lasts, most = 4, runtime.NumCPU(), 15*time.Second, 30*time.Second
	}
	f := newFixture(t)
	neighbour, _ := f.create(size(32))
	for range light {
		guid, _ := f.create(size(16), func(c *executor.ContainerSpec) { c.CPUWeight = 1 })
		f.as("nobody", guid, few)
	}
	for range busy {
		guid, _ := f.create()
		f.as("nobody", guid, `sleep 8; exec perl -e 'for (1 .. 3) { last unless fork } $end = time + 60; 1 while time < $end'`)
	}
	// Without help it waited for 11 to 37 s, once the others had come to their limit.
	var longest time.Duration
	for began := time.Now(); time.Since(began) < lasts; {
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
	c := &container{cgroup: f.containers[guid].cgroup, spec: f.containers[guid].spec}
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
