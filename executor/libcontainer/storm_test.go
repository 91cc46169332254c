//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

func TestAStormIsWhatLastsAndItsWorstEnd(t *testing.T) {
	const none = math.MaxInt64
	for _, test := range []struct {
		name   string
		counts [][]int64
		least  int64 // after the last count
	}{
		{"nothing runs", [][]int64{{}, {}}, none},
		{"a burst", [][]int64{{0, 90}, {0, 0}}, none},
		{"a burst, and another after a pause", [][]int64{{0, 90}, {0, 14}, {0, 90}}, none},
		{"a few all the time", [][]int64{{4, 10}, {4, 10}, {4, 10}}, none},
		{"one container", [][]int64{{1, 80}, {1, 80}}, 40},
		{"what goes on is judged each time", [][]int64{{0, 80}, {0, 80}, {0, 15}}, 8},
		{"those that have had little luck lose less than the worst", [][]int64{{3, 60, 25, 31}, {3, 60, 25, 30}}, 30},
		{"many at a time", [][]int64{{2, 2, 2, 2, 2, 2, 2, 2}, {2, 2, 2, 2, 2, 2, 2, 2}}, 2},
		{"single ones in many containers", [][]int64{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, 2},
	} {
		var s storm
		var least int64
		for _, kills := range test.counts {
			least = s.count(kills)
		}
		if least != test.least {
			t.Errorf("%s: %d killed processes end a container, want %d", test.name, least, test.least)
		}
	}
}

// storms forks without end, in processes of 4 MB, for a minute.
const storms = `perl -e '$end = time + 60; $first = $$; while (time < $end) { $x = "x" x 4_000_000 if $$ != $first; fork; 1 while waitpid(-1, 1) > 0; select undef, undef, undef, .01 }'`

// queues takes memory and gives it back in 400 processes for a minute. Together they have
// too little, but most often there is room again when the kernel looks for one to kill.
// They begin once all are there.
var queues = fmt.Sprintf(`perl -e 'open Z, "/dev/zero"; $end = time + 60; pipe R, W; for (1 .. 400) { next if fork; close W; sysread R, $x, 1; while (time < $end) { $p = syscall %d, 0, 800_000, 3, 0x22, -1, 0; syscall %d, fileno Z, $p, 800_000; select undef, undef, undef, .02; syscall %d, $p, 800_000 } exit }'; sleep 60`,
	unix.SYS_MMAP, unix.SYS_READ, unix.SYS_MUNMAP)

func TestAContainerThatKeepsTheKernelAtItsMemoryLimitIsEnded(t *testing.T) {
	for _, test := range []struct {
		name, script string
		memory       int64
	}{
		{"by processes that fork without end", storms, 64},
		{"by processes that wait", queues, 256},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			neighbour, _ := f.create(size(32))
			n := f.as("nobody", neighbour, hog+"; "+hog+"; trap 'echo still here; exit' TERM; echo ready; while :; do sleep .1; done")
			n.says("ready")
			guid, _ := f.create(size(test.memory), func(c *executor.ContainerSpec) { c.Resources.MaxPIDs = 500 })
			r := f.as("nobody", guid, test.script+"; exit 3")
			if end := r.end(); !end.OutOfMemory || end.Signal != int(unix.SIGKILL) {
				t.Errorf("it ended as %+v, and not for lack of memory as a whole", end)
			}
			if err := n.Signal(executor.Terminate); err != nil {
				t.Errorf("its neighbour, which has lost two processes: %v", err)
			}
			n.says("still here")
		})
	}
}
