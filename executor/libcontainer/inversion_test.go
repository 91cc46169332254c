//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/parallel"
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

// lightAndBusy makes containers of little weight that run a script, and busy ones of the
// full weight beside them.
func lightAndBusy(f *fixture, script string) (light []string) {
	var all []string
	f.Cleanup(func() { // together, as a daemon does
		parallel.Each(len(all), len(all), func(i int) { f.delete(all[i]) })
	})
	many, busy := 20, 4*runtime.NumCPU()
	if testing.Short() { // an emulated processor is slow
		many, busy = 4, runtime.NumCPU()
	}
	for range many {
		guid, _ := f.create(size(64), func(c *executor.ContainerSpec) { c.CPUWeight = 1 })
		f.as("nobody", guid, "sleep 4; "+script)
		light, all = append(light, guid), append(all, guid)
	}
	for range busy {
		guid, _ := f.create()
		all = append(all, guid)
		f.as("nobody", guid, `exec perl -e 'sleep 4; for (1 .. 3) { last unless fork } $end = time + 60; 1 while time < $end'`)
	}
	time.Sleep(5 * time.Second) // until they are busy
	return light
}

func TestContainersOfLittleWeightThatForkDoNotHoldUpTheCreationOfOthers(t *testing.T) {
	f := newFixture(t)
	lightAndBusy(f, `exec perl -e '$end = time + 60; for (1 .. 20) { next if fork; while (time < $end) { if (my $p = fork) { waitpid $p, 0 } else { exec "/bin/true" if rand() < .5; exit } } exit } 1 while wait > 0'`)
	// Without help it took 25 to 56 s.
	var longest time.Duration
	for began := time.Now(); time.Since(began) < 20*time.Second; {
		start := time.Now()
		guid, _ := f.create(size(32))
		longest = max(longest, time.Since(start))
		f.delete(guid)
	}
	if t.Logf("the longest creation took %v", longest); longest > 15*time.Second {
		t.Errorf("a neighbour was made in %v", longest)
	}
}

func TestAContainerOfLittleWeightIsKilledAsFastAsOthers(t *testing.T) {
	f := newFixture(t)
	light := lightAndBusy(f, `exec perl -e 'use IO::Handle; $end = time + 60; for (1 .. 20) { next if fork; while (time < $end) { $n++; open my $h, ">", "/tmp/f$$.$n" or next; print $h "x" x 20000; $h->flush; $h->sync if $n % 4 == 0; close $h; rename "/tmp/f$$.$n", "/tmp/g$$"; truncate "/tmp/g$$", 100; symlink "a" x 200, "/tmp/l$$"; unlink "/tmp/l$$" } exit } 1 while wait > 0'`)
	least := f.containers[light[0]].cgroup.CPUWeight()
	start := time.Now()
	if err := f.Signal(f.ctx, light[0], executor.Kill); err != nil {
		t.Fatal(err)
	}
	// Without help it took 28 s.
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	} else {
		t.Logf("it took %v", took)
	}
	if got := f.containers[light[0]].cgroup.CPUWeight(); got != least {
		t.Errorf("it has the weight %d afterwards, and had %d", got, least)
	}
}
