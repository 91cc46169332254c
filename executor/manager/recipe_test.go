package manager_test

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

type recipeTest struct {
	name string
	work manager.Work
	want []string
}

// recipes are reserved, given their work and made at 0s; want is what a
// subscriber hears within 70s.
func recipes() []recipeTest {
	monitored := func(action, monitor executor.Action) manager.Work {
		return with(work(action), func(w *manager.Work) { w.Monitor = &monitor })
	}
	checked := func(action executor.Action, d executor.CheckDefinition) manager.Work {
		return with(work(action), func(w *manager.Work) { w.Check = &d; w.Ports = []uint16{8080} })
	}
	http8080 := executor.Check{HTTP: &executor.HTTPCheck{Port: 8080}}
	tcp8080 := executor.Check{TCP: &executor.TCPCheck{Port: 8080}}
	return []recipeTest{
		{"without a monitor it runs as soon as its action does, and a good end is success",
			work(do("wait 5s")), []string{"0s RUNNING", "5s COMPLETED well"}},
		{"a bad end is a failure with its status",
			work(do("wait 5s", "exit 3")), []string{"0s RUNNING", "5s COMPLETED failed: /do: exit status 3"}},
		{"a signal is named", work(do("wait 1s", "die 11")), []string{"0s RUNNING", "1s COMPLETED failed: /do: killed by signal 11"}},
		{"running out of memory is named", work(do("wait 1s", "oom")),
			[]string{"0s RUNNING", "1s COMPLETED failed: /do: killed: the container ran out of memory"}},
		{"a command that is not there never runs", work(executor.Action{Run: &executor.RunAction{Path: "/no/app", User: "app"}}),
			[]string{`0s COMPLETED failed: container "c": cannot execute the command: /no/app`}},

		{"the setup comes first", with(work(do("wait 5s")), func(w *manager.Work) { w.Setup = ptr(do("wait 3s")) }),
			[]string{"3s RUNNING", "8s COMPLETED well"}},
		{"a failed setup ends it", with(work(do("wait 5s")), func(w *manager.Work) { w.Setup = ptr(do("wait 3s", "exit 1")) }),
			[]string{"3s COMPLETED failed: setup failed: /do: exit status 1"}},

		{"a monitor is asked every 0.5 s until it is healthy and every 30 s afterwards",
			monitored(do("wait 1.2s", "write up yes", "wait 10s", "remove up", "wait forever"), do("need up")),
			[]string{"1.5s RUNNING", "31s COMPLETED failed: instance became unhealthy: /do: exit status 1"}},
		{"an action that fails under a monitor is a failure",
			monitored(do("wait 100ms", "write up yes", "wait 6900ms", "exit 2"), do("need up")),
			[]string{"500ms RUNNING", "7s COMPLETED failed: /do: exit status 2"}},
		{"an action that ends well under a monitor has left a daemon, which is monitored on",
			monitored(do("orphan", "wait 100ms", "write up yes", "wait 2s"), do("need up")), []string{"500ms RUNNING"}},
		{"a daemon whose monitor fails has failed, after its grace",
			monitored(do("orphan", "wait 100ms", "write up yes", "wait 40s", "remove up"), do("need up")),
			[]string{"500ms RUNNING", "1m0s COMPLETED failed: instance became unhealthy: /do: exit status 1"}},
		{"what is not healthy in time has failed",
			with(monitored(do("wait forever"), do("need up")), func(w *manager.Work) { w.StartTimeoutMs = 3000 }),
			[]string{"3s COMPLETED failed: instance was never healthy within 3s: /do: exit status 1"}},
		{"the start timeout is over once it is healthy",
			with(monitored(do("wait 100ms", "write up yes", "wait 9s"), do("need up")), func(w *manager.Work) { w.StartTimeoutMs = 3000 }),
			[]string{"500ms RUNNING"}},

		{"an HTTP check wants status 200",
			checked(do("serve 8080 503", "wait 1900ms", "serve 8080 200", "wait forever"), executor.CheckDefinition{Checks: []executor.Check{http8080}}),
			[]string{"2s RUNNING"}},
		{"a TCP check wants somebody who listens",
			checked(do("wait 1900ms", "listen 8080", "wait 3s", "close 8080", "wait forever"), executor.CheckDefinition{Checks: []executor.Check{tcp8080}}),
			[]string{"2s RUNNING", "32s COMPLETED failed: instance became unhealthy: TCP check of port 8080: container \"c\": port 8080: connection refused"}},
		{"all checks must succeed, and each has its own interval",
			checked(do("wait 100ms", "serve 8080 200", "listen 9090", "wait 12s", "close 9090", "wait forever"),
				executor.CheckDefinition{Checks: []executor.Check{http8080, {TCP: &executor.TCPCheck{Port: 9090, IntervalMs: 5000}}}}),
			[]string{"500ms RUNNING", "15.5s COMPLETED failed: instance became unhealthy: TCP check of port 9090: container \"c\": port 9090: connection refused"}},
		{"readiness comes and goes, and the container runs on",
			checked(do("wait 1900ms", "serve 8080 200", "wait 20s", "serve 8080 500", "wait 20s", "serve 8080 200", "wait forever"),
				executor.CheckDefinition{ReadinessChecks: []executor.Check{{HTTP: &executor.HTTPCheck{Port: 8080, IntervalMs: 10000}}}}),
			[]string{"0s RUNNING not ready", "2s RUNNING", "22s RUNNING not ready", "42s RUNNING"}},

		{"a sidecar ends with the action",
			with(work(do("wait 5s")), func(w *manager.Work) { w.Sidecars = []executor.Sidecar{{Action: do("wait forever")}} }),
			[]string{"0s RUNNING", "5s COMPLETED well"}},
		{"a sidecar that ends, ends the container",
			with(work(do("wait forever")), func(w *manager.Work) { w.Sidecars = []executor.Sidecar{{Action: do("wait 4s")}} }),
			[]string{"0s RUNNING", "4s COMPLETED failed: a sidecar has ended: exit status 0"}},
		{"what ignores TERM is killed after the grace",
			with(work(do("wait 5s")), func(w *manager.Work) {
				w.Grace = 7 * time.Second
				w.Sidecars = []executor.Sidecar{{Action: do("ignore TERM", "wait forever")}}
			}), []string{"0s RUNNING", "12s COMPLETED well"}},

		{"serial goes on after success", work(serial(do("wait 1s"), do("wait 2s"))), []string{"0s RUNNING", "3s COMPLETED well"}},
		{"serial stops at a failure", work(serial(do("wait 1s", "exit 1"), do("wait 2s"))),
			[]string{"0s RUNNING", "1s COMPLETED failed: /do: exit status 1"}},
		{"parallel waits for all, even if one fails", work(parallel(do("wait 1s", "exit 1"), do("wait 3s"), do("wait 2s", "exit 2"))),
			[]string{"0s RUNNING", "3s COMPLETED failed: /do: exit status 1\n/do: exit status 2"}},
		{"codependent ends with the first, which is a failure", work(codependent(do("wait 2s"), do("wait forever"))),
			[]string{"0s RUNNING", "2s COMPLETED failed: one of the codependent actions has ended"}},
		{"codependent says what failed first", work(codependent(do("wait 2s", "exit 4"), do("wait forever", "on TERM", "wait 1s", "exit 5"))),
			[]string{"0s RUNNING", "3s COMPLETED failed: /do: exit status 4"}},
		{"try swallows a failure", work(serial(try(do("wait 1s", "exit 1")), do("wait 1s"))), []string{"0s RUNNING", "2s COMPLETED well"}},
		{"timeout cancels, and fails when its action has ended", work(timeout(1500, do("wait forever", "on TERM", "wait 2s"))),
			[]string{"0s RUNNING", "3.5s COMPLETED failed: timed out after 1.5s"}},
		{"timeout does nothing in time", work(timeout(1500, do("wait 1s"))), []string{"0s RUNNING", "1s COMPLETED well"}},
		{"a try around a timeout goes on", work(serial(try(timeout(1000, do("wait forever"))), do("wait 1s"))),
			[]string{"0s RUNNING", "2s COMPLETED well"}},
		{"progress changes nothing", work(executor.Action{EmitProgress: &executor.EmitProgressAction{
			Action: do("wait 1s", "exit 1"), StartMessage: "a", FailureMessagePrefix: "b"}}),
			[]string{"0s RUNNING", "1s COMPLETED failed: /do: exit status 1"}},
	}
}

// observed counts what an observer hears.
type observed map[string]int

func (o observed) Created(_ time.Duration, err error) {
	o[fmt.Sprint("created, failed: ", err != nil)]++
}
func (o observed) CheckFailed(c manager.CheckConsequence) { o[string(c)]++ }

// consequences are what an observer hears of a container with that history.
func consequences(history []string) observed {
	o, ready := observed{"created, failed: false": 1}, false
	for _, line := range history {
		switch {
		case strings.Contains(line, "became unhealthy"):
			o[string(manager.BecameUnhealthy)]++
		case strings.Contains(line, "never healthy"):
			o[string(manager.NeverHealthy)]++
		case strings.Contains(line, "not ready") && ready:
			o[string(manager.NotReady)]++
		}
		ready = strings.HasSuffix(line, "RUNNING")
	}
	return o
}

func TestARecipeRunsAsItIsWritten(t *testing.T) {
	for _, test := range recipes() {
		t.Run(test.name, func(t *testing.T) {
			seen := observed{}
			c := newCell(t, func(o *manager.Options) { o.Observer = seen })
			c.launch("c", test.work)
			c.advance(70 * time.Second)
			c.mustTell(test.want...)
			if diff := cmp.Diff(consequences(test.want), seen); diff != "" {
				t.Errorf("the observer: %s", diff)
			}
			c.Delete("c")
			c.advance(time.Minute)
			c.mustBeClean()
		})
	}
}

func TestManyChecksBeginAtABoundedRate(t *testing.T) {
	const seconds = 10
	for name, test := range map[string]struct {
		action  executor.Action
		healthy bool
	}{
		"that succeed": {do("listen 8080", "wait forever"), true},
		"that fail":    {do("wait forever"), false},
	} {
		t.Run(name, func(t *testing.T) {
			probes := 0
			c := newCell(t, func(o *manager.Options) {
				o.Delay = func(j manager.Job) time.Duration {
					if j.Kind == manager.JobProbe {
						probes++
					}
					return 0
				}
			})
			check := executor.Check{TCP: &executor.TCPCheck{Port: 8080, IntervalMs: 1}}
			c.launch("c", with(work(test.action), func(w *manager.Work) {
				list := slices.Repeat([]executor.Check{check}, executor.MaxChecks)
				w.Ports, w.Check = []uint16{8080}, &executor.CheckDefinition{Checks: list, ReadinessChecks: list}
			}))
			c.advance(seconds * time.Second)
			if most := 2*executor.MaxChecks + 100 + 50*seconds; probes < 100 || probes > most { // the first of each, a burst, and the rate
				t.Errorf("%d probes in %d s, want at most %d", probes, seconds, most)
			}
			if got, _ := c.Get("c"); (got.State == executor.Running) != test.healthy {
				t.Errorf("it is %v", got.State)
			}
		})
	}
}

// counting counts the jobs of a kind.
func counting(kind manager.JobKind, n *int) func(*manager.Options) {
	return func(o *manager.Options) {
		o.Capacity = manager.Capacity{MemoryMB: 100_000, DiskMB: 100_000, Containers: 100}
		o.Delay = func(j manager.Job) time.Duration {
			if j.Kind == kind {
				*n++
			}
			return 0
		}
	}
}

func TestTheProbesOfAllContainersTogetherComeAtABoundedRateAndOthersAreNotHeldUp(t *testing.T) {
	const containers, seconds = 60, 10
	probes := 0
	c := newCell(t, counting(manager.JobProbe, &probes))
	check := executor.Check{TCP: &executor.TCPCheck{Port: 8080, IntervalMs: 1}}
	for i := range containers {
		c.launch(fmt.Sprint("c", i), with(work(do("listen 8080", "wait forever")), func(w *manager.Work) {
			w.Ports, w.Check = []uint16{8080}, &executor.CheckDefinition{Checks: slices.Repeat([]executor.Check{check}, executor.MaxChecks)}
		}))
	}
	c.advance(5 * time.Second)
	c.launch("other", with(work(do("wait 2900ms", "listen 8080", "wait forever")), func(w *manager.Work) {
		w.Ports, w.Check = []uint16{8080}, &executor.CheckDefinition{Checks: []executor.Check{check}}
	}))
	probes = 0
	c.advance(seconds * time.Second)
	c.mustTell("8s RUNNING")
	if most := 1000*seconds + 200; probes < most/2 || probes > most { // the rate, and what the other begins with
		t.Errorf("%d probes in %d s, want at most %d", probes, seconds, most)
	}
}

func TestAMonitorOfManyProcessesComesAsSeldomAsMany(t *testing.T) {
	const seconds = 60
	starts := 0
	c := newCell(t, counting(manager.JobStart, &starts))
	c.launch("c", with(work(do("wait forever")), func(w *manager.Work) {
		w.Monitor = ptr(parallel(slices.Repeat([]executor.Action{do("exit 1")}, executor.MaxChecks-1)...))
	}))
	c.advance(seconds * time.Second)
	if most := 1 + 3*(executor.MaxChecks-1) + 5*seconds; starts < most/2 || starts > most { // the action, the first monitor, a burst, and the rate
		t.Errorf("%d processes in %d s, want at most %d", starts, seconds, most)
	}
}

func TestAMonitorThatSaysMuchComesMoreSeldom(t *testing.T) {
	const seconds = 60
	for size, most := range map[int]int{0: 2 + 2*seconds, 100 << 10: 3 + seconds*50/110} { // with the action: twice a second; the first two, and the rate
		starts := 0
		c := newCell(t, counting(manager.JobStart, &starts))
		c.launch("c", with(work(do("wait forever")), func(w *manager.Work) {
			w.Monitor = &executor.Action{EmitProgress: &executor.EmitProgressAction{Action: do("exit 1"), FailureMessagePrefix: strings.Repeat("x", size)}}
		}))
		c.advance(seconds * time.Second)
		if starts < most/2 || starts > most {
			t.Errorf("with a message of %d bytes, %d processes in %d s, want at most %d", size, starts, seconds, most)
		}
	}
}

// A definition of a few hundred kilobytes has a thousand processes with ten thousand
// variables each.
func TestProcessesThatWaitForTheirStartHoldNoEnvironment(t *testing.T) {
	var before, after runtime.MemStats
	c := newCell(t)
	c.delays[manager.JobStart] = time.Hour
	runtime.GC()
	runtime.ReadMemStats(&before)
	c.launch("c", with(work(parallel(slices.Repeat([]executor.Action{do("wait forever")}, executor.MaxActionNodes-1)...)), func(w *manager.Work) {
		w.Env = slices.Repeat([]executor.EnvVar{{Name: "A", Value: "b"}}, executor.MaxListLength)
	}))
	c.advance(time.Second)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > 16<<20 {
		t.Errorf("they take %d MiB", took>>20)
	}
	runtime.KeepAlive(c)
}

func TestReadinessThatComesAndGoesIsReportedEverMoreSeldom(t *testing.T) {
	var flapping []string
	for range 165 {
		flapping = append(flapping, "serve 8080 200", "wait 300ms", "serve 8080 500", "wait 300ms")
	}
	c := newCell(t)
	c.launch("c", with(work(do(slices.Concat(flapping, []string{"serve 8080 200", "wait 3m", "serve 8080 500", "wait 10s", "serve 8080 200", "wait forever"})...)), func(w *manager.Work) {
		w.Ports, w.Check = []uint16{8080}, &executor.CheckDefinition{ReadinessChecks: []executor.Check{{HTTP: &executor.HTTPCheck{Port: 8080, IntervalMs: 1}}}}
	}))
	c.advance(100 * time.Second)
	if changes := len(c.history); changes < 10 || changes > 20 {
		t.Errorf("it changes %d times in 100 s", changes)
	}
	c.told()
	c.advance(10 * time.Minute)
	c.mustTell("2m5.1s RUNNING", "4m39s RUNNING not ready", "4m49s RUNNING")
}

func TestAProbeThatFailsSaysLittle(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Dir = t.TempDir() })
	c.launch("c", with(work(do("wait forever")), func(w *manager.Work) {
		check := executor.Check{HTTP: &executor.HTTPCheck{Port: 8080, Path: "/" + strings.Repeat("x", executor.MaxCheckPathBytes-1)}}
		w.Ports, w.Check = []uint16{8080}, &executor.CheckDefinition{Checks: []executor.Check{check}}
	}))
	c.advance(3 * time.Second)
	log, err := c.Log(t.Context(), "c", manager.Health, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil || len(text) == 0 || len(text) > 10*(executor.MaxReasonBytes+1) {
		t.Errorf("it says %d bytes, %v", len(text), err)
	}
}

// The stop comes at 3s, at any stage of the container.
func TestAStopEndsEveryStage(t *testing.T) {
	slow := func(kind manager.JobKind) func(*cell) {
		return func(c *cell) { c.delays[kind] = 5 * time.Second }
	}
	nothing := func(*cell) {}
	polite := do("wait forever", "on TERM", "wait 2s")
	stubborn := do("ignore TERM", "wait forever")
	tests := []struct {
		name    string
		prepare func(*cell)
		work    manager.Work
		want    []string
	}{
		{"while it is made", slow(manager.JobCreate), work(do("wait forever")), []string{"3s COMPLETED stopped"}},
		{"while what it needs is fetched", slow(manager.JobFetch), with(work(do("wait forever")), func(w *manager.Work) {
			w.CachedDependencies = []executor.CachedDependency{{From: "http://example.com/a", To: "/a"}}
		}), []string{"3s COMPLETED stopped"}},
		{"while its setup starts", slow(manager.JobStart), work(do("wait forever")), []string{"3s COMPLETED stopped"}},
		{"during its setup", nothing, with(work(polite), func(w *manager.Work) { w.Setup = &polite }), []string{"5s COMPLETED stopped"}},
		{"before it is healthy", nothing, with(work(polite), func(w *manager.Work) { w.Monitor = ptr(do("exit 1")) }), []string{"5s COMPLETED stopped"}},
		{"while its monitor runs", nothing, with(work(polite), func(w *manager.Work) { w.Monitor = ptr(stubborn) }), []string{"13s COMPLETED stopped"}},
		{"while it runs", nothing, work(polite), []string{"0s RUNNING", "5s COMPLETED stopped"}},
		{"though it ignores TERM", nothing, work(stubborn), []string{"0s RUNNING", "13s COMPLETED stopped"}},
		{"with a grace of its own", nothing, with(work(stubborn), func(w *manager.Work) { w.Grace = time.Second }),
			[]string{"0s RUNNING", "4s COMPLETED stopped"}},
		{"between two actions", nothing, work(serial(do("wait 3s"), stubborn)), []string{"0s RUNNING", "13s COMPLETED stopped"}},
		{"deep in a recipe", nothing, work(timeout(60_000, try(executor.Action{EmitProgress: &executor.EmitProgressAction{
			StartMessage: "begin", Action: codependent(serial(do("wait 1s"), parallel(polite, stubborn)), polite)}}))),
			[]string{"0s RUNNING", "13s COMPLETED stopped"}},
		{"of a daemon", nothing, with(work(do("orphan")), func(w *manager.Work) { w.Monitor = ptr(do("exit 0")) }),
			[]string{"0s RUNNING", "3s COMPLETED stopped"}},
		{"though its failure has come first", nothing, with(work(do("wait 2s", "exit 1")), func(w *manager.Work) {
			w.Sidecars = []executor.Sidecar{{Action: stubborn}}
		}), []string{"0s RUNNING", "12s COMPLETED failed: /do: exit status 1"}},
		{"after it has completed", nothing, work(do("wait 1s")), []string{"0s RUNNING", "1s COMPLETED well"}},
	}
	for _, test := range tests {
		for _, way := range []string{"stopped", "stopped twice", "deleted", "stopped and deleted", "deleted while it is being stopped"} {
			t.Run(test.name+", "+way, func(t *testing.T) {
				c := newCell(t)
				test.prepare(c)
				c.launch("c", test.work)
				c.advance(3 * time.Second)
				if way != "deleted" {
					c.stop("c")
				}
				switch way {
				case "stopped twice":
					c.advance(100 * time.Millisecond)
					c.stop("c")
				case "deleted while it is being stopped":
					c.advance(100 * time.Millisecond)
					c.Delete("c")
					c.Delete("c")
				case "deleted", "stopped and deleted":
					c.Delete("c")
				}
				c.advance(time.Minute)
				c.mustTell(test.want...)
				if way == "stopped" || way == "stopped twice" {
					if got, ok := c.Get("c"); !ok || got.State != executor.Completed {
						t.Errorf("the container is %v, want it to be kept", got.State)
					}
					c.Delete("c")
					c.advance(time.Minute)
				}
				c.mustBeClean()
			})
		}
	}
}

// The timeout is over after 1s. KILL comes 10s later, waits 5s for its turn and
// ends the process; KILL for what that has left behind waits 5s; the next step takes
// 1s, and KILL for what is left of the container 5s.
func TestAStepIsNotOverBeforeItsProcessHadKILL(t *testing.T) {
	c := newCell(t)
	c.delays[manager.JobSignal] = 5 * time.Second
	c.launch("c", work(serial(try(timeout(1000, do("ignore TERM", "wait forever"))), do("wait 1s"))))
	c.advance(time.Minute)
	c.mustTell("0s RUNNING", "27s COMPLETED well")
	c.Delete("c")
	c.advance(time.Minute)
	c.mustBeClean()
}
