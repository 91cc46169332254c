package rep

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	good := func() Options {
		return Options{CellID: "cell-1", BBS: &fakeBBS{}, Executor: &fakeExecutor{journal: &journal{}}}
	}
	for name, change := range map[string]func(*Options){
		"no cell id":         func(o *Options) { o.CellID = "" },
		"no BBS":             func(o *Options) { o.BBS = nil },
		"no executor":        func(o *Options) { o.Executor = nil },
		"a negative time":    func(o *Options) { o.SyncInterval = -1 },
		"an empty self-test": func(o *Options) { o.SelfTest = &SelfTest{} },
		"a self-test that never fails": func(o *Options) {
			o.SelfTest = &SelfTest{RunInfo: runInfo, Failures: -1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			change(&o)
			if _, err := New(o); !errors.Is(err, executor.ErrInvalid) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	if _, err := New(good()); err != nil {
		t.Errorf("the least options are refused: %v", err)
	}
}

func TestGUIDsOfInstancesAreRandomUUIDs(t *testing.T) {
	a, b := newGUID(), newGUID()
	if a == b || len(a) != 36 || a[14] != '4' {
		t.Errorf("got %q and %q", a, b)
	}
}

func TestACellRefusesWhatIsNotForItOrMakesNoSense(t *testing.T) {
	s := newStage(t)
	nameless := lrpItem
	nameless.GUID = ""
	for _, w := range []auction.Work{
		{CellID: "cell-9", Items: []auction.Item{lrpItem}},
		{CellID: alpha.CellID, Items: []auction.Item{nameless}},
	} {
		rejected, err := s.Perform(t.Context(), w)
		if err != nil || len(rejected) != 1 || rejected[0].Reason == "" || rejected[0].Key != w.Items[0].Key {
			t.Errorf("the answer is %+v, %v", rejected, err)
		}
	}
	if list := s.exe.List(); len(list) != 0 {
		t.Errorf("reserved is %v", list)
	}
}

// A listing executor has volume drivers that come and go.
type listing struct {
	Executor
	drivers []string
}

func (l *listing) VolumeDrivers() []string { return l.drivers }

func TestACellOffersTheVolumeDriversThatItsExecutorHasNow(t *testing.T) {
	l := &listing{Executor: &fakeExecutor{journal: &journal{}}}
	r, err := New(Options{CellID: "cell-1", BBS: &fakeBBS{}, Executor: l, VolumeDrivers: []string{"stale"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"nfs", "smb"}, {"smb"}, nil, {"nfs"}} {
		l.drivers = want
		if s, err := r.State(t.Context()); err != nil || !slices.Equal(s.VolumeDrivers, want) {
			t.Errorf("the cell offers %q, %v, want %q", s.VolumeDrivers, err, want)
		}
	}
}

func TestWorkIsReservedWithWhatItIsFor(t *testing.T) {
	s := newStage(t)
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	instance, job := lrpItem, taskItem()
	instance.Index, instance.PlacementTags, instance.VolumeDrivers = 3, []string{"ssd"}, []string{"nfs"}
	job.Attempt.Rejections = 2
	work := auction.Work{CellID: alpha.CellID, Items: []auction.Item{instance, job}, Reasons: []string{"score 0.5"}}
	for range 2 { // the second time nothing is new
		if rejected, err := s.Perform(t.Context(), work); err != nil || len(rejected) > 0 {
			t.Fatal(rejected, err)
		}
	}
	list := s.exe.List()
	if len(list) != 2 {
		t.Fatalf("reserved is %+v", list)
	}
	for _, c := range list {
		me, ours := subjectOf(c)
		switch {
		case !ours || me.guid != c.GUID:
			t.Errorf("the rep does not know %+v again", c)
		case me.isTask() && (me.task != "t" || me.attempt != job.Attempt):
			t.Errorf("the task's container is of %+v", me)
		case !me.isTask() && (me.key != instance.Key.LRP() || c.Tags[executor.TagPlacementTags] != `["ssd"]` || c.Tags[executor.TagVolumeDrivers] != `["nfs"]` ||
			c.Tags[executor.TagReason] != "score 0.5"):
			t.Errorf("the instance's container has the tags %v", c.Tags)
		}
	}
	state, err := s.State(t.Context())
	if err != nil || state.ID != alpha.CellID || state.StartingContainers != 2 ||
		!slices.Equal(state.LRPs, []lrp.Key{instance.Key.LRP()}) || !slices.Equal(state.Tasks, []string{"t"}) {
		t.Errorf("the cell says %+v, %v", state, err)
	}
	// Another attempt of the task, and another definition, are other work.
	job.Attempt.Rejections, instance.DefinitionID = 3, "d2"
	if rejected, err := s.Perform(t.Context(), auction.Work{CellID: alpha.CellID, Items: []auction.Item{instance, job}}); err != nil || len(rejected) > 0 {
		t.Fatal(rejected, err)
	}
	if list := s.exe.List(); len(list) != 4 {
		t.Errorf("reserved is %+v", list)
	}
}

func TestOnlyTheRightContainerIsStopped(t *testing.T) {
	key := lrpItem.Key.LRP()
	for _, c := range []struct {
		name  string
		state executor.State
		key   lrp.Key
		guid  string
		cell  string
		want  []string
	}{
		{"a running one", executor.Running, key, "i1", alpha.CellID, []string{"stop"}},
		{"one that is being made", executor.Initializing, key, "i1", alpha.CellID, []string{"stop"}},
		{"a reservation", executor.Reserved, key, "i1", alpha.CellID, []string{RemoveLRP.String(), DeleteContainer.String()}},
		{"another instance", executor.Running, key, "i2", alpha.CellID, nil},
		{"another cell's", executor.Running, key, "i1", "cell-2", nil},
		{"another index", executor.Running, lrp.Key{ProcessGUID: "p", DefinitionID: "d1", Index: 1}, "i1", alpha.CellID, nil},
		{"another process", executor.Running, lrp.Key{ProcessGUID: "q", DefinitionID: "d1"}, "i1", alpha.CellID, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			container := containerOf(t, lrpItem, c.state, executor.RunResult{})
			slot := slotOf(t, LRPRunningAlpha)
			if c.state < executor.Running {
				slot = slotOf(t, LRPClaimedAlpha)
			}
			one := scene{container: container, slot: slot}
			one.agree()
			s.play(one)
			if err := s.StopLRP(t.Context(), c.key, lrp.InstanceKey{InstanceGUID: c.guid, CellID: c.cell}); err != nil {
				t.Fatal(err)
			}
			if err := s.settleAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.must(c.want...)
		})
	}
}

func TestAReservationThatIsStoppedWhileItIsClaimedIsNotRun(t *testing.T) {
	s := newStage(t)
	container := containerOf(t, lrpItem, executor.Reserved, executor.RunResult{})
	s.play(scene{container: container, slot: slotOf(t, LRPUnclaimed)})
	s.o.BBS = &stopsWhileClaiming{s.bbs, func() {
		s.bbs.slot = slotOf(t, LRPClaimedAlpha)
		if err := s.StopLRP(t.Context(), lrpItem.Key.LRP(), alpha); err != nil {
			t.Error(err)
		}
	}}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must(ClaimLRP.String(), RemoveLRP.String(), DeleteContainer.String())
}

func TestAReservationThatIsStoppedJustBeforeItRunsIsStoppedAfterwards(t *testing.T) {
	s := newStage(t)
	container := containerOf(t, lrpItem, executor.Reserved, executor.RunResult{})
	s.play(scene{container: container, slot: slotOf(t, LRPClaimedAlpha)})
	s.o.Executor = &stopsWhileRunning{s.exe, func() {
		if err := s.StopLRP(t.Context(), lrpItem.Key.LRP(), alpha); err != nil {
			t.Error(err)
		}
	}}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must(RunContainer.String(), "stop")
}

func TestOnlyTheRightTaskIsCancelled(t *testing.T) {
	for _, c := range []struct {
		name, task, guid string
		want             []string
	}{
		{"the task", "t", "i1", []string{DeleteContainer.String()}},
		{"another container of the task", "t", "i2", nil},
		{"another task of that name", "u", "i1", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.play(scene{container: containerOf(t, taskItem(), executor.Running, executor.RunResult{}), task: taskOf(t, TaskRunningAlpha)})
			if err := s.CancelTask(t.Context(), c.task, c.guid); err != nil {
				t.Fatal(err)
			}
			s.must(c.want...)
			// While it ends, nobody reports it as missing.
			s.look(s.exe.List()[0])
			if err := s.settleAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.must()
		})
	}
}

// A tester is a stage with a clock and a self-test.
func newTester(t *testing.T) (s *stage, pass func(time.Duration)) {
	now := start
	s = newStage(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.SelfTest = &SelfTest{RunInfo: runInfo}
	})
	return s, func(d time.Duration) {
		now = now.Add(d)
		s.Tick(t.Context())
		s.exe.journal.take()
	}
}

// tested is the container of the test.
func (s *stage) tested() executor.Container {
	s.t.Helper()
	list := s.exe.List()
	if len(list) != 1 {
		s.t.Fatalf("the containers are %+v", list)
	}
	return list[0]
}

func TestASelfTestIsJudgedByHowItsContainerEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(s *stage, pass func(time.Duration))
		failed bool
	}{
		"well":       {func(s *stage, _ func(time.Duration)) { s.end(executor.Succeeded()) }, false},
		"failed":     {func(s *stage, _ func(time.Duration)) { s.end(executor.Failed("exit 1")) }, true},
		"stopped":    {func(s *stage, _ func(time.Duration)) { s.end(executor.Stopped()) }, true},
		"vanished":   {func(s *stage, _ func(time.Duration)) { clear(s.exe.containers) }, true},
		"never":      {func(_ *stage, pass func(time.Duration)) { pass(time.Minute) }, true},
		"not at all": {func(s *stage, _ func(time.Duration)) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, pass := newTester(t)
			pass(0)
			if s.tested().State != executor.Initializing {
				t.Fatalf("the test's container is %+v", s.tested())
			}
			c.end(s, pass)
			pass(time.Second)
			if failed := s.test.failures > 0; failed != c.failed {
				t.Errorf("failed: %v, want %v", failed, c.failed)
			}
		})
	}
}

// end ends the container of the test.
func (s *stage) end(r executor.RunResult) {
	s.t.Helper()
	c := s.tested()
	next, err := c.Complete(r, start)
	if err != nil {
		s.t.Fatal(err)
	}
	s.exe.containers[c.GUID] = next
}

func TestThreeFailuresMakeACellUnhealthyAndOneSuccessHealthy(t *testing.T) {
	s, pass := newTester(t)
	s.exe.refuse = errors.New("no image")
	for failures, want := range []bool{false, false, true, true} {
		pass(10 * time.Second)
		if s.test.unhealthy != want {
			t.Errorf("after %d failures the cell is unhealthy: %v", failures+1, s.test.unhealthy)
		}
		clear(s.exe.containers) // the reservation was deleted
	}
	s.exe.refuse = nil
	pass(10 * time.Second)
	s.end(executor.Succeeded())
	pass(time.Second)
	if state, _ := s.State(t.Context()); state.Unhealthy {
		t.Error("the cell is not healthy again")
	}
	pass(time.Minute)
	if len(s.exe.List()) > 1 || s.test.running {
		t.Error("the next test did not wait for its time")
	}
	pass(time.Minute) // and the container of the last one is still there
	if s.test.failures != 1 {
		t.Errorf("a container that was not removed makes %d failures", s.test.failures)
	}
}

func TestAFullCellIsNotTested(t *testing.T) {
	s, pass := newTester(t)
	s.o.Executor = fullExecutor{s.exe}
	pass(0)
	if s.test.failures != 0 || s.test.running || !s.test.next.Equal(start.Add(2*time.Minute)) {
		t.Errorf("the test is %+v", s.test)
	}
	s.o.Executor = brokenExecutor{s.exe}
	pass(2 * time.Minute)
	if s.test.failures != 1 {
		t.Errorf("the test is %+v", s.test)
	}
}

func TestAnEvacuatingCellEndsItsTest(t *testing.T) {
	s, pass := newTester(t)
	pass(0)
	if err := s.Evacuate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Tick(t.Context())
	s.must(DeleteContainer.String())
	pass(time.Hour)
	if s.test.running {
		t.Error("another test was begun")
	}
}

func TestNextSaysWhenTickHasSomethingToDo(t *testing.T) {
	announcer := &fakeAnnouncer{}
	s, pass := newTester(t)
	s.o.Announcer = announcer
	pass(0)
	if got := s.Next(); !got.Equal(start.Add(DefaultAnnounceInterval)) {
		t.Errorf("the announcement is due %v", got.Sub(start))
	}
	s.o.Announcer = nil
	if got := s.Next(); !got.Equal(start.Add(DefaultSyncInterval)) {
		t.Errorf("the Sync is due %v", got.Sub(start))
	}
	s.bbs.readErr, s.bbs.slot = errors.New("no answer"), slotOf(t, LRPRunningAlpha)
	pass(DefaultSyncInterval)
	if got, want := s.Next(), start.Add(DefaultSyncInterval+DefaultRetryInterval); !got.Equal(want) {
		t.Errorf("after a failure the Sync is due %v", got.Sub(start))
	}
	if err := s.Evacuate(t.Context()); err != nil || s.Next().After(start.Add(DefaultSyncInterval)) {
		t.Errorf("an evacuation begins %v, %v", s.Next(), err)
	}
}

func TestAnEvacuationFinishesWhenItsTimeIsOver(t *testing.T) {
	announcer := &fakeAnnouncer{}
	now := start
	s := newStage(t, func(o *Options) { o.Now, o.Announcer = func() time.Time { return now }, announcer })
	pass := func(d time.Duration) { now = now.Add(d); s.Tick(t.Context()) }
	if began, _, over := s.Evacuation(); !began.IsZero() || over {
		t.Error("the evacuation began by itself")
	}
	s.bbs.keep = true
	container := containerOf(t, lrpItem, executor.Running, executor.RunResult{})
	s.play(scene{container: container, slot: slotOf(t, LRPEvacuatingAlpha), evacuates: true})
	for range 3 { // at once and every ten seconds
		pass(10 * time.Second)
		s.must(EvacuateRunningLRP.String())
	}
	if err := s.Evacuate(t.Context()); err != nil { // it does not begin anew
		t.Fatal(err)
	}
	if began, deadline, over := s.Evacuation(); !began.Equal(start) || !deadline.Equal(start.Add(DefaultEvacuationTimeout+DefaultFinishTimeout)) || over {
		t.Errorf("the evacuation goes from %v to %v, %v", began, deadline, over)
	}
	s.bbs.journal.take()
	now = start.Add(DefaultEvacuationTimeout)
	s.Tick(t.Context()) // the time is over
	pass(time.Second)
	s.must(RemoveEvacuatingLRP.String(), DeleteContainer.String())
	s.bbs.slot.Records = nil
	delete(s.exe.containers, container.GUID)
	pass(time.Second)
	if !s.Evacuated() || announcer.left != 1 {
		t.Errorf("over: %v, left %d times", s.Evacuated(), announcer.left)
	}
	pass(time.Hour)
	if announcer.left != 1 {
		t.Errorf("the presence was ended %d times", announcer.left)
	}
	s.must()
}

func TestAnEvacuationThatEndsCannotBeGivenUp(t *testing.T) {
	now := start
	s := newStage(t, func(o *Options) { o.Now = func() time.Time { return now } })
	if err := s.CancelEvacuation(t.Context()); err != nil {
		t.Errorf("without an evacuation: %v", err)
	}
	for range 2 { // the second time, the cell is empty at once
		if err := s.Evacuate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.CancelEvacuation(t.Context()); err != nil {
			t.Fatal(err)
		}
		if state, _ := s.State(t.Context()); state.Evacuating {
			t.Error("it still evacuates")
		}
	}
	if err := s.Evacuate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Tick(t.Context())
	if err := s.CancelEvacuation(t.Context()); !errors.Is(err, ErrEvacuationEnds) {
		t.Errorf("an empty cell gives up its evacuation: %v", err)
	}
}

func TestACordonThatCannotBeKeptDoesNotChange(t *testing.T) {
	full := errors.New("no space left on device")
	var kept []bool
	s := newStage(t, func(o *Options) {
		o.Cordoned = true
		o.KeepCordon = func(cordoned bool) error {
			if kept = append(kept, cordoned); len(kept) == 1 {
				return full
			}
			return nil
		}
	})
	for _, want := range []struct {
		err      error
		cordoned bool
	}{{full, true}, {nil, false}} {
		if err := s.Cordon(t.Context(), false); !errors.Is(err, want.err) {
			t.Errorf("the error is %v, want %v", err, want.err)
		}
		if state, _ := s.State(t.Context()); state.Cordoned != want.cordoned {
			t.Errorf("cordoned: %v, want %v", state.Cordoned, want.cordoned)
		}
	}
	if !slices.Equal(kept, []bool{false, false}) {
		t.Errorf("remembered was %v", kept)
	}
}

func TestARunningTaskFailsWithTheSpecificationsReasonWhenAnEvacuationTimesOut(t *testing.T) {
	now := start
	s := newStage(t, func(o *Options) { o.Now = func() time.Time { return now } })
	s.play(scene{container: containerOf(t, taskItem(), executor.Running, executor.RunResult{}), task: taskOf(t, TaskRunningAlpha), evacuates: true})
	s.Tick(t.Context())
	s.must()
	now = now.Add(DefaultEvacuationTimeout)
	s.Tick(t.Context())
	now = now.Add(time.Second)
	s.Tick(t.Context())
	s.must(FailTask.String(), DeleteContainer.String())
	if s.bbs.complete.FailureReason != task.ReasonEvacuationTimedOut || !s.bbs.complete.Failed {
		t.Errorf("the task ended with %+v", s.bbs.complete)
	}
}

func TestATaskThatHasEndedIsToldByItsResultWhenAnEvacuationTimesOut(t *testing.T) {
	now := start
	s := newStage(t, func(o *Options) { o.Now = func() time.Time { return now } })
	s.play(scene{container: containerOf(t, taskItem(), executor.Completed, executor.Succeeded()), task: taskOf(t, TaskRunningAlpha), evacuates: true})
	s.bbs.fail[CompleteTask] = errors.New("no answer")
	s.Tick(t.Context())
	now = now.Add(DefaultEvacuationTimeout)
	s.Tick(t.Context())
	s.bbs.journal.take()
	delete(s.bbs.fail, CompleteTask)
	now = now.Add(time.Second)
	s.Tick(t.Context())
	s.must(CompleteTask.String(), DeleteContainer.String())
	if s.bbs.complete.Failed {
		t.Errorf("the task ended with %+v", s.bbs.complete)
	}
}

func TestTheInventoryNamesEveryContainerWhateverItsState(t *testing.T) {
	for state := executor.Reserved; state <= executor.Completed; state++ {
		s := newStage(t)
		s.play(scene{container: containerOf(t, lrpItem, state, executor.RunResult{}), slot: slotOf(t, LRPRunningAlpha)})
		if err := s.StopLRP(t.Context(), lrpItem.Key.LRP(), alpha); err != nil {
			t.Fatal(err)
		}
		got, err := s.Inventory(t.Context())
		if err != nil || got.CellID != alpha.CellID || !slices.Equal(got.Containers, []string{alpha.InstanceGUID}) {
			t.Errorf("%v: got %+v, %v; want %s", state, got, err, alpha.InstanceGUID)
		}
	}
}

// An earlier run of the cell may have containers that this one knows nothing of.
func TestACellThatIsNotThePresentRunGivesNoInventory(t *testing.T) {
	s := newStage(t)
	s.o.Announcer = absentee{}
	s.Rep.Tick(t.Context())
	if got, err := s.Inventory(t.Context()); !errors.Is(err, storage.ErrHeld) {
		t.Errorf("got %+v, %v; want that another run is present", got, err)
	}
}

// An absentee is never present.
type absentee struct{}

func (absentee) Tick(context.Context) error  { return storage.ErrHeld }
func (absentee) Leave(context.Context) error { return nil }
