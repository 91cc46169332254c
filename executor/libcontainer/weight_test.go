//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"runtime"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/internal/testenv"
)

func lightly(c *executor.ContainerSpec) { c.CPUWeight = 1 }

// raised reports whether a container that was made lightly has the full weight. In the
// units of cgroup v1 and v2 that is 1024 and 100, and 10 and 1 by itself.
func raised(g *cgroup.Cgroup) bool { return g.CPUWeight() >= 100 }

// lightCgroup is the cgroup of a container that has just been made.
func lightCgroup(f *fixture) *cgroup.Cgroup {
	guid, _ := f.create(size(32), lightly)
	g := f.containers[guid].cgroup
	f.eventually("it has its own weight, even if it has started slowly", func() bool { return !raised(g) })
	return g
}

func TestAContainerIsRaisedAndNotForGood(t *testing.T) {
	g := lightCgroup(newFixture(t))
	c := &container{cgroup: g, spec: executor.ContainerSpec{CPUWeight: 1, Resources: executor.Resources{MemoryMB: 32}}}
	if c.nearLimit() {
		t.Error("an empty container is near its memory limit")
	}
	for i, is := range []bool{true, true, false, true, false, false} {
		if c.raiseInTheWay(is); raised(g) != is {
			t.Errorf("step %d: in the way: %v, it has the weight %d", i, is, g.CPUWeight())
		}
	}
	c.raise(1)
	c.raiseInTheWay(true)
	if c.raiseInTheWay(false); !raised(g) {
		t.Error("one of two reasons has ended, and it is not raised any more")
	}
	if c.raise(-1); raised(g) {
		t.Error("it is raised without a reason")
	}
}

func TestAllContainersAreRaisedWhileOneStartsSlowly(t *testing.T) {
	g := lightCgroup(newFixture(t))
	testenv.Bubble(t, func(t *testing.T) {
		b := &Backend{containers: map[string]*container{"light": {cgroup: g, spec: executor.ContainerSpec{CPUWeight: 1}, made: true}}}
		check := func(when string, want bool) {
			t.Helper()
			if time.Sleep(time.Millisecond); raised(g) != want {
				t.Errorf("%s: it has the weight %d", when, g.CPUWeight())
			}
		}
		done := b.raiseIfSlow()
		check("at the beginning", false)
		done()
		time.Sleep(slowStart)
		check("after a quick start", false)
		done = b.raiseIfSlow()
		time.Sleep(slowStart)
		check("during a slow start", true)
		done()
		check("after it", false)
		done = b.raiseIfSlow()
		time.Sleep(slowStart + slowestStart)
		check("in a start that does not end", false)
		done()
		check("at its end", false)
	})
}

func TestAContainerThatMayHoldUpTheKernelsChoiceIsRaised(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(32), lightly)
	f.as("nobody", guid, `exec perl -e '$x = "x" x 30_000_000; sleep 1000'`)
	c := &container{cgroup: f.containers[guid].cgroup, spec: f.containers[guid].spec, made: true}
	f.eventually("it is near its limit", c.nearLimit)
	f.eventually("it has its own weight", func() bool { return !raised(c.cgroup) })
	b := &Backend{containers: map[string]*container{guid: c}}
	for _, test := range []struct {
		sleeps string
		want   bool
	}{{"do_nanosleep", false}, {"mem_cgroup_out_of_memory", true}, {"0", false}} {
		b.stall = -1 // the host has waited for memory
		if b.endStorms(func(int) []byte { return []byte(test.sleeps) }); raised(c.cgroup) != test.want {
			t.Errorf("while its threads sleep in %s, it has the weight %d", test.sleeps, c.cgroup.CPUWeight())
		}
	}
}

func TestAContainerIsRaisedWhileItIsKilled(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(lightly)
	c := f.containers[guid]
	f.eventually("it has its own weight", func() bool { return !raised(c.cgroup) })
	f.as("nobody", guid, "sleep 1000")
	for _, test := range []struct {
		name  string
		kill  func() error
		after bool
	}{
		{"killed", func() error { return f.Signal(f.ctx, guid, executor.Kill) }, false},
		{"ended for its memory", func() error { c.endForMemory(0); return nil }, true}, // for a while
	} {
		if err := c.enter(); err != nil { // as a start that is under way
			t.Fatal(err)
		}
		killed := make(chan error)
		go func() { killed <- test.kill() }()
		f.eventually("it is raised while it is "+test.name, func() bool { return raised(c.cgroup) })
		c.life.RUnlock()
		if err := <-killed; err != nil {
			t.Fatal(err)
		}
		if raised(c.cgroup) != test.after {
			t.Errorf("%s, it has the weight %d", test.name, c.cgroup.CPUWeight())
		}
	}
}

// busy keeps four processors busy.
const busy = `exec perl -e 'for (1 .. 3) { last unless fork } $end = time + 120; 1 while time < $end'`

// few keeps four processes at the memory limit: as many as are in no storm.
const few = `exec perl -e '$end = time + 120; for (1 .. 3) { next if fork; while (time < $end) { if (my $p = fork) { waitpid $p, 0 } else { $x .= "x" x 1_000_000 while 1 } } exit } 1 while wait > 0'`

// BenchmarkBesideWakes measures how long the start of a container takes beside six in which
// eight processes compute or wake up without end. On a sound kernel all take about as long.
func BenchmarkBesideWakes(b *testing.B) {
	for _, bench := range []struct{ name, script string }{
		{"computing", `for (1 .. 7) { fork or last } 1 while time < $end`},
		{"sleeping", `for (1 .. 7) { fork or last } while (time < $end) { select undef, undef, undef, 0.000001; for ($z = 0; $z < 300; $z++) {} }`},
		{"pipes", `for (1 .. 3) { fork or last } pipe A, B; pipe C, D; if (fork) { while (time < $end) { syswrite B, "x"; sysread C, $x, 1 } } else { while (time < $end) { sysread A, $x, 1; syswrite D, "x" } }`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			f := newFixture(b)
			for range 6 {
				guid, _ := f.create(size(32))
				f.as("nobody", guid, "sleep 3; exec perl -e '$end = time + 120; "+bench.script+"'")
			}
			time.Sleep(4 * time.Second) // until they are busy
			var longest time.Duration
			for b.Loop() {
				for began := time.Now(); time.Since(began) < 15*time.Second; {
					start := time.Now()
					guid, _ := f.create(size(32))
					f.as("nobody", guid, "true").end()
					longest = max(longest, time.Since(start))
					f.delete(guid)
				}
			}
			b.ReportMetric(longest.Seconds(), "longest-s")
		})
	}
}

// BenchmarkBesideLittleWeight measures the longest wait of who depends on what the kernel
// does in containers of little weight, beside busy ones of the full weight.
func BenchmarkBesideLittleWeight(b *testing.B) {
	const light, lasts = 20, 30 * time.Second
	for _, bench := range []struct{ name, script string }{
		{"memory", few},
		{"creation", `exec perl -e '$end = time + 120; for (1 .. 20) { next if fork; while (time < $end) { if (my $p = fork) { waitpid $p, 0 } else { exec "/bin/true" if rand() < .5; exit } } exit } 1 while wait > 0'`},
		{"kill", `exec perl -e 'use IO::Handle; $end = time + 120; for (1 .. 20) { next if fork; while (time < $end) { $n++; open my $h, ">", "/tmp/f$$.$n" or next; print $h "x" x 20000; $h->flush; $h->sync if $n % 4 == 0; close $h; rename "/tmp/f$$.$n", "/tmp/g$$"; truncate "/tmp/g$$", 100; symlink "a" x 200, "/tmp/l$$"; unlink "/tmp/l$$" } exit } 1 while wait > 0'`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			f := newFixture(b)
			var all []string
			b.Cleanup(func() { // together, as a daemon does
				parallel.Each(len(all), len(all), func(i int) { f.delete(all[i]) })
			})
			neighbour, _ := f.create(size(32))
			all = append(all, neighbour)
			for range light {
				memory := int64(64)
				if bench.name == "memory" {
					memory = 16
				}
				guid, _ := f.create(size(memory), lightly)
				all = append(all, guid)
				f.as("nobody", guid, "sleep 7; "+bench.script)
			}
			for range 4 * runtime.NumCPU() {
				guid, _ := f.create()
				all = append(all, guid)
				f.as("nobody", guid, "sleep 8; "+busy)
			}
			time.Sleep(9 * time.Second) // until they are busy
			var longest time.Duration
			for b.Loop() {
				for i, began := 1, time.Now(); time.Since(began) < lasts; i++ {
					start := time.Now()
					switch bench.name {
					case "memory":
						f.as("nobody", neighbour, "exec "+hog).end()
					case "creation":
						guid, _ := f.create(size(32))
						longest = max(longest, time.Since(start))
						f.delete(guid)
						continue
					case "kill":
						if err := f.Signal(f.ctx, all[1+i%light], executor.Kill); err != nil {
							b.Fatal(err)
						}
					}
					longest = max(longest, time.Since(start))
				}
			}
			b.ReportMetric(longest.Seconds(), "longest-s")
		})
	}
}
