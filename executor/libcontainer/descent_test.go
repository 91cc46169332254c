//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

// Each script starts a child that prints "left" and runs for ever.
var leavers = []struct{ name, script string }{
	{"a child of its group", "sh -c 'echo left; exec sleep 1000' & wait"},
	{"a child that ignores TERM", `sh -c 'trap "" TERM; echo left; while :; do sleep 1; done' & wait`},
	{"a session of its own", "setsid sh -c 'echo left; exec sleep 1000' & wait"},
	{"an orphan", "(sh -c 'echo left; exec sleep 1000' &); exec sleep 1000"},
	{"an orphan in a session", "(setsid sh -c 'echo left; exec sleep 1000' &); exec sleep 1000"},
	{"an orphan without environment", "(env -i setsid sh -c 'echo left; exec sleep 1000' &); exec sleep 1000"},
	{"an orphan that tries to shed the mark", "(setsid sh -c 'prlimit --pid $$ --locks=0:0; echo left; exec sleep 1000' &); exec sleep 1000"},
	{"a family", "setsid sh -c 'for i in 1 2 3; do setsid sleep 1000 & done; echo left; wait' & wait"},
	{"one that forks and ends, always", `perl -MPOSIX -e '$| = 1; print "left\n"; while (1) { exit if fork; setsid }' & exec sleep 1000`},
}

func TestKILLReachesAllThatDescendsFromAProcess(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	other := f.as("nobody", guid, "(setsid sleep 1000 &); echo ready; exec sleep 1000")
	other.says("ready")
	const others = 2
	for _, l := range leavers {
		for _, over := range []bool{false, true} {
			t.Run(fmt.Sprint(l.name, ", the process over: ", over), func(t *testing.T) {
				r := f.as("nobody", guid, l.script)
				r.says("left")
				if over { // as after TERM; nobody signals what it leaves
					if err := f.containers[guid].signal(r.Process.(*process).pid, executor.Kill); err != nil {
						t.Fatal(err)
					}
					r.end()
				}
				if err := r.Signal(executor.Kill); err != nil {
					t.Fatal(err)
				}
				if !over {
					r.end()
				}
				f.eventually("only the others are left", func() bool {
					m, err := f.Usage(f.ctx, guid)
					if err == nil && m.PIDs < others {
						t.Fatalf("%d are left of %d others", m.PIDs, others)
					}
					return err == nil && m.PIDs == others
				})
			})
		}
	}
	if err := other.Signal(executor.Terminate); err != nil {
		t.Error(err)
	}
	if e := other.end(); e != (executor.Exit{Signal: 15}) {
		t.Errorf("the other ended with %v", e)
	}
	if err := other.Signal(executor.Terminate); err != nil {
		t.Error(err)
	}
	if n := f.containers[guid].cgroup.PIDs(); n != 1+1 {
		t.Errorf("TERM left %d processes, want the first one and a session", n)
	}
}

// The processes of a step do not outlive its timeout, and a step that ends by
// itself may leave a daemon.
func TestWhatAStepHasStartedDoesNotOutliveItsTimeout(t *testing.T) {
	c := newCell(t)
	run := func(text string) executor.Action { return script("nobody", text).Action }
	limited := func(text string) executor.Action {
		return executor.Action{Timeout: &executor.TimeoutAction{TimeoutMs: 100, Action: run(text)}}
	}
	try := func(a executor.Action) executor.Action { return executor.Action{Try: &executor.TryAction{Action: a}} }
	steps := []executor.Action{run("(setsid sleep 1000 &); echo daemon")}
	for _, l := range leavers {
		steps = append(steps, try(limited(l.script)))
	}
	steps = append(steps, run("echo over; exec sleep 1000"))
	c.launch("steps", modest, edited(script("nobody", ""), func(w *manager.Work) {
		w.Action = executor.Action{Serial: &executor.SerialAction{Actions: steps}}
	}))
	c.launch("monitor", modest, edited(script("nobody", "exec sleep 1000"), func(w *manager.Work) {
		a := limited("echo began; (setsid sleep 1000 &); setsid sleep 1000 & wait")
		w.Monitor = &a
	}))
	pids := func(guid string, most int64) bool {
		m, err := c.Usage(c.f.ctx, guid)
		return err == nil && m.PIDs <= most
	}
	c.f.eventually("the steps are over", func() bool { return strings.HasSuffix(c.log("steps", manager.Stdout), "over\n") })
	c.f.eventually("only the daemon and the last step are left", func() bool { return pids("steps", 2) })
	if m, err := c.Usage(c.f.ctx, "steps"); err != nil || m.PIDs != 2 {
		t.Errorf("%d processes are left, want 2: %v", m.PIDs, err)
	}
	const monitors, each = 6, 3
	c.f.eventually("monitors have timed out, and at most one goes on", func() bool {
		return strings.Count(c.log("monitor", manager.Health), "began") > monitors && pids("monitor", 1+each)
	})
	c.remove("steps", "monitor")
}

// A busy daemon learns late that a program runs, and its time may be over before.
func TestWhatAProgramHasBegunEndsWithAStartThatIsCalledOff(t *testing.T) {
	f := newFixture(t)
	for _, script := range []string{"setsid sleep 1000 & wait", "(setsid sleep 1000 &)"} {
		guid, _ := f.create()
		ended, end, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer ended.Close()
		held := make(chan struct{})
		release := sync.OnceFunc(func() { close(held) })
		defer release()
		if _, err := f.poller.WatchEnd(int(ended.Fd()), func() { <-held }); err != nil {
			t.Fatal(err)
		}
		end.Close() // from now on, it learns nothing
		ctx, cancel := context.WithCancelCause(f.ctx)
		over := errors.New("its time is over")
		started := make(chan error, 1)
		go func() {
			_, err := f.Start(ctx, guid, executor.ProcessSpec{Path: "/bin/sh", Args: []string{"-c", script}, User: "nobody"})
			started <- err
		}()
		f.eventually("the program has begun", func() bool {
			return slices.ContainsFunc(f.containers[guid].cgroup.Processes(), func(pid int) bool {
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				return string(name) == "sleep\n"
			})
		})
		cancel(over)
		if err := <-started; !errors.Is(err, over) {
			t.Errorf("%q has started: %v", script, err)
		}
		release()
		f.eventually("nothing is left", func() bool {
			m, err := f.Usage(f.ctx, guid)
			return err == nil && m.PIDs == 0
		})
	}
}

// A tenant decides by timeouts how often the daemon looks for what a step has left
// behind, and by processes that come and go how often each time.
func TestKILLAmongProcessesThatComeAndGoTakesLittleOfTheProcessor(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(s *executor.ContainerSpec) { s.Resources = executor.Resources{MemoryMB: 512, MaxPIDs: 400} })
	r := f.as("nobody", guid, "for i in $(seq 1 200); do sleep 1000 & done; for i in 1 2 3 4; do (while :; do (:); done) & done; echo ready; wait")
	r.says("ready")
	const callers = 200
	spent := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := spent()
	f.containers[guid].cgroup.KillDescent(1)
	most := max(time.Second, 30*(spent()-before)) // an emulated processor is slow
	before = spent()
	var calls sync.WaitGroup
	for n := range callers {
		calls.Go(func() { f.containers[guid].cgroup.KillDescent(uint32(1000 + n)) }) // which nobody has
	}
	calls.Wait()
	if took := spent() - before; took > most {
		t.Errorf("%d calls at once took %v of the processor, more than %v", callers, took, most)
	}
}

func TestAStartIsMarkedWithItsOwnNumber(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	seen := map[string]bool{}
	for range 3 {
		r := f.as("nobody", guid, `grep "Max file locks" /proc/self/limits`)
		r.end()
		if line := r.stdout.String(); seen[line] || strings.Contains(line, "unlimited") {
			t.Errorf("it has %q", line)
		} else {
			seen[line] = true
		}
	}
}
