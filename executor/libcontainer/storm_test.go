//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
)

func TestAStormIsWhatLastsAndItsWorstEnd(t *testing.T) {
	twenty := func(n int64) []int64 { return slices.Repeat([]int64{n}, 20) }
	for _, test := range []struct {
		name        string
		before, now []int64
		ends        []int // by their places
	}{
		{"nothing runs", nil, nil, nil},
		{"a burst that has begun", []int64{0, 0}, []int64{0, 90}, nil},
		{"a burst that is over", []int64{0, 90}, []int64{0, 0}, nil},
		{"a few all the time", []int64{4, 10}, []int64{4, 10}, nil},
		{"one container", []int64{1, 80}, []int64{1, 80}, []int{1}},
		{"some have had little luck", []int64{3, 60, 25, 31}, []int64{3, 60, 25, 30}, []int{1, 3}},
		{"many at a time", twenty(5), twenty(5), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{"single ones in many containers", twenty(1), twenty(1), nil},
		{"a small burst while others have single ones", append(twenty(1), 0), append(twenty(1), 5), nil},
		{"a burst in a storm", []int64{80, 0}, []int64{80, 60}, []int{0}},
	} {
		var ends []int
		for i, end := range inStorm(test.before, test.now) {
			if end {
				ends = append(ends, i)
			}
		}
		if !slices.Equal(ends, test.ends) {
			t.Errorf("%s: it ends %v, want %v", test.name, ends, test.ends)
		}
	}
}

func TestBurstsAreAStormIfFewSecondsAreBetweenThem(t *testing.T) {
	for _, test := range []struct {
		name   string
		counts []int64
		storm  bool
	}{
		{"one burst", []int64{0, 80, 0, 0, 0, 0, 0, 0}, false},
		{"bursts that meet every other count", []int64{0, 40, 0, 40}, true},
		{"bursts that meet a count in four", []int64{0, 80, 0, 0, 0, 80}, true},
		{"one burst a minute", []int64{0, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100}, false},
	} {
		var before int64
		storm := false
		for _, now := range test.counts {
			storm = storm || inStorm([]int64{before}, []int64{now})[0]
			before = remembered(before, now)
		}
		if storm != test.storm {
			t.Errorf("%s: a storm: %v, want %v", test.name, storm, test.storm)
		}
	}
}

func TestWhatWaitsInAContainerThatIsDyingDoesNotCount(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(32))
	of := func(greedy time.Time) int64 {
		c := container{cgroup: f.containers[guid].cgroup, spec: f.containers[guid].spec, queued: 1, greedy: greedy}
		return c.queue(func(int) []byte { return []byte("mem_cgroup_out_of_memory.isra.0") })
	}
	for _, test := range []struct {
		name   string
		greedy time.Time
		want   int64
	}{{"never ended", time.Time{}, 1}, {"ended just now", time.Now(), 0}, {"ended long ago", time.Now().Add(-2 * dyingTime), 1}} {
		if got := of(test.greedy); got != test.want {
			t.Errorf("%s: %d threads wait, want %d", test.name, got, test.want)
		}
	}
}

func TestNothingIsCountedWhileTheHostWaitsForNoMemory(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(32))
	before, known := cgroup.HostStall()
	if _, err := os.Stat("/proc/pressure/memory"); !known && err == nil {
		t.Fatal("the kernel says how long memory was waited for, and it is not understood")
	}
	f.as("nobody", guid, "exec "+hog).end()
	c := &container{cgroup: f.containers[guid].cgroup, spec: f.containers[guid].spec, made: true}
	b := &Backend{containers: map[string]*container{guid: c}, stall: before}
	f.eventually("the kill is counted", func() bool {
		b.endStorms(sleepsIn)
		return c.oomKills > 0
	})
	if !known {
		t.Log("the kernel does not say how long memory was waited for, so all is counted at all times")
		return
	}
	f.eventually("the host waits for no memory, and nothing is counted", func() bool {
		c.oomKills, before = 0, b.stall
		b.endStorms(sleepsIn)
		return b.stall == before && c.oomKills == 0
	})
}

// storms forks without end, in processes of 4 MB, for a minute. Dozens of them wait.
const storms = `perl -e '$end = time + 60; $first = $$; while (time < $end) { $x = "x" x 4_000_000 if $$ != $first; fork; 1 while waitpid(-1, 1) > 0; select undef, undef, undef, .01 }'`

// queues takes memory and gives it back in 400 processes for a minute. Together they have
// too little, but most often there is room again when the kernel looks for one to kill.
// They begin once all are there. Their parent, which is killed last, replaces those that
// are killed, or the others would soon have enough.
var queues = fmt.Sprintf(`perl -e 'open Z, "/dev/zero"; $end = time + 60; pipe R, W; sub take { return if fork; close W; open S, ">/proc/self/oom_score_adj"; print S 500; close S; sysread R, $x, 1; while (time < $end) { $p = syscall %d, 0, 800_000, 3, 0x22, -1, 0; syscall %d, fileno Z, $p, 800_000; select undef, undef, undef, .02; syscall %d, $p, 800_000 } exit } take for 1 .. 400; close W; while (wait > 0) { take if time < $end }'`,
	unix.SYS_MMAP, unix.SYS_READ, unix.SYS_MUNMAP)

func TestAContainerThatKeepsTheKernelAtItsMemoryLimitIsEnded(t *testing.T) {
	for _, test := range []struct {
		name, script string
		times        int
		memory       int64
	}{
		{"by processes that fork without end, and again", storms, 2, 256},
		{"by processes that wait", queues, 1, 256},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			neighbour, _ := f.create(size(32))
			n := f.as("nobody", neighbour, hog+"; "+hog+"; trap 'echo still here; exit' TERM; echo ready; while :; do sleep .1; done")
			n.says("ready")
			guid, _ := f.create(size(test.memory), func(c *executor.ContainerSpec) { c.Resources.MaxPIDs = 500 })
			for range test.times {
				r := f.as("nobody", guid, test.script+"; exit 3")
				if end := r.end(); !end.OutOfMemory || end.Signal != int(unix.SIGKILL) {
					t.Errorf("it ended as %+v, and not for lack of memory as a whole", end)
				}
			}
			if err := n.Signal(executor.Terminate); err != nil {
				t.Errorf("its neighbour, which has lost two processes: %v", err)
			}
			n.says("still here")
		})
	}
}
