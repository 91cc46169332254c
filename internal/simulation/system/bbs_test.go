package system_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

func TestScalingADeploymentStartsAndStopsInstancesAtOnce(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.step()
	three := 3
	s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{Instances: &three}))
	s.step()
	if got := s.instances(); len(got) != 3 {
		t.Fatalf("got instances %v, want 3", got)
	}
	one := 1
	s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{Instances: &one}))
	s.step()
	s.wantRecords("web/0 RUNNING ORDINARY cell-1")
	s.must(s.BBS.DeleteDeployment(s.ctx, "web"))
	s.step()
	if s.wantRecords(); s.containers() != 0 {
		t.Errorf("got %d containers, want none", s.containers())
	}
}

func TestALargeDeploymentIsMadeInBatches(t *testing.T) {
	s := newSystem(t, 4, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1201)))
	if got := len(s.records()); got != 1201 {
		t.Fatalf("got %d records, want 1201", got)
	}
	s.step()
	if got := s.instances(); len(got) != 1201 {
		t.Errorf("got %d instances, want 1201", len(got))
	}
}

func TestANewDefinitionIsRolledOutOneIndexAfterAnother(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.CreateDeployment(s.ctx, lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 3}, DefinitionID: "v1", Definition: definition(),
	}))
	s.step()
	id, next := "v2", definition()
	next.MemoryMB = 64
	s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{DefinitionID: &id, Definition: &next}))
	done := 0
	for range 8 {
		status, err := s.BBS.RolloutStatus(s.ctx, "web")
		if s.must(err); status.Done < done || status.Done+status.Pending != 3 {
			t.Errorf("after %d done indices got %+v", done, status)
		}
		done = status.Done
		running := 0
		for r, err := range s.BBS.ResolvedLRPs(s.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{"web"}}) {
			if s.must(err); r.State == lrp.Running {
				running++
			}
		}
		if running != 3 {
			t.Fatalf("%d instances are RUNNING during the rollout, want 3: %v", running, s.records())
		}
		s.step()
	}
	for r, err := range s.BBS.ActualLRPs(s.ctx, storage.ActualLRPFilter{}) {
		if s.must(err); r.DefinitionID != "v2" || r.State != lrp.Running {
			t.Errorf("%s/%d is %v of %s", r.ProcessGUID, r.Index, r.State, r.DefinitionID)
		}
	}
	if status, err := s.BBS.RolloutStatus(s.ctx, "web"); err != nil || !status.Complete() {
		t.Errorf("got %+v, %v; want the rollout to be complete", status, err)
	}
	if _, err := s.BBS.RolloutStatus(s.ctx, "no"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	s.must(s.BBS.ActivateDefinition(s.ctx, "web", "v1"))
	d, err := s.BBS.Deployment(s.ctx, "web")
	if s.must(err); d.ActiveDefinitionID != "v1" {
		t.Errorf("got active definition %s, want v1", d.ActiveDefinitionID)
	}
}

func TestADesiredLRPIsUpdatedToAnotherByARollout(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	s.step()
	next := desired("web", 3)
	next.Definition.MemoryMB = 64
	once := bbs.WithRequestID(s.ctx, "4711")
	first, err := s.BBS.UpdateDesiredLRP(once, next, "")
	s.must(err)
	again, err := s.BBS.UpdateDesiredLRP(once, next, "")
	if s.must(err); first == "" || again != first {
		t.Errorf("the definition is %q, and %q for the repeated call; want one id", first, again)
	}
	second, err := s.BBS.UpdateDesiredLRP(s.ctx, next, "")
	if s.must(err); second == first {
		t.Errorf("another call makes the same id %q", second)
	}
	named, err := s.BBS.UpdateDesiredLRP(s.ctx, next, "v4")
	if s.must(err); named != "v4" {
		t.Errorf("got id %q, want v4", named)
	}
	s.pass(20 * time.Second)
	for index := range 3 {
		if r := s.record("web", index); r.DefinitionID != "v4" || r.State != lrp.Running {
			t.Errorf("%d is %v of %q, want the new definition to run", index, r.State, r.DefinitionID)
		}
	}
	l, err := s.BBS.DesiredLRP(s.ctx, "web")
	if s.must(err); l.Instances != 3 || l.Definition.MemoryMB != 64 {
		t.Errorf("got %+v", l)
	}
	next.Domain = "others"
	if _, err := s.BBS.UpdateDesiredLRP(s.ctx, next, ""); !errors.Is(err, lrp.ErrRefused) {
		t.Errorf("to another domain: got %v, want ErrRefused", err)
	}
	if _, err := s.BBS.UpdateDesiredLRP(s.ctx, desired("none", 1), ""); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("of no deployment: got %v, want ErrNotFound", err)
	}
	if _, err := s.BBS.UpdateDesiredLRP(s.ctx, desired("web", -1), ""); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("to -1 instances: got %v, want ErrInvalid", err)
	}
}

func TestGroupsAreReadForEachDefinitionAndForTheActiveOne(t *testing.T) {
	s := newSystem(t, 0, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	s.must(s.BBS.StartLRP(s.ctx, "web", 0, lrp.Start{Instance: mine}))
	s.must(updateTo("v2")(s.ctx, s.BBS)) // an instance of it is wanted at index 0 besides
	if _, err := s.BBS.EvacuateRunningLRP(s.ctx, "web", 0, lrp.EvacuateRunning{DefinitionID: "web", Instance: mine}); err != nil {
		t.Fatal(err)
	}
	group := func(g lrp.Group) string {
		text := ""
		for _, r := range []*lrp.ActualLRP{g.Instance, g.Evacuating} {
			if r != nil {
				text += describe(r) + " of " + r.DefinitionID + "; "
			}
		}
		return text
	}
	list := func(f storage.ActualLRPFilter) (got []string) {
		for g, err := range s.BBS.ActualLRPGroups(s.ctx, f) {
			s.must(err)
			got = append(got, group(g))
		}
		return got
	}
	slot, err := s.BBS.Slot(s.ctx, "web", 0)
	s.must(err)
	var want []string
	for _, g := range slot.Groups() {
		want = append(want, group(g))
	}
	if got := list(storage.ActualLRPFilter{ProcessGUIDs: []string{"web"}, Indices: []int{0}}); len(got) < 2 || !slices.Equal(got, want) {
		t.Errorf("at index 0 got %q, want %q, one for each definition", got, want)
	}
	if got := list(storage.ActualLRPFilter{Presences: []lrp.Presence{lrp.Evacuating}}); len(got) != 1 || !strings.Contains(got[0], "EVACUATING cell-1 of web") {
		t.Errorf("groups with an evacuating instance: got %q", got)
	}
	g, err := s.BBS.ActualLRPGroup(s.ctx, "web", 0)
	if s.must(err); g.Instance == nil || g.Instance.DefinitionID != "v2" {
		t.Errorf("got %q, want the active definition's", group(g))
	}
	if _, err := s.BBS.ActualLRPGroup(s.ctx, "web", 7); !errors.Is(err, lrp.ErrNotFound) || !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestATaskIsResolvedAndDeletedInOneCall(t *testing.T) {
	s := newSystem(t, 0, nil)
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
	if err := s.BBS.ResolveAndDeleteTask(s.ctx, "job"); !errors.Is(err, task.ErrInvalidTransition) {
		t.Errorf("of a task that is PENDING: got %v, want ErrInvalidTransition", err)
	}
	s.must(s.BBS.CancelTask(s.ctx, "job"))
	s.must(s.BBS.ResolveAndDeleteTask(s.ctx, "job"))
	if err := s.BBS.ResolveAndDeleteTask(s.ctx, "job"); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("a second time: got %v, want ErrNotFound", err)
	}
	var kinds []string
	for e, err := range s.store.Events(s.ctx, 0, storage.EventFilter{TaskGUIDs: []string{"job"}}) {
		s.must(err)
		kinds = append(kinds, e.Subject().Kind+" by "+e.Task.Cause.Command)
	}
	if want := []string{"task_created by Desire", "task_changed by Cancel", "task_changed by Resolve", "task_removed by Delete"}; !slices.Equal(kinds, want) {
		t.Errorf("got events %q, want %q", kinds, want)
	}
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("other", "")))
	s.must(s.BBS.CancelTask(s.ctx, "other"))
	s.must(s.BBS.ResolveTask(s.ctx, "other"))
	if err := s.BBS.ResolveAndDeleteTask(s.ctx, "other"); !errors.Is(err, task.ErrInvalidTransition) {
		t.Errorf("of a task that somebody deals with: got %v, want ErrInvalidTransition", err)
	}
}

func TestACallThatIsRepeatedWithItsRequestIDIsCarriedOutOnce(t *testing.T) {
	me := lrp.InstanceKey{InstanceGUID: "mine", CellID: "cell-1"}
	one, id, next := 1, "v2", definition()
	for _, test := range []struct {
		name string
		call func(ctx context.Context, b bbs.API) error
	}{
		{"Desire", func(ctx context.Context, b bbs.API) error { return b.Desire(ctx, desired("new", 1)) }},
		{"Update", func(ctx context.Context, b bbs.API) error {
			return b.UpdateDeployment(ctx, "web", lrp.Update{Instances: &one, DefinitionID: &id, Definition: &next})
		}},
		{"Delete", func(ctx context.Context, b bbs.API) error { return b.DeleteDeployment(ctx, "web") }},
		{"Crash", func(ctx context.Context, b bbs.API) error {
			return b.CrashLRP(ctx, "web", 0, lrp.Crash{Instance: me, Reason: "exit status 1"})
		}},
		{"Remove", func(ctx context.Context, b bbs.API) error {
			return b.RemoveLRP(ctx, "web", 0, lrp.Remove{Instance: me})
		}},
		{"DesireTask", func(ctx context.Context, b bbs.API) error { return b.DesireTask(ctx, desiredTask("new", "")) }},
		{"CancelTask", func(ctx context.Context, b bbs.API) error { return b.CancelTask(ctx, "job") }},
		{"RejectTask", func(ctx context.Context, b bbs.API) error {
			_, _, err := b.RejectTask(ctx, "job", task.Attempt{}, "no cell")
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSystem(t, 0, nil)
			s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
			s.must(s.BBS.StartLRP(s.ctx, "web", 0, lrp.Start{Instance: me}))
			s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
			ctx := bbs.WithRequestID(s.ctx, "4711")
			s.must(test.call(ctx, s.BBS))
			log, err := s.store.Log(s.ctx)
			s.must(err)
			if err := test.call(ctx, s.BBS); err != nil {
				t.Errorf("the second call: %v", err)
			}
			if after, err := s.store.Log(s.ctx); err != nil || after.Newest != log.Newest {
				t.Errorf("the second call made %d events, %v", after.Newest-log.Newest, err)
			}
			if err := test.call(bbs.WithRequestID(s.ctx, "4712"), s.BBS); err == nil && test.name != "RejectTask" && test.name != "Crash" {
				t.Error("another call with another id was taken for this one")
			}
		})
	}
}

func TestCallsOfTwoMethodsMayHaveOneRequestID(t *testing.T) {
	s := newSystem(t, 0, nil)
	me := lrp.InstanceKey{InstanceGUID: "mine", CellID: "cell-1"}
	ctx := bbs.WithRequestID(s.ctx, "4711")
	s.must(s.BBS.Desire(ctx, desired("web", 1)))
	s.must(s.BBS.DesireTask(ctx, desiredTask("job", "")))
	s.must(s.BBS.StartLRP(ctx, "web", 0, lrp.Start{Instance: me}))
	if should, err := s.BBS.StartTask(ctx, "job", task.Start{CellID: "cell-1", InstanceGUID: "mine"}); !should || err != nil {
		t.Errorf("got %t, %v; want true", should, err)
	}
	s.must(s.BBS.DeleteDeployment(ctx, "web"))
	s.must(s.BBS.CancelTask(ctx, "job"))
	s.must(s.BBS.ResolveTask(ctx, "job"))
	s.must(s.BBS.DeleteTask(ctx, "job"))
	if _, err := s.BBS.Task(s.ctx, "job"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want the task to be gone", err)
	}
}

// A cell that makes up the guid of another's instance has its own way with
// nobody's but its own.
func TestACrashIsRememberedForTheCellThatReportedIt(t *testing.T) {
	s := newSystem(t, 0, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	mine, theirs := lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-1"}, lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-2"}
	s.must(s.BBS.StartLRP(s.ctx, "web", 0, lrp.Start{Instance: mine}))
	s.must(s.BBS.StartLRP(s.ctx, "web", 1, lrp.Start{Instance: theirs}))
	s.must(s.BBS.CrashLRP(s.ctx, "web", 1, lrp.Crash{Instance: theirs, Reason: "exit status 1"}))
	s.must(s.BBS.CrashLRP(s.ctx, "web", 0, lrp.Crash{Instance: mine, Reason: "exit status 1"}))
	slot, err := s.BBS.Slot(s.ctx, "web", 0)
	if s.must(err); len(slot.Records) != 1 || slot.Records[0].CrashCount != 1 {
		t.Errorf("got %+v, want one crash", slot.Records)
	}
}

func TestAnInstanceCrashesOnceHoweverOftenThatIsReported(t *testing.T) {
	s := newSystem(t, 0, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	long := lrp.InstanceKey{InstanceGUID: strings.Repeat("i", 255), CellID: "cell-1"}
	start := lrp.Start{Instance: long}
	s.must(s.BBS.StartLRP(s.ctx, "web", 0, start))
	s.must(s.BBS.CrashLRP(s.ctx, "web", 0, lrp.Crash{Instance: long, Reason: "exit status 1"}))
	s.must(s.BBS.StartLRP(s.ctx, "web", 0, start)) // it was on its way for long
	s.must(s.BBS.CrashLRP(s.ctx, "web", 0, lrp.Crash{Instance: long, Reason: "exit status 1"}))
	if _, err := s.BBS.EvacuateCrashedLRP(s.ctx, "web", 0, lrp.EvacuateCrashed{Instance: long, Reason: "exit status 1"}); err != nil {
		t.Error(err)
	}
	slot, err := s.BBS.Slot(s.ctx, "web", 0)
	if s.must(err); slot.Records[0].CrashCount != 1 {
		t.Errorf("got %d crashes, want 1", slot.Records[0].CrashCount)
	}
}

// The leader looks again when the time has come, and not only in its next pass.
func TestARolloutGoesOnWhenItsNewInstanceHasBeenHealthyForLongEnough(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.CreateDeployment(s.ctx, lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: definition(),
		Settings: lrp.Settings{Instances: 2, Policies: lrp.Policies{Rollout: &lrp.RolloutPolicy{MinHealthy: 5 * time.Second}}},
	}))
	s.step()
	s.pass(6 * time.Second)
	id, next := "v2", definition()
	s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{DefinitionID: &id, Definition: &next}))
	took := 0
	for proving := false; ; took++ {
		status, err := s.BBS.RolloutStatus(s.ctx, "web")
		if s.must(err); status.Complete() {
			if !proving {
				t.Error("no instance was seen that has still to prove healthy")
			}
			break
		}
		if proving = proving || status.Proving == 1; took > 25 {
			t.Fatalf("%+v after %d s; want two instances to take 5 s each, and little more", status, took)
		}
		s.pass(time.Second)
	}
	if took < 10 {
		t.Errorf("the rollout took %d s, want at least 5 s for each instance", took)
	}
	if d, err := s.BBS.Deployment(s.ctx, "web"); err != nil || d.HealthyDefinitionID != "v2" || d.Rollout.MinHealthy != 5*time.Second {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestAProcessCrashesByItsOwnPolicyUnlessItAsksForMoreThanItMay(t *testing.T) {
	s := newSystem(t, 0, nil)
	web := desired("web", 1)
	web.Restart = &lrp.RestartPolicy{ImmediateRestarts: 1}
	s.must(s.BBS.Desire(s.ctx, web))
	crash := func(instance string) lrp.State {
		t.Helper()
		me := lrp.InstanceKey{InstanceGUID: instance, CellID: "cell-1"}
		s.must(s.BBS.StartLRP(s.ctx, "web", 0, lrp.Start{Instance: me}))
		s.must(s.BBS.CrashLRP(s.ctx, "web", 0, lrp.Crash{Instance: me, Reason: "exit status 1"}))
		return s.record("web", 0).State
	}
	if first, second := crash("i1"), crash("i2"); first != lrp.Unclaimed || second != lrp.Crashed {
		t.Errorf("after a crash it is %v, after another %v; want it to restart once at once", first, second)
	}
	often := web
	often.Restart = &lrp.RestartPolicy{ImmediateRestarts: 4, MinBackoff: time.Second, MaxRestarts: -1}
	for name, err := range map[string]error{
		"update": s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{Restart: often.Restart}),
		"desire": func() error { often.ProcessGUID = "often"; return s.BBS.Desire(s.ctx, often) }(),
	} {
		var invalid *executor.ValidationError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want a *ValidationError", name, err)
			continue
		}
		for _, want := range []string{"restart_policy.immediate_restarts", "at most 3", "restart_policy.max_restarts", "at most 200",
			"restart_policy.min_backoff_nanoseconds", "at least 30s"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want it to say %q", name, err, want)
			}
		}
	}
	s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{Restart: &lrp.RestartPolicy{}}))
	if d, err := s.BBS.DesiredLRP(s.ctx, "web"); err != nil || d.Restart != nil {
		t.Errorf("%+v, %v; want the control plane's policy again", d.Restart, err)
	}
}

func TestTheFirstAnswerToStartTaskIsGivenAgain(t *testing.T) {
	s := newSystem(t, 0, nil)
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
	ctx := bbs.WithRequestID(s.ctx, "4711")
	start := task.Start{CellID: "cell-1", InstanceGUID: "mine"}
	for range 2 {
		if should, err := s.BBS.StartTask(ctx, "job", start); !should || err != nil {
			t.Errorf("got %t, %v; want true", should, err)
		}
	}
	if should, err := s.BBS.StartTask(s.ctx, "job", start); should || err != nil {
		t.Errorf("without the id got %t, %v; want false", should, err)
	}
}

func TestRetiredInstancesStartAgain(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.step()
	before := s.instances()
	s.must(s.BBS.Retire(s.ctx, "web", 0, ""))
	s.step()
	s.step()
	if got := s.instances(); len(got) != 1 || got[0] == before[0] {
		t.Errorf("got instances %v, want another than %v", got, before)
	}
	if err := s.BBS.Retire(s.ctx, "web", 7, ""); !errors.Is(err, lrp.ErrCannotBeRetired) || !errors.Is(err, lrp.ErrNotFound) {
		t.Errorf("got %v, want ErrCannotBeRetired", err)
	}
	// Nobody is there to stop an instance whose cell is gone.
	for range 2 {
		s.clock.Advance(8 * time.Second)
		s.must(s.cells[1].Announce(s.ctx, s.store))
		s.must(s.Leadership.Tick(s.ctx))
	}
	s.must(s.BBS.Retire(s.ctx, "web", 0, ""))
	s.wantRecords("web/0 UNCLAIMED ORDINARY")
}

func TestARetireThatIsRepeatedStopsNoReplacement(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.step()
	once := bbs.WithRequestID(s.ctx, "retire-1")
	before := s.instances()
	s.must(s.BBS.Retire(once, "web", 0, ""))
	s.pass(2 * time.Second)
	replacement := s.instances()
	if len(replacement) != 1 || replacement[0] == before[0] {
		t.Fatalf("got instances %v, want another than %v", replacement, before)
	}
	s.must(s.BBS.Retire(once, "web", 0, ""))
	s.pass(2 * time.Second)
	if got := s.instances(); !slices.Equal(got, replacement) {
		t.Errorf("got instances %v, want %v still", got, replacement)
	}
	s.must(s.BBS.Retire(bbs.WithRequestID(s.ctx, "retire-2"), "web", 0, ""))
	s.pass(2 * time.Second)
	if got := s.instances(); len(got) != 1 || slices.Equal(got, replacement) {
		t.Errorf("got instances %v, want another than %v", got, replacement)
	}
}

// A listless store has no list of ActualLRPs that is as long as a process.
type listlessStore struct{ storage.Store }

func (s listlessStore) ActualLRPs(context.Context, storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return func(yield func(lrp.ActualLRP, error) bool) {
		yield(lrp.ActualLRP{}, errors.New("the process was listed"))
	}
}

func TestOneIndexIsReadWithoutItsProcess(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 3)))
	s.step()
	s.must(s.cells[0].Evacuate(s.ctx))
	s.cells[0].Poll(s.ctx)
	listless := s.plane("plane-2", func(o *diego.Options) { o.Store = listlessStore{s.store} })
	read := func(list iter.Seq2[lrp.ActualLRP, error]) (got []string) {
		for r, err := range list {
			s.must(err)
			got = append(got, describe(&r))
		}
		return got
	}
	for index := range 4 {
		for _, f := range []storage.ActualLRPFilter{
			{}, {Presences: []lrp.Presence{lrp.Evacuating}}, {CellIDs: []string{"cell-2"}}, {Domains: []string{"others"}},
		} {
			f.ProcessGUIDs, f.Indices = []string{"web"}, []int{index}
			asList := f
			asList.Indices = []int{index, 1000}
			if got, want := read(listless.BBS.ActualLRPs(s.ctx, f)), read(s.BBS.ActualLRPs(s.ctx, asList)); !slices.Equal(got, want) {
				t.Errorf("of %+v got %v, want %v", f, got, want)
			}
			if got, want := read(listless.BBS.ResolvedLRPs(s.ctx, f)), read(s.BBS.ResolvedLRPs(s.ctx, asList)); !slices.Equal(got, want) {
				t.Errorf("of %+v got resolved %v, want %v", f, got, want)
			}
		}
	}
}

func TestARecordThatCannotBeDecodedHidesNoOtherAtItsIndex(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.step()
	for _, c := range s.cells {
		s.must(c.Evacuate(s.ctx))
		c.Poll(s.ctx)
	}
	if !s.store.Corrupt(storage.RecordKey{Kind: storage.ActualLRPRecord, GUID: "web", Index: 0, DefinitionID: "web"}) {
		t.Fatal("there is no such record")
	}
	var got []string
	for r, err := range s.BBS.ActualLRPs(s.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{"web"}, Indices: []int{0}}) {
		if got = append(got, describe(&r)); err != nil {
			got[len(got)-1] = fmt.Sprint(errors.Is(err, storage.ErrCorrupt))
		}
	}
	if want := []string{"true", "web/0 RUNNING EVACUATING cell-1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want an error and the other record", got)
	}
}

func TestAnEvacuatingCellKeepsItsInstancesUntilTheyAreReplaced(t *testing.T) {
	for _, strategy := range []lrp.UpdateStrategy{lrp.Rolling, lrp.Recreate} {
		t.Run(strategy.String(), func(t *testing.T) {
			s := newSystem(t, 2, nil)
			l := desired("web", 2)
			l.UpdateStrategy = strategy
			s.must(s.BBS.Desire(s.ctx, l))
			s.step()
			s.must(s.cells[0].Evacuate(s.ctx))
			least := 2
			for range 6 {
				s.cells[0].Poll(s.ctx)
				running := 0
				for r, err := range s.BBS.ResolvedLRPs(s.ctx, storage.ActualLRPFilter{States: []lrp.State{lrp.Running}}) {
					s.must(err)
					running += r.Index*0 + 1
				}
				least = min(least, running)
				s.step()
			}
			s.wantRecords("web/0 RUNNING ORDINARY cell-2", "web/1 RUNNING ORDINARY cell-2")
			if want := map[lrp.UpdateStrategy]int{lrp.Rolling: 2, lrp.Recreate: 1}[strategy]; least != want {
				t.Errorf("at least %d instances were RUNNING, want %d", least, want)
			}
		})
	}
}

func TestAnInstanceThatFitsNowhereSaysWhy(t *testing.T) {
	s := newSystem(t, 2, nil)
	l := desired("huge", 1)
	l.MemoryMB = 1 << 20
	s.must(s.BBS.Desire(s.ctx, l))
	s.step()
	for r, err := range s.BBS.ResolvedLRPs(s.ctx, storage.ActualLRPFilter{}) {
		if s.must(err); r.PlacementError.Reason != lrp.InsufficientResources {
			t.Errorf("got placement error %q", r.PlacementError)
		}
	}
}

func TestACellThatCannotBeDialledIsSilentAndSaysWhy(t *testing.T) {
	s := newSystem(t, 1, func(o *diego.Options) {
		o.Dial = func(bbs.CellPresence) (auction.CellClient, error) { return nil, errors.New("no such scheme") }
	})
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.must(s.Tick(s.ctx))
	plan, err := s.Auctioneer.Plan(s.ctx)
	s.must(err)
	if len(plan.Placements) != 0 {
		t.Errorf("got placements %v", plan.Placements)
	}
	for r, err := range s.BBS.ResolvedLRPs(s.ctx, storage.ActualLRPFilter{}) {
		if s.must(err); r.PlacementError.Reason != lrp.CellsUnreachable {
			t.Errorf("got placement error %q", r.PlacementError)
		}
	}
}

func TestDomainsSayWhetherTheyAreFresh(t *testing.T) {
	s := newSystem(t, 1, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.must(s.BBS.UpsertDomain(s.ctx, "platform", 0))
	s.must(s.BBS.UpsertDomain(s.ctx, "short", time.Minute))
	s.clock.Advance(time.Minute)
	got, err := s.BBS.Domains(s.ctx)
	s.must(err)
	want := []bbs.DomainStatus{
		{Domain: "apps"},
		{Domain: "platform", Fresh: true, Known: true},
		{Domain: "short", Known: true, ExpiresAt: s.clock.Now()},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A sickStore lists deployments and then fails.
type sickStore struct {
	storage.Store
	err error
}

func (s sickStore) View(ctx context.Context, f func(storage.Reader) error) error {
	return s.Store.View(ctx, func(r storage.Reader) error { return f(sickReader{r, s.err}) })
}

type sickReader struct {
	storage.Reader
	err error
}

func (r sickReader) Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	return func(yield func(*lrp.Deployment, error) bool) {
		if !yield(nil, r.err) {
			return
		}
		r.Reader.Deployments(ctx, f)(yield)
	}
}

func TestDomainsAreNotListedInPart(t *testing.T) {
	s := newSystem(t, 0, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	domains := func(err error) ([]bbs.DomainStatus, error) {
		b, bad := bbs.New(bbs.Options{Store: sickStore{s.store, err}})
		s.must(bad)
		return b.Domains(s.ctx)
	}
	if got, err := domains(errBroken); !errors.Is(err, errBroken) {
		t.Errorf("with a store that fails got %v, %v", got, err)
	}
	corrupt := &storage.CorruptError{Key: storage.DeploymentKey("old"), Err: errBroken}
	if got, err := domains(corrupt); err != nil || len(got) != 1 || got[0].Domain != "apps" {
		t.Errorf("with a deployment that cannot be decoded got %v, %v; want the other's domain", got, err)
	}
}

func TestWhatIsMissingOrInTheWayIsTheSameErrorForEveryCall(t *testing.T) {
	s := newSystem(t, 0, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
	same := func(errs ...error) {
		t.Helper()
		for _, err := range errs[1:] {
			for _, sentinel := range allSentinels {
				if got, want := errors.Is(err, sentinel), errors.Is(errs[0], sentinel); got != want && sentinel != task.ErrExists {
					t.Errorf("errors.Is(%q, %q) is %t, and %t for %q", err, sentinel, got, want, errs[0])
				}
			}
		}
	}
	_, readTask := s.BBS.Task(s.ctx, "none")
	same(readTask, s.BBS.CancelTask(s.ctx, "none"), s.BBS.ResolveTask(s.ctx, "none"), s.BBS.DeleteTask(s.ctx, "none"), s.BBS.FailTask(s.ctx, "none", "no reason"))
	if !errors.Is(readTask, task.ErrNotFound) || !errors.Is(readTask, storage.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound of both packages", readTask)
	}
	_, readDeployment := s.BBS.Deployment(s.ctx, "none")
	_, readDesired := s.BBS.DesiredLRP(s.ctx, "none")
	_, readStatus := s.BBS.RolloutStatus(s.ctx, "none")
	same(readDeployment, readDesired, readStatus, s.BBS.DeleteDeployment(s.ctx, "none"), s.BBS.UpdateDeployment(s.ctx, "none", lrp.Update{}))
	again := s.BBS.Desire(s.ctx, desired("web", 1))
	same(again, s.BBS.DesireTask(s.ctx, desiredTask("job", "")), s.BBS.CreateDeployment(s.ctx, lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: definition(),
	}))
	if !errors.Is(again, storage.ErrExists) || errors.Is(again, storage.ErrConflict) {
		t.Errorf("got %v, want ErrExists and nothing that says to try again", again)
	}
}

func TestCellsAreListedWithWhatTheyOffer(t *testing.T) {
	s := newSystem(t, 2, nil)
	p := bbs.CellPresence{CellID: "remote", Zone: "z9", PlacementTags: []string{"gpu"}}
	s.must(s.BBS.Announce(s.ctx, p, "first run", time.Minute))
	if err := s.BBS.Announce(s.ctx, p, "second run", time.Minute); !errors.Is(err, storage.ErrHeld) {
		t.Errorf("got %v, want ErrHeld: the first run is present", err)
	}
	got, err := s.BBS.Cells(s.ctx)
	s.must(err)
	if len(got) != 3 || got[2].Zone != "z9" || fmt.Sprint(got[2].PlacementTags) != "[gpu]" {
		t.Errorf("got %+v", got)
	}
}

func TestTasksRunAndAreDealtWithByTheirConsumer(t *testing.T) {
	s := newSystem(t, 2, nil)
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
	if err := s.BBS.DesireTask(s.ctx, desiredTask("job", "")); !errors.Is(err, task.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	s.step()
	s.step()
	if got := s.task("job"); got.State != task.Completed || got.Failed {
		t.Fatalf("got task %+v", got)
	}
	s.must(s.BBS.ResolveTask(s.ctx, "job"))
	s.must(s.BBS.DeleteTask(s.ctx, "job"))

	for _, c := range s.cells {
		c.TaskTakes = time.Hour
	}
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("long", "")))
	s.step()
	s.must(s.BBS.CancelTask(s.ctx, "long"))
	s.step()
	if got := s.task("long"); got.FailureReason != task.ReasonCancelled || s.containers() != 0 {
		t.Errorf("got task %+v in %d containers", got, s.containers())
	}
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("bad", "")))
	s.must(s.BBS.FailTask(s.ctx, "bad", "no reason"))
	if got := s.task("bad"); !got.Failed {
		t.Errorf("got task %+v", got)
	}
}

func TestCallsThatAreWrongChangeNothing(t *testing.T) {
	s := newSystem(t, 0, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	for name, test := range map[string]struct {
		err  error
		want error
	}{
		"desired twice":        {s.BBS.Desire(s.ctx, desired("web", 1)), storage.ErrExists},
		"desired wrongly":      {s.BBS.Desire(s.ctx, lrp.DesiredLRP{}), executor.ErrInvalid},
		"updated and absent":   {s.BBS.UpdateDeployment(s.ctx, "no", lrp.Update{}), storage.ErrNotFound},
		"deleted and absent":   {s.BBS.DeleteDeployment(s.ctx, "no"), storage.ErrNotFound},
		"activated and absent": {s.BBS.ActivateDefinition(s.ctx, "web", "no"), lrp.ErrRefused},
		"claimed by nobody":    {s.BBS.ClaimLRP(s.ctx, "web", 0, lrp.Claim{}), executor.ErrInvalid},
		"removed and absent": {s.BBS.RemoveLRP(s.ctx, "web", 0, lrp.Remove{
			Instance: lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}}), lrp.ErrCannotBeRemoved},
		"no such task": {s.BBS.CancelTask(s.ctx, "no"), task.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(test.err, test.want) {
				t.Errorf("got %v, want %v", test.err, test.want)
			}
		})
	}
	s.wantRecords("web/0 UNCLAIMED ORDINARY")
	if _, err := s.BBS.DesiredLRP(s.ctx, "no"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	for l, err := range s.BBS.DesiredLRPs(s.ctx, storage.DeploymentFilter{}) {
		if s.must(err); l.ProcessGUID != "web" || l.Instances != 1 {
			t.Errorf("got %+v", l)
		}
	}
}

func TestOnlyTheLeaderWrites(t *testing.T) {
	s := newSystem(t, 1, nil)
	standby := s.plane("plane-2", nil)
	s.must(standby.Tick(s.ctx))
	err := standby.BBS.Desire(s.ctx, desired("web", 1))
	var not *bbs.NotLeaderError
	if !errors.As(err, &not) || not.Leader != "plane-1" {
		t.Errorf("got %v, want a NotLeaderError that names plane-1", err)
	}
	if cells, err := standby.BBS.Cells(s.ctx); len(cells) != 1 || err != nil {
		t.Errorf("a standby does not read: %v, %v", cells, err)
	}
	s.must(s.Leadership.Resign(s.ctx))
	s.must(standby.Tick(s.ctx))
	s.must(standby.BBS.Desire(s.ctx, desired("web", 1)))
}

// signals tells when a gauge is set.
type signals struct {
	auction.NoMetrics
	leading chan struct{}
	once    sync.Once
}

func (s *signals) Gauge(name string, value float64, _ ...auction.Label) {
	if name == "leader" && value == 1 {
		s.once.Do(func() { close(s.leading) })
	}
}

func TestRunWorksUntilItsContextEnds(t *testing.T) {
	s := newSystem(t, 1, nil)
	s.must(s.Leadership.Resign(s.ctx))
	leading, performed := make(chan struct{}), make(chan struct{})
	plane := s.plane("plane-2", func(o *diego.Options) {
		o.Concurrency, o.Metrics = 0, &signals{leading: leading}
		dial := o.Dial
		o.Dial = func(p bbs.CellPresence) (auction.CellClient, error) {
			c, err := dial(p)
			return wrappedCell{c, func(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
				defer close(performed)
				return c.Perform(ctx, w)
			}}, err
		}
	})
	s.cells.ReportTo(plane.BBS)
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error)
	go func() { ended <- plane.Run(ctx) }()
	<-leading
	s.must(plane.BBS.Desire(ctx, desired("web", 1)))
	<-performed
	s.cells.Step(ctx)
	s.wantRecords("web/0 RUNNING ORDINARY cell-1")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if leading, _ := plane.Leadership.Leading(); leading {
		t.Error("it has ended and still leads")
	}
}

func TestAControlPlaneNeedsAStoreAWayToCellsAndAName(t *testing.T) {
	if _, err := diego.New(diego.Options{}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v, want a validation error", err)
	}
}
