package manager_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
)

func reservation(guid string, memoryMB, diskMB, pids int64) manager.Reservation {
	return manager.Reservation{GUID: guid, Resources: executor.Resources{MemoryMB: memoryMB, DiskMB: diskMB, MaxPIDs: pids}}
}

func reasons(refused []manager.Refusal) map[string]string {
	m := map[string]string{}
	for _, r := range refused {
		m[r.GUID] = r.Err.Error()
	}
	return m
}

func TestReserveTakesWhatFitsAndSaysWhyTheRestDoesNot(t *testing.T) {
	c := newCell(t)
	list := []manager.Reservation{
		reservation("a", 600, 100, 10), reservation("b", 600, 100, 10), reservation("a", 1, 1, 1), reservation("c", 400, 2500, 6000),
		reservation("d", 400, 1900, 10), reservation("no guid", 1, 1, 1), reservation("e", -1, 0, 0),
	}
	want := map[string]string{
		"b":       `insufficient resources for container "b": 200 MiB of memory more would have to be free`,
		"a":       `container "a": the guid is in use`,
		"c":       `insufficient resources for container "c": 600 MiB of disk, 1010 processes more would have to be free`,
		"no guid": "invalid input: guid: no guid: want 1 to 255 letters, digits, - and _",
		"e":       "invalid input: resources.memory_mb: -1: want at least 0",
	}
	if diff := cmp.Diff(want, reasons(c.Reserve(list...))); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if got, want := c.Remaining(), (manager.Capacity{MemoryMB: 0, DiskMB: 0, Containers: 8, PIDs: 4980}); !got.Equal(want) {
		t.Errorf("%+v remains, want %+v", got, want)
	}
}

func TestFurtherResourcesAreReservedAndGivenBack(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Capacity.Extra = executor.Amounts{"gpu": 2} })
	take := func(guid string, extra executor.Amounts) manager.Reservation {
		return manager.Reservation{GUID: guid, Resources: executor.Resources{MemoryMB: 1, Extra: extra}}
	}
	got := reasons(c.Reserve(
		take("a", executor.Amounts{"gpu": 1}), take("b", executor.Amounts{"gpu": 2}),
		take("c", executor.Amounts{"fpga": 1}), take("d", executor.Amounts{"gpu": -1}), take("e", executor.Amounts{"gpu": 1}),
	))
	want := map[string]string{
		"b": `insufficient resources for container "b": 1 gpu more would have to be free`,
		"c": `insufficient resources for container "c": 1 fpga more would have to be free`,
		"d": "invalid input: resources.extra_resources.gpu: -1: want at least 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if left := c.Remaining().Extra["gpu"]; left != 0 {
		t.Errorf("%d GPUs remain", left)
	}
	c.Delete("a")
	c.Tick(context.Background())
	if left := c.Remaining().Extra["gpu"]; left != 1 {
		t.Errorf("%d GPUs remain after one was given back", left)
	}
}

func TestAManagerRefusesFurtherResourcesThatCannotBe(t *testing.T) {
	_, err := manager.New(context.Background(), manager.Options{
		Backend: scripted.New(scripted.Options{}), Dir: t.TempDir(), Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1, Extra: executor.Amounts{"gpu": -1}},
	})
	if err == nil || err.Error() != "manager: invalid input: Options.Capacity.Extra.gpu: -1: want at least 0" {
		t.Errorf("got %v", err)
	}
}

func TestProcessesAreNotCountedWithoutATotal(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Capacity.PIDs = 0 })
	if refused := c.Reserve(reservation("a", 1, 1, 1<<20)); refused != nil {
		t.Error(refused[0].Err)
	}
	if got := c.Remaining().PIDs; got != 0 {
		t.Errorf("%d processes remain", got)
	}
}

func TestAContainerThatAsksForNoLimitOfProcessesCountsWithTheDefault(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.DefaultMaxPIDs = 100 })
	c.Reserve(reservation("a", 1, 1, 0))
	if got := c.Remaining().PIDs; got != 4900 {
		t.Errorf("%d processes remain, want 4900", got)
	}
}

func TestAReservationThatNobodyUsesExpiresAndIsNoCrash(t *testing.T) {
	c := newCell(t)
	c.reserve("c")
	c.advance(2 * time.Minute)
	c.mustTell("0s RESERVED", "1m0s COMPLETED expired")
	got, _ := c.Get("c")
	if r := got.RunResult; !r.Expired || !r.Retryable || !r.Failed {
		t.Errorf("the result is %+v", r)
	}
	if err := c.Initialize("c", work(do())); !errors.Is(err, executor.ErrTransition) {
		t.Errorf("work for an expired reservation: %v", err)
	}
	c.Delete("c")
	c.advance(0)
	c.mustBeClean()
}

func TestWhatCannotBeDoneIsATypedErrorAndChangesNothing(t *testing.T) {
	c := newCell(t)
	c.reserve("reserved")
	c.launch("running", work(do("wait forever")))
	c.advance(time.Second)
	before := c.List()
	invalid := work(executor.Action{})
	for _, test := range []struct {
		name string
		got  error
		want error
	}{
		{"work for nobody", c.Initialize("nobody", work(do())), manager.ErrNotFound},
		{"stop of nobody", c.Stop("nobody"), manager.ErrNotFound},
		{"work twice", c.Initialize("running", work(do())), executor.ErrTransition},
		{"stop of a reservation", c.Stop("reserved"), executor.ErrTransition},
		{"invalid work", c.Initialize("reserved", invalid), executor.ErrInvalid},
	} {
		if !errors.Is(test.got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
	c.Delete("nobody")
	if diff := cmp.Diff(before, c.List()); diff != "" {
		t.Errorf("something has changed (-before +after):\n%s", diff)
	}
}

func TestAContainerThatCannotBeMadeNeverBegan(t *testing.T) {
	c := newCell(t)
	c.faults[scripted.Create] = &executor.BackendError{Kind: executor.ErrNoRootFS, GUID: "c", Detail: "host:"}
	c.launch("c", work(do()))
	c.advance(time.Second)
	c.mustTell(`0s COMPLETED never began: failed to create the container: container "c": no such root file system: host:`)
	for _, w := range []manager.Work{
		with(work(do()), func(w *manager.Work) {
			w.CachedDependencies = []executor.CachedDependency{{Name: "tools", From: "https://example.com/a.tgz", To: "/a"}}
		}),
		with(work(do()), func(w *manager.Work) {
			w.VolumeMounts = []executor.VolumeMount{{Driver: "nfs", ContainerDir: "/data", Mode: "r", Shared: &executor.SharedDevice{VolumeID: "v"}}}
		}),
	} {
		c.Delete("c")
		c.advance(0)
		c.launch("c", w)
		c.advance(0)
		if got, _ := c.Get("c"); !got.RunResult.Retryable {
			t.Errorf("the result is %+v", got.RunResult)
		}
	}
}

func TestADeletionThatFailsIsTriedAgainAndKeepsItsResources(t *testing.T) {
	c := newCell(t)
	c.launch("c", work(do()))
	c.advance(time.Second)
	c.faults[scripted.Delete] = errors.New("device busy")
	c.Delete("c")
	c.advance(10 * time.Second)
	d := c.Deletions()
	if len(d) != 1 || d[0].GUID != "c" || d[0].Attempts != 4 || d[0].Err == nil {
		t.Errorf("the deletions are %+v, want 4 attempts after 0, 1, 3 and 7 seconds", d)
	}
	if got := c.Remaining().Containers; got != 9 {
		t.Errorf("%d containers remain, want 9", got)
	}
	delete(c.faults, scripted.Delete)
	c.advance(10 * time.Second)
	c.mustBeClean()
}

func TestStraysAreRemovedAndTheirGuidsWaitForIt(t *testing.T) {
	c := newCell(t)
	ctx := context.Background()
	for i := range 3 {
		if _, err := c.backend.Create(ctx, executor.ContainerSpec{GUID: fmt.Sprint("stray-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	c.launch("mine", work(do("wait forever")))
	c.delays[manager.JobDelete] = time.Second
	c.advance(60*time.Second + 500*time.Millisecond)
	if refused := c.Reserve(reservation("stray-1", 1, 1, 1)); len(refused) != 1 || !errors.Is(refused[0].Err, manager.ErrExists) {
		t.Errorf("a stray's guid is given out before it is removed: %v", refused)
	}
	c.advance(time.Second)
	if guids, _ := c.backend.List(ctx); !cmp.Equal(guids, []string{"mine"}) {
		t.Errorf("the host has %q", guids)
	}
}

func TestTheHostIsClearedOnceWhatAnEarlierDaemonLeftIsRemoved(t *testing.T) {
	for name, fault := range map[string]error{"it goes": nil, "it cannot be removed": errors.New("the mount is busy")} {
		t.Run(name, func(t *testing.T) {
			old := newCell(t)
			old.launch("left", work(do("wait forever")))
			old.advance(time.Second)
			backend := old.backend.Restart()
			old.faults[scripted.List] = errors.New("not now")
			old.faults[scripted.Delete] = fault
			c := newCell(t, func(o *manager.Options) {
				o.Backend, o.Delay = backend, func(j manager.Job) time.Duration {
					return map[manager.JobKind]time.Duration{manager.JobDelete: time.Second}[j.Kind]
				}
			})
			cleared := func() bool {
				select {
				case <-c.Cleared():
					return true
				default:
					return false
				}
			}
			if cleared() {
				t.Error("it is cleared, and could not be listed")
			}
			delete(old.faults, scripted.List)
			c.advance(manager.DefaultReapInterval + time.Second/2)
			if cleared() {
				t.Error("it is cleared while the removal goes on")
			}
			c.advance(time.Second)
			if !cleared() {
				t.Error("it is not cleared though the removal has ended")
			}
			c.advance(2 * manager.DefaultReapInterval)
		})
	}
}

func TestWhatAnEarlierDaemonLeftIsRemovedAtOnce(t *testing.T) {
	c := newCell(t)
	c.launch("old", work(do("wait forever")))
	c.advance(time.Second)
	next := newCell(t, func(o *manager.Options) { o.Backend = c.backend.Restart() })
	if guids, _ := next.backend.List(context.Background()); len(guids) != 0 {
		t.Errorf("the host has %q", guids)
	}
}

func TestAContainerThatDisappearsHasFailed(t *testing.T) {
	c := newCell(t)
	c.launch("c", with(work(do("wait forever")), func(w *manager.Work) {
		w.Monitor = ptr(executor.Action{Run: &executor.RunAction{Path: "/bin/true", User: "app"}})
		w.StartTimeoutMs = 0
	}))
	c.advance(time.Second)
	c.told()
	if err := c.backend.Delete(context.Background(), "c"); err != nil {
		t.Fatal(err)
	}
	c.advance(2 * time.Minute)
	got, _ := c.Get("c")
	if got.State != executor.Completed || !got.RunResult.Failed {
		t.Errorf("the container is %s", describe(got))
	}
	c.Delete("c")
	c.advance(0)
	c.mustBeClean()
}

func TestAHostThatCannotBeListedLosesNothing(t *testing.T) {
	c := newCell(t)
	c.launch("c", work(do("wait forever")))
	c.faults[scripted.List] = errors.New("no answer")
	c.advance(5 * time.Minute)
	c.mustTell("0s RUNNING")
}

func TestASlowSubscriberMissesStatesAndNeverTheLastOne(t *testing.T) {
	c := newCell(t)
	slow := c.Subscribe()
	c.launch("a", work(do("wait 1s")))
	c.launch("b", work(do("wait 2s", "exit 1")))
	c.advance(10 * time.Second)
	c.Delete("a")
	c.Delete("b")
	c.advance(time.Second)
	c.mustBeClean()
	var got []string
	for {
		e, ok, err := slow.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		got = append(got, e.Container.GUID+" "+describe(e.Container))
	}
	if diff := cmp.Diff([]string{"a COMPLETED well", "b COMPLETED failed: /do: exit status 1"}, got); diff != "" {
		t.Errorf("it heard (-want +got):\n%s", diff)
	}
	slow.Close()
	if _, err := slow.Next(context.Background()); !errors.Is(err, manager.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	waiting := c.Subscribe()
	if _, err := waiting.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestASubscriberThatNeverListensIsToldThatItIsBehind(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Capacity.Containers = manager.MaxPending + 10 })
	deaf := c.Subscribe()
	for i := range manager.MaxPending + 1 {
		if refused := c.Reserve(reservation(fmt.Sprint("c", i), 0, 0, 0)); i < 4 && refused != nil {
			t.Fatal(refused[0].Err)
		}
		c.Delete(fmt.Sprint("c", i))
	}
	if _, _, err := deaf.Poll(); !errors.Is(err, manager.ErrBehind) {
		t.Errorf("the error is %v", err)
	}
}

func TestPoolsBoundWhatHappensAtOnce(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.CreateWorkers, o.DefaultMaxPIDs = 3, 10 })
	c.delays[manager.JobCreate] = time.Second
	for i := range 5 {
		c.launchFor("many", fmt.Sprint("c", i), work(do("wait forever")))
	}
	for i := range 2 {
		c.launchFor("few", fmt.Sprint("d", i), work(do("wait forever")))
	}
	c.advance(10 * time.Second)
	c.mustTell("1s RUNNING", "1s RUNNING", "1s RUNNING", "2s RUNNING", "2s RUNNING", "2s RUNNING", "3s RUNNING")
}

func TestACancelledCreationWaitsForNoPlace(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.CreateWorkers = 1 })
	c.delays[manager.JobCreate] = time.Hour
	c.launch("slow", work(do()))
	c.launch("waiting", work(do()))
	c.advance(time.Second)
	c.stop("waiting")
	c.advance(0)
	c.mustTell("1s COMPLETED stopped")
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	backend := scripted.New(scripted.Options{})
	whole := manager.Capacity{MemoryMB: 1, DiskMB: 1}
	for _, test := range []struct {
		name string
		o    manager.Options
		want string
	}{
		{"no backend", manager.Options{Capacity: whole}, "manager: Options.Backend is not set"},
		{"no memory", manager.Options{Backend: backend, Capacity: manager.Capacity{DiskMB: 1}},
			"manager: Options.Capacity.MemoryMB is not set and the scripted backend does not know it"},
		{"no disk", manager.Options{Backend: backend, Capacity: manager.Capacity{MemoryMB: 1}},
			"manager: Options.Capacity.DiskMB is not set and the scripted backend does not know it"},
		{"a negative grace", manager.Options{Backend: backend, Capacity: whole, Grace: -1}, "manager: Options.Grace is negative"},
	} {
		_, err := manager.New(context.Background(), test.o)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

// With any requests in any order, resources are exact, states change
// only as they may, results do not contradict themselves, and in the end
// nothing is left.
func TestNoSequenceOfCallsBreaksTheRegistry(t *testing.T) {
	for range 40 {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			// What is driven in virtual time does the same each time.
			if diff := cmp.Diff(randomCalls(t, seed), randomCalls(t, seed)); diff != "" {
				t.Errorf("the same seed went another way (-first +second):\n%s", diff)
			}
		}) {
			return
		}
	}
}

func randomCalls(t *testing.T, seed uint64) (history []string) {
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCell(t, func(o *manager.Options) { o.CreateWorkers, o.ProcessWorkers = 2, 3 })
	for _, kind := range []manager.JobKind{manager.JobCreate, manager.JobDelete, manager.JobStart, manager.JobSignal, manager.JobProbe, manager.JobList} {
		c.delays[kind] = time.Duration(random.IntN(3)) * 400 * time.Millisecond
	}
	works := []manager.Work{
		work(do("wait 2s")), work(do("wait 1s", "exit 1")), work(do("ignore TERM", "wait forever")),
		with(work(do("write up yes", "orphan")), func(w *manager.Work) { w.Monitor = ptr(do("need up")) }),
		with(work(parallel(do("wait 3s"), timeout(700, do("wait forever")))), func(w *manager.Work) { w.Setup = ptr(do("wait 1s")) }),
		with(work(codependent(do("wait 4s"), do("ignore TERM", "wait forever"))), func(w *manager.Work) { w.StartTimeoutMs = 500 }),
	}
	last := map[string]executor.Container{}
	check := func() {
		var used manager.Capacity
		used.Containers = int64(len(c.List()))
		now := map[string]executor.Container{}
		for _, x := range c.List() {
			used.MemoryMB += x.Resources.MemoryMB
			used.DiskMB += x.Resources.DiskMB
			used.PIDs += x.Resources.MaxPIDs
			var v executor.Validator
			x.Validate(&v)
			if err := v.Err(); err != nil {
				t.Fatalf("%s: %v", x.GUID, err)
			}
			if old, ok := last[x.GUID]; ok && old.AllocatedAt.Equal(x.AllocatedAt) && x.State < old.State {
				t.Fatalf("%s went from %v back to %v", x.GUID, old.State, x.State)
			}
			now[x.GUID] = x
		}
		last = now
		total, left := c.Total(), c.Remaining()
		if !total.Minus(left).Equal(used) {
			t.Fatalf("%+v is used, but %+v of %+v remains", used, left, total)
		}
		if left.MemoryMB < 0 || left.DiskMB < 0 || left.Containers < 0 || left.PIDs < 0 {
			t.Fatalf("more is given out than there is: %+v remains", left)
		}
	}
	for range 150 {
		guid := fmt.Sprint("c", random.IntN(6))
		switch random.IntN(8) {
		case 0, 1:
			c.Reserve(reservation(guid, int64(random.IntN(400)), int64(random.IntN(900)), 1+int64(random.IntN(2000))))
		case 2, 3:
			if err := c.Initialize(guid, works[random.IntN(len(works))]); err != nil && !errors.Is(err, manager.ErrNotFound) && !errors.Is(err, executor.ErrTransition) {
				t.Fatal(err)
			}
		case 4:
			c.Stop(guid)
		case 5:
			c.Delete(guid)
		case 6:
			c.faults[scripted.Create] = nil
			if random.IntN(4) == 0 {
				c.faults[scripted.Create] = errors.New("no luck")
			}
		default:
			c.advance(time.Duration(random.IntN(3000)) * time.Millisecond)
		}
		check()
	}
	for _, x := range c.List() {
		c.Delete(x.GUID)
	}
	c.advance(2 * time.Minute)
	check()
	c.mustBeClean()
	return c.history
}

func TestTimesOfContainersAreInUTC(t *testing.T) {
	west := time.FixedZone("west", -5*3600)
	c := newCell(t, func(o *manager.Options) { o.Now = func() time.Time { return epoch.In(west) } })
	c.Reserve(executor.Reservation{GUID: "a"})
	got, _ := c.Get("a")
	if got.AllocatedAt != epoch || got.Since != epoch {
		t.Errorf("allocated at %v, since %v, want %v", got.AllocatedAt, got.Since, epoch)
	}
}
