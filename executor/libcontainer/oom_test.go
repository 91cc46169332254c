//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
	"github.com/diegosdk/diego/executor/manager"
)

// setOOMScoreAdjust changes how the kernel chooses this process, until the end
// of the test. It reports whether the kernel allows it.
func setOOMScoreAdjust(t *testing.T, n int) bool {
	t.Helper()
	before, err := os.ReadFile(oomScoreAdjustFile)
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(oomScoreAdjustFile, []byte(strconv.Itoa(n)), 0)
	if errors.Is(err, unix.EACCES) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(oomScoreAdjustFile, before, 0); err != nil {
			t.Error(err)
		}
	})
	return true
}

func TestTheAdjustmentOfContainersIsNeverBelowZero(t *testing.T) {
	for own, want := range map[string]int{"-1000\n": 0, "-1\n": 0, "0\n": 0, "300\n": 300, "": 0, "x": 0} {
		if got := oomScoreAdjust(own); got != want {
			t.Errorf("with a daemon's %q it is %d, want %d", own, got, want)
		}
	}
}

func TestAContainerIsNotSparedAsItsDaemonIs(t *testing.T) {
	for _, test := range []struct {
		name       string
		own, after int
		want       string
	}{
		{"as it is by default", 0, 0, "0 0"},
		{"a daemon to be spared", -500, -500, "0 0"},
		{"a daemon never to be ended", -1000, -1000, "0 0"},
		{"a daemon to be ended early", 300, 300, "300 300"},
		{"what the daemon has is not inherited", 0, 300, "0 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !setOOMScoreAdjust(t, test.own) {
				// Without CAP_SYS_RESOURCE no daemon here can be spared.
				t.Logf("this kernel lets us not have %d", test.own)
				return
			}
			f := newFixture(t)
			setOOMScoreAdjust(t, test.after)
			guid, _ := f.create()
			r := f.as("nobody", guid, "echo $(cat /proc/1/oom_score_adj /proc/self/oom_score_adj)")
			r.end()
			if got := strings.TrimSpace(r.stdout.String()); got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
}

const hog = `perl -e '$x .= "x" x 1_000_000 while 1'`

// The kernel ends the largest process. What becomes of the container then is up
// to its main process, unless the kernel finds that the memory is not free soon
// enough and ends that one too: then it is tried again.
func TestHoweverAContainerRunsOutOfMemoryItIsSaid(t *testing.T) {
	c := newCell(t)
	const ownEnd, after = "/bin/sh: killed: the container ran out of memory", ", after another process was killed: the container ran out of memory"
	for i, test := range []struct {
		name   string
		work   manager.Work
		reason string // of a failure, or else it succeeds
		says   string
	}{
		{"the main process itself", script("nobody", "exec "+hog), ownEnd, ""},
		{"its child, for which it fails", script("nobody", hog+"; echo $?; exit 3"), "/bin/sh: exit status 3" + after, "137\n"},
		{"its child, whose end it passes on", script("nobody", hog+"; exit $?"), "/bin/sh: exit status 137" + after, ""},
		{"its child, which it can do without", script("nobody", hog+"; echo $?; exit 0"), "", "137\n"},
		{"shared memory", script("nobody", "exec dd if=/dev/zero of=/dev/shm/f bs=1M"), ownEnd, ""},
		{"shared memory that its child has filled, and that stays",
			script("nobody", "dd if=/dev/zero of=/dev/shm/f bs=1M; [ $(stat -c %s /dev/shm/f) -gt 20000000 ] && exit 4"),
			"/bin/sh: exit status 4" + after, ""},
		{"many small processes", script("nobody", `perl -e '$n = 3_000_000; for (1..60) { next if fork; $x = "x" x $n; sleep 1000 } wait'; exit 5`),
			"/bin/sh: exit status 5" + after, ""},
		{"its monitor", edited(script("nobody", "trap 'echo asked to end; exit 0' TERM; while :; do sleep 1000 & wait; done"), func(w *manager.Work) { // which asks for no memory meanwhile
			w.Monitor, w.StartTimeoutMs = &executor.Action{Run: &executor.RunAction{Path: "/bin/sh", Args: []string{"-c", "exec " + hog}, User: "nobody"}}, 10_000 // an emulated processor takes seconds to use the memory up
			w.Grace = patience
		}), "instance was never healthy within 10s: " + ownEnd, "asked to end\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := executor.Succeeded()
			if test.reason != "" {
				want = executor.Failed(test.reason)
			}
			for attempt := range 5 {
				guid := fmt.Sprintf("hog-%d-%d", i, attempt)
				c.launch(guid, executor.Resources{MemoryMB: 32, MaxPIDs: 128}, test.work)
				r, says := c.result(guid), c.log(guid, manager.Stdout)
				c.remove(guid)
				if r == want && says == test.says {
					return
				}
				if r != executor.Failed(ownEnd) || r == want {
					t.Fatalf("the result is %+v and it said %q, want %+v and %q", r, says, want, test.says)
				}
				t.Logf("attempt %d: the kernel has ended the main process too", attempt)
			}
			t.Error("the main process was always ended too")
		})
	}
}

func TestWhoWasNotKilledForWantOfMemoryIsNotSaidToBe(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(32))
	f.as("nobody", guid, "mkfifo /tmp/go").end()
	waits := f.as("nobody", guid, "read x < /tmp/go; kill -9 $$") // it asks for no memory meanwhile
	probe := f.as("nobody", guid, "exec "+hog)
	if e := probe.end(); e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
		t.Errorf("the probe ended with %v", e)
	}
	f.as("nobody", guid, ": > /tmp/go").end()
	if e := waits.end(); e != (executor.Exit{Signal: 9}) {
		t.Errorf("who killed itself ended with %v", e)
	}
	if e := f.as("nobody", guid, "exit 1").end(); e != (executor.Exit{Status: 1}) {
		t.Errorf("who came later ended with %v", e)
	}
}

// When nothing is left for anybody the kernel may end the first process as
// well. The reason says which it was, and other containers go on.
func TestWhatEndsInAContainerWithoutMemoryEndsForThatReason(t *testing.T) {
	f := newFixture(t)
	other, _ := f.create()
	for round := range 5 {
		guid, _ := f.create(size(8))
		filler := f.as("nobody", guid, "while :; do dd if=/dev/zero bs=4k of=/dev/shm/f oflag=append conv=notrunc 2>&-; done")
		if e := filler.end(); e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
			t.Errorf("what filled it ended with %v", e)
		}
		for range 20 {
			r, err := f.try("nobody", guid, "exit 0")
			if errors.Is(err, executor.ErrNoContainer) && strings.Contains(err.Error(), "ran out of memory") {
				t.Logf("round %d: the first process was ended too", round)
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e := r.end(); !e.Success() && e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
				t.Errorf("in a full container a process ended with %v", e)
			}
		}
		f.delete(guid)
	}
	if e := f.as("nobody", other, "exit 0").end(); !e.Success() {
		t.Errorf("in another container a process ended with %v", e)
	}
}

func TestADeletedContainerHasNotRunOutOfMemoryForThat(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(size(32))
	r := f.as("nobody", guid, hog+"; echo lives; exec sleep 1000")
	r.says("lives")
	f.delete(guid)
	if e := r.end(); e != (executor.Exit{Signal: 9}) {
		t.Errorf("it ended with %v", e)
	}
}

func TestALimitOfAFewMiBHolds(t *testing.T) {
	f := newFixture(t)
	for _, mb := range []int64{1, 2, 3} {
		guid, _ := f.create(size(mb))
		if got := f.cgroupFile(guid, "memory/memory.limit_in_bytes", "memory.max"); got != fmt.Sprintln(mb<<20) {
			t.Errorf("%d MiB: the limit is %s", mb, got)
		}
		if e := f.as("nobody", guid, "exit 0").end(); !e.Success() {
			t.Errorf("%d MiB: a small process ended with %v", mb, e)
		}
		if e := f.as("nobody", guid, "exec "+hog).end(); e != (executor.Exit{Signal: 9, OutOfMemory: true}) {
			t.Errorf("%d MiB: a large process ended with %v", mb, e)
		}
		f.delete(guid)
	}
}

func TestALimitThatIsTooLowToMakeTheContainerIsNamed(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct {
		name   string
		memory int64 // while it is made
		fill   bool  // so that more is in use than it may have in the end
	}{
		{"for libcontainer's own process", 1 << 20, false},
		{"for what is there when that has ended", cgroup.StartMemory, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := cgroup.StartMemory
			cgroup.StartMemory = test.memory
			defer func() { cgroup.StartMemory, stage.Reached = before, func() {} }()
			spec := f.spec(size(1))
			if test.fill {
				g, err := f.cgroups.Child(spec.GUID)
				if err != nil {
					t.Fatal(err)
				}
				stage.Reached = func() {
					if g.PIDs() < 1 { // libcontainer has not started anything
						return
					}
					stop := fill(t, g)
					stage.Reached = func() { // once the first process runs
						stage.Reached = stop // and in the removal
					}
				}
			}
			_, err := f.Create(f.ctx, spec)
			var typed *executor.BackendError
			if !errors.Is(err, executor.ErrUnsupported) || !errors.As(err, &typed) || typed.GUID != spec.GUID ||
				!strings.Contains(err.Error(), "a memory limit of 1 MiB") || !strings.Contains(err.Error(), "ask for more") {
				t.Errorf("the error is %v", err)
			}
			if got := traces(t, f.Backend); len(got) != 1 { // the table
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

// fill has a process of the host use some MiB in a cgroup, until stop is called.
// The kernel does not choose it for want of memory.
func fill(t *testing.T, g *cgroup.Cgroup) (stop func()) {
	t.Helper()
	dirs := g.Dirs()
	procs := filepath.Join(cmp.Or(dirs["memory"], dirs[""]), "cgroup.procs")
	cmd := exec.Command("/bin/sh", "-c", "echo -1000 > /proc/self/oom_score_adj; echo $$ > "+procs+`; exec perl -e '$| = 1; $n = 8_000_000; $x = "x" x $n; print "filled\n"; sleep 1000'`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "filled\n" {
		t.Errorf("it said %q, %v", line, err)
	}
	return func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
}
