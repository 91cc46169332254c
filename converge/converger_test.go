package converge_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A house is a store with a Converger, and what that asked for.
type house struct {
	*converge.Converger
	t     *testing.T
	now   time.Time
	store *memstore.Store
	// commit, unless it is nil, is called before every Commit of the
	// Converger; its error is the Commit's.
	commit  func(storage.Batch) error
	carry   func()
	effects [][]lrp.Effect
	tasks   []task.Effect
}

type houseStore struct {
	storage.Store
	h *house
}

func (s houseStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	if s.h.commit != nil {
		if err := s.h.commit(b); err != nil {
			return 0, err
		}
	}
	return s.Store.Commit(ctx, b)
}

func (h *house) Carry(lrps []lrp.Effect, tasks []task.Effect) {
	h.effects = append(h.effects, lrps)
	h.tasks = append(h.tasks, tasks...)
	if h.carry != nil {
		h.carry()
	}
}

func newConvergeHouse(t *testing.T) *house {
	h := &house{t: t, now: noon}
	h.store = memstore.New(&memstore.Options{Now: h.clock, Events: 1000})
	h.Converger = h.converger(converge.ConvergerOptions{})
	h.write(storage.Batch{Domains: []storage.DomainWrite{{Name: "apps"}}})
	h.present("cell-1", "cell-2", "cell-3")
	return h
}

func (h *house) clock() time.Time { return h.now }

// converger makes another one for the house.
func (h *house) converger(o converge.ConvergerOptions) *converge.Converger {
	h.t.Helper()
	o.Store, o.Effects, o.Now = houseStore{h.store, h}, h, h.clock
	o.Guard.Grace = cmp.Or(o.Guard.Grace, -1)
	c, err := converge.NewConverger(o)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *house) write(b storage.Batch) {
	h.t.Helper()
	if _, err := h.store.Commit(h.t.Context(), b); err != nil {
		h.t.Fatal(err)
	}
}

// present acquires the leases of cells for a minute.
func (h *house) present(ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		if _, err := h.store.Acquire(h.t.Context(), storage.Lease{Kind: storage.CellLease, Name: id, Owner: id}, time.Minute); err != nil {
			h.t.Fatal(err)
		}
	}
}

// gone releases the lease of a cell.
func (h *house) gone(id string) {
	h.t.Helper()
	l, err := h.store.Acquire(h.t.Context(), storage.Lease{Kind: storage.CellLease, Name: id, Owner: id}, time.Minute)
	if err == nil {
		err = h.store.Release(h.t.Context(), l)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) desire(guid string, instances int) {
	h.t.Helper()
	change, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: instances}, DefinitionID: "v1",
		Definition: lrp.Definition{RunInfo: executor.RunInfo{
			RootFS: "preloaded:linux",
			Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}},
		}},
	}, h.now)
	if err != nil {
		h.t.Fatal(err)
	}
	var b storage.Batch
	b.AddChange(change)
	h.write(b)
}

func (h *house) step(guid string, index int, c lrp.Command) {
	h.t.Helper()
	_, _, err := storage.ApplySlot(h.t.Context(), h.store, guid, index, nil, func(s lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		return lrp.Step(s, d, c, h.now, lrp.Policy{})
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// run starts the instance at an index on a cell.
func (h *house) run(guid string, index int, cell string) {
	h.t.Helper()
	me := lrp.InstanceKey{InstanceGUID: fmt.Sprintf("%s-%d-on-%s", guid, index, cell), CellID: cell}
	h.step(guid, index, lrp.Start{Domain: "apps", Instance: me})
}

func (h *house) pass() converge.Pass {
	h.t.Helper()
	p, err := h.Pass(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// records are such as "web/0 RUNNING SUSPECT cell-1".
func (h *house) records() (list []string) {
	h.t.Helper()
	for r, err := range h.store.ActualLRPs(h.t.Context(), storage.ActualLRPFilter{}) {
		if err != nil {
			list = append(list, "unreadable")
			continue
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s/%d %s %s %s", r.ProcessGUID, r.Index, r.State, r.Presence, r.CellID)))
	}
	return list
}

func (h *house) wantRecords(want ...string) {
	h.t.Helper()
	if got := h.records(); !slices.Equal(got, want) {
		h.t.Errorf("got records\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestAPassMakesWhatIsMissingAndAsksForAllStartsAtOnce(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 2)
	h.desire("worker", 1)
	p := h.pass()
	h.wantRecords("web/0 UNCLAIMED ORDINARY", "web/1 UNCLAIMED ORDINARY", "worker/0 UNCLAIMED ORDINARY")
	if len(h.effects) != 1 || len(h.effects[0]) != 3 || p.Starts != 3 {
		t.Errorf("got batches of effects %v, want one of 3 starts", h.effects)
	}
	if want := []converge.ReasonCount{{Reason: converge.InstanceMissing, Count: 3}}; !slices.Equal(p.Actions, want) {
		t.Errorf("got actions %v, want %v", p.Actions, want)
	}
	if p = h.pass(); len(p.Actions) != 0 {
		t.Errorf("a second pass acts again: %v", p.Actions)
	}
	h.now = h.now.Add(30 * time.Second)
	if p = h.pass(); p.Starts != 3 {
		t.Errorf("got %d starts after 30 s without a cell, want 3", p.Starts)
	}
}

func TestAFailureOfOneSlotDoesNotStopTheRest(t *testing.T) {
	h := newConvergeHouse(t)
	for _, guid := range []string{"a", "b", "c"} {
		h.desire(guid, 1)
	}
	broken := errors.New("broken page")
	h.commit = func(b storage.Batch) error {
		if len(b.ActualLRPs) > 0 && b.ActualLRPs[0].After.ProcessGUID == "b" {
			return broken
		}
		return nil
	}
	p, err := h.Pass(t.Context())
	if !errors.Is(err, broken) || p.Failed != 1 {
		t.Errorf("got %v and %d failed, want the store's error once", err, p.Failed)
	}
	h.wantRecords("a/0 UNCLAIMED ORDINARY", "c/0 UNCLAIMED ORDINARY")
}

func TestALeaderThatWasReplacedEndsItsPassAtOnce(t *testing.T) {
	h := newConvergeHouse(t)
	for i := range 1000 {
		h.desire(fmt.Sprintf("process-%03d", i), 1)
	}
	commits := 0
	var mu sync.Mutex
	h.commit = func(storage.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		commits++
		return &storage.FencedError{}
	}
	if _, err := h.Pass(t.Context()); !errors.Is(err, storage.ErrFenced) {
		t.Errorf("got %v, want ErrFenced", err)
	}
	if commits > 100 {
		t.Errorf("it tried %d commits after it was replaced", commits)
	}
	h.wantRecords()
}

func TestAVanishedCellMakesItsInstancesSuspectAndFailsItsTasksOnce(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 1)
	h.run("web", 0, "cell-1")
	for _, c := range []task.Command{
		task.Desire{GUID: "job", Domain: "apps", Definition: task.Definition{
			RunInfo:               executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/job", User: "vcap"}}},
			CompletionCallbackURL: "http://consumer.example/done",
		}},
		task.Start{CellID: "cell-1", InstanceGUID: "job-1"},
	} {
		if _, _, err := storage.ApplyTask(t.Context(), h.store, "job", nil, func(tk *task.Task) (task.Decision, error) {
			return task.Step(tk, c, h.now, task.Policy{})
		}); err != nil {
			t.Fatal(err)
		}
	}
	h.pass()
	h.now = h.now.Add(45 * time.Second)
	h.present("cell-2", "cell-3")
	h.now = h.now.Add(20 * time.Second)
	for range 2 {
		h.pass()
	}
	h.wantRecords("web/0 UNCLAIMED ORDINARY", "web/0 RUNNING SUSPECT cell-1")
	if got, err := h.store.Task(t.Context(), "job"); err != nil || got.State != task.Running {
		t.Errorf("got task %+v, %v", got, err)
	}
	h.now = h.now.Add(time.Minute)
	h.present("cell-2", "cell-3")
	for range 2 {
		h.pass()
	}
	got, err := h.store.Task(t.Context(), "job")
	if err != nil || got.State != task.Completed || got.FailureReason != task.ReasonCellMissing {
		t.Errorf("got task %+v, %v", got, err)
	}
	if len(h.tasks) != 1 || h.tasks[0].Kind != task.CallBack {
		t.Errorf("got task effects %v, want one callback", h.tasks)
	}
	h.present("cell-1")
	h.pass()
	h.wantRecords("web/0 RUNNING ORDINARY cell-1")
}

func TestLosingAllCellsAtOnceChangesNothing(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 3)
	for i := range 3 {
		h.run("web", i, fmt.Sprintf("cell-%d", i+1))
	}
	h.pass()
	before := h.records()
	h.now = h.now.Add(2 * time.Minute)
	if p := h.pass(); p.Trusted || p.Cells != 0 {
		t.Errorf("got %d cells, trusted %t; want none, not trusted", p.Cells, p.Trusted)
	}
	h.wantRecords(before...)
}

// settledHouse has an instance on each of four cells, and a guard that has known
// them for long enough.
func settledHouse(t *testing.T) *house {
	h := newConvergeHouse(t)
	h.Converger = h.converger(converge.ConvergerOptions{Guard: converge.Guard{Grace: time.Minute}})
	h.present("cell-4")
	h.desire("web", 4)
	for i := range 4 {
		h.run("web", i, fmt.Sprintf("cell-%d", i+1))
	}
	for range 4 {
		h.pass()
		h.now = h.now.Add(20 * time.Second)
		h.present("cell-1", "cell-2", "cell-3", "cell-4")
	}
	return h
}

var (
	wellWeb       = []string{"web/0 RUNNING ORDINARY cell-1", "web/1 RUNNING ORDINARY cell-2", "web/2 RUNNING ORDINARY cell-3", "web/3 RUNNING ORDINARY cell-4"}
	webWithoutOne = append([]string{"web/0 UNCLAIMED ORDINARY", "web/0 RUNNING SUSPECT cell-1"}, wellWeb[1:]...)
)

// Three of four cells go one by one. The first is missing at once, and its
// replacement is on its way; with the third they are too many.
func TestTheFirstLossesOfManyAreTakenBack(t *testing.T) {
	h := settledHouse(t)
	h.gone("cell-1")
	h.pass()
	h.wantRecords(webWithoutOne...)
	h.now = h.now.Add(10 * time.Second)
	h.gone("cell-2")
	h.pass()
	h.now = h.now.Add(10 * time.Second)
	h.gone("cell-3")
	p := h.pass()
	h.wantRecords(wellWeb...)
	if want := []converge.ReasonCount{{Reason: converge.LossDoubted, Count: 2}}; !slices.Equal(p.Actions, want) {
		t.Errorf("got actions %v, want %v", p.Actions, want)
	}
	if want := []string{"cell-1", "cell-2", "cell-3"}; p.Trusted || !slices.Equal(p.Doubted, want) {
		t.Errorf("%v are doubted (trusted: %t), want %v", p.Doubted, p.Trusted, want)
	}
	h.now = h.now.Add(39 * time.Second)
	h.present("cell-4")
	h.pass()
	h.wantRecords(wellWeb...)
	h.now = h.now.Add(time.Second) // a minute after the first went
	h.pass()
	h.wantRecords(webWithoutOne...)
}

func TestAProcessThatLeadsAgainBelievesNoLossForTheGrace(t *testing.T) {
	h := settledHouse(t)
	h.gone("cell-1")
	h.Forget()
	if p := h.pass(); !p.Full || p.Trusted {
		t.Errorf("the pass was full: %t, and trusted the list: %t", p.Full, p.Trusted)
	}
	h.wantRecords(wellWeb...)
	h.now = h.now.Add(time.Minute - 1)
	h.present("cell-2", "cell-3", "cell-4")
	h.pass()
	h.wantRecords(wellWeb...)
	h.now = h.now.Add(1)
	h.pass()
	h.wantRecords(webWithoutOne...)
}

func TestRecordsThatCannotBeDecodedAreQuarantined(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 2)
	h.run("web", 0, "cell-1")
	h.run("web", 1, "cell-2")
	key := storage.RecordKey{Kind: storage.ActualLRPRecord, GUID: "web", Index: 1, DefinitionID: "v1"}
	if !h.store.Corrupt(key) {
		t.Fatal("there is no such record")
	}
	if p := h.pass(); !slices.Equal(p.Quarantined, []storage.RecordKey{key}) {
		t.Errorf("got %v in quarantine, want %v", p.Quarantined, key)
	}
	h.pass()
	h.wantRecords("web/0 RUNNING ORDINARY cell-1", "web/1 UNCLAIMED ORDINARY")
}

func TestInstancesOfAQuarantinedDeploymentRunOn(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 1)
	h.run("web", 0, "cell-1")
	if !h.store.Corrupt(storage.DeploymentKey("web")) {
		t.Fatal("there is no such record")
	}
	for range 3 {
		h.pass()
		h.now = h.now.Add(time.Second)
	}
	h.wantRecords("web/0 RUNNING ORDINARY cell-1")
	if len(h.store.Quarantined()) != 1 {
		t.Errorf("got %v in quarantine, want the deployment", h.store.Quarantined())
	}
	for _, effects := range h.effects {
		if len(effects) > 0 {
			t.Errorf("got effects %v, want none", effects)
		}
	}
	h.desire("web", 1)
	h.write(storage.Batch{Domains: []storage.DomainWrite{{Name: "apps"}}})
	h.pass()
	h.wantRecords("web/0 RUNNING ORDINARY cell-1")
}

func TestDefinitionsThatNothingUsesArePruned(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 1)
	h.run("web", 0, "cell-1")
	id := "v2"
	if _, _, err := storage.ApplyDeployment(t.Context(), h.store, "web", nil, func(d *lrp.Deployment) (lrp.Change, error) {
		next := d.Definitions["v1"]
		return d.Update(lrp.Update{DefinitionID: &id, Definition: &next})
	}); err != nil {
		t.Fatal(err)
	}
	h.pass() // v2 gets its record
	h.step("web", 0, lrp.Start{DefinitionID: "v2", Instance: lrp.InstanceKey{InstanceGUID: "new", CellID: "cell-2"}})
	h.step("web", 0, lrp.Remove{DefinitionID: "v1", Instance: lrp.InstanceKey{InstanceGUID: "web-0-on-cell-1", CellID: "cell-1"}})
	h.pass()
	d, err := h.store.Deployment(t.Context(), "web")
	if err != nil || !slices.Equal(d.DefinitionIDs(), []string{"v2"}) {
		t.Errorf("got definitions %v, %v; want v2 only", d.DefinitionIDs(), err)
	}
}

func TestAProcessThatChangesAllTheTimeIsPrunedByALaterPass(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 1)
	h.run("web", 0, "cell-1")
	if _, _, err := storage.ApplyDeployment(t.Context(), h.store, "web", nil, func(d *lrp.Deployment) (lrp.Change, error) {
		id, next := "v2", d.Definitions["v1"]
		return d.Update(lrp.Update{DefinitionID: &id, Definition: &next})
	}); err != nil {
		t.Fatal(err)
	}
	h.pass()
	h.step("web", 0, lrp.Start{DefinitionID: "v2", Instance: lrp.InstanceKey{InstanceGUID: "new", CellID: "cell-2"}})
	h.step("web", 0, lrp.Remove{DefinitionID: "v1", Instance: lrp.InstanceKey{InstanceGUID: "web-0-on-cell-1", CellID: "cell-1"}})
	conflicts := 0
	h.commit = func(storage.Batch) error {
		conflicts++
		return storage.ErrConflict
	}
	if p, err := h.Pass(t.Context()); err != nil || p.Failed > 0 || conflicts == 0 {
		t.Errorf("got %v and %d failed after %d conflicts, want no failure", err, p.Failed, conflicts)
	}
	h.commit = nil
	h.pass()
	d, err := h.store.Deployment(t.Context(), "web")
	if err != nil || !slices.Equal(d.DefinitionIDs(), []string{"v2"}) {
		t.Errorf("got definitions %v, %v; want v2 only", d.DefinitionIDs(), err)
	}
}

func TestPassesDoNotOverlap(t *testing.T) {
	h := newConvergeHouse(t)
	inside, goOn := make(chan struct{}), make(chan struct{})
	h.carry = func() { inside <- struct{}{}; <-goOn }
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = h.Pass(context.Background())
	}()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Pass(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v: a second pass began", err)
	}
	close(goOn)
	<-done
}

func TestATriggerBeginsAPassAtOnce(t *testing.T) {
	h := newConvergeHouse(t)
	passes := make(chan struct{})
	h.carry = func() { passes <- struct{}{} }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	<-passes // the first one needs no trigger
	h.Trigger()
	<-passes
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestATickMakesAPassWhenOneIsDue(t *testing.T) {
	h := newConvergeHouse(t)
	tick := func(want bool, when string) {
		t.Helper()
		if _, ran, err := h.Tick(t.Context()); ran != want || err != nil {
			t.Errorf("%s: a pass was made: %t, %v; want %t", when, ran, err, want)
		}
	}
	tick(true, "the first time")
	h.now = h.now.Add(29 * time.Second)
	tick(false, "after 29 s")
	h.Trigger()
	tick(true, "after a trigger")
	h.now = h.now.Add(30 * time.Second)
	tick(true, "30 s later")
}

func TestAPassIsDueWhenTheFirstBackOffEnds(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 1)
	for range 4 { // the fourth crash is not followed by a restart at once
		h.run("web", 0, "cell-1")
		h.step("web", 0, lrp.Crash{Instance: lrp.InstanceKey{InstanceGUID: "web-0-on-cell-1", CellID: "cell-1"}})
	}
	// It restarts a minute later. Without that the passes would be half a minute apart.
	h.now = h.now.Add(10 * time.Second)
	h.pass()
	for _, step := range []struct {
		after  time.Duration
		ran    bool
		starts int
	}{{29 * time.Second, false, 0}, {time.Second, true, 0}, {19 * time.Second, false, 0}, {time.Second, true, 1}} {
		h.now = h.now.Add(step.after)
		if p, ran, err := h.Tick(t.Context()); ran != step.ran || p.Starts != step.starts || err != nil {
			t.Errorf("%v later a pass was made: %t, %d starts, %v; want %+v", step.after, ran, p.Starts, err, step)
		}
	}
}

// A process for which a pass has something to do is looked at in every pass. The next
// pass must not wait for its usual time all the same if another index is due before.
func TestAPassIsDueForEachIndexOfAProcess(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 2)
	unclaim := func(index int) {
		h.run("web", index, "cell-1")
		h.step("web", index, lrp.Crash{Instance: lrp.InstanceKey{InstanceGUID: fmt.Sprintf("web-%d-on-cell-1", index), CellID: "cell-1"}})
	}
	unclaim(0)
	h.now = h.now.Add(2 * time.Second)
	unclaim(1)
	h.pass()
	for _, step := range []struct {
		after  time.Duration
		ran    bool
		starts int
	}{{28 * time.Second, true, 1}, {time.Second, false, 0}, {time.Second, true, 2}} {
		h.now = h.now.Add(step.after)
		if p, ran, err := h.Tick(t.Context()); ran != step.ran || p.Starts != step.starts || err != nil {
			t.Errorf("%v later a pass was made: %t, %d starts, %v; want %+v", step.after, ran, p.Starts, err, step)
		}
	}
}

func TestWhatIsForeseenIsNotLookedAtMoreThanOnceASecond(t *testing.T) {
	h := newConvergeHouse(t)
	h.desireTask("job")
	h.now = h.now.Add(30*time.Second - time.Millisecond)
	h.pass()
	for _, step := range []struct {
		after time.Duration
		ran   bool
	}{{time.Millisecond, false}, {998 * time.Millisecond, false}, {time.Millisecond, true}} {
		h.now = h.now.Add(step.after)
		if _, ran, err := h.Tick(t.Context()); ran != step.ran || err != nil {
			t.Errorf("%v later a pass was made: %t, %v", step.after, ran, err)
		}
	}
}

// counted are figures by name and labels.
type counted map[string]float64

func (c counted) Count(name string, n int64, l ...auction.Label) {
	c[fmt.Sprint(name, l)] += float64(n)
}
func (c counted) Gauge(name string, v float64, l ...auction.Label) {
	c[fmt.Sprint(name, l)] = v
}
func (counted) Observe(string, float64, ...auction.Label) {}

func TestAPassPublishesWhatItSaw(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 2)
	h.run("web", 0, "cell-1")
	figures := counted{}
	c, err := converge.NewConverger(converge.ConvergerOptions{
		Store: h.store, Effects: h, Now: func() time.Time { return h.now }, Metrics: figures, Concurrency: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"lrps[{state RUNNING} {presence ORDINARY}]":                          1,
		"domain_fresh[{domain apps}]":                                        1,
		"cells_present[]":                                                    3,
		"convergence_actions_total[{reason no instance at a desired index}]": 1,
		"convergence_passed_at_seconds[]":                                    float64(h.now.Unix()),
	} {
		if figures[name] != want {
			t.Errorf("%s is %v, want %v", name, figures[name], want)
		}
	}
}

func TestAConvergerNeedsAStoreAndEffects(t *testing.T) {
	if _, err := converge.NewConverger(converge.ConvergerOptions{}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v, want a validation error", err)
	}
}
