package celltest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

const (
	cellID  = "cell-1"
	process = "web"
	job     = "job"
	domain  = "celltest"

	// patience is how long a cell may take for what is not urgent. A cell that
	// looks at everything every 30 s has looked four times by then.
	patience = 2 * time.Minute
	// soon is how long it may take for what an answer of the BBS demands.
	soon = 15 * time.Second
)

// size is what every container asks for.
var size = executor.Resources{MemoryMB: 64, DiskMB: 64}

// other is an instance on another cell, which the suite plays.
var other = lrp.InstanceKey{InstanceGUID: "elsewhere-1", CellID: "cell-2"}

// A fixture is one case's cell and the system around it.
type fixture struct {
	testing.TB
	Harness
	ctx   context.Context
	bbs   *recorder
	store *memstore.Store
}

func newFixture(t testing.TB, open Open, c testCase) *fixture {
	t.Helper()
	f := &fixture{TB: t, ctx: t.Context()}
	f.store = memstore.New(&memstore.Options{Now: f.now})
	plain, err := bbs.New(bbs.Options{Store: f.store, Effects: noEffects{}, Now: f.now})
	if err != nil {
		t.Fatal(err)
	}
	f.bbs = &recorder{BBS: plain, lose: map[rep.Step]loss{}}
	f.Harness = open(t, Options{CellID: cellID, BBS: f.bbs, StartsIn: c.startsIn})
	f.until("State says that the cell takes work", func() bool { return !f.state().Settling })
	return f
}

// noEffects carries out nothing: the case hands out work and stops it.
type noEffects struct{}

func (noEffects) Carry([]lrp.Effect, []task.Effect) {}

// now is the time on the cell's clock.
func (f *fixture) now() time.Time {
	if f.Harness.Now == nil {
		return time.Now()
	}
	return f.Harness.Now()
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// until lets time pass until the cell has done what it owes.
func (f *fixture) until(what string, so func() bool) {
	f.Helper()
	f.within(patience, what, so)
}

func (f *fixture) within(limit time.Duration, what string, so func() bool) {
	f.Helper()
	const step = time.Second
	for waited := time.Duration(0); waited < limit; waited += step {
		if so() {
			return
		}
		f.Pass(step)
	}
	if !so() {
		f.Fatalf("%v have passed, and this has not come about: %s\n%s", limit, what, f.bbs.account())
	}
}

func (f *fixture) state() auction.CellState {
	f.Helper()
	s, err := f.Cell.State(f.ctx)
	f.must(err)
	return s
}

// inventory is nil unless the cell can tell.
func (f *fixture) inventory() []string {
	f.Helper()
	c, tells := f.Cell.(auction.InventoryClient)
	if !tells {
		return nil
	}
	i, err := c.Inventory(f.ctx)
	f.must(err)
	if i.CellID != cellID {
		f.Errorf("the inventory is that of %q, want %q", i.CellID, cellID)
	}
	return i.Containers
}

// ifCordoned is a check of cells that can be cordoned.
func ifCordoned(check func(*fixture, rep.Cordoner)) func(*fixture) {
	return func(f *fixture) {
		if c, can := f.Cell.(rep.Cordoner); can {
			check(f, c)
		}
	}
}

// empty reports whether the cell has nothing, as far as it says.
func (f *fixture) empty() bool {
	f.Helper()
	s := f.state()
	return len(s.LRPs)+len(s.Tasks)+len(f.inventory()) == 0
}

// desire makes a process with so many instances, which are on no cell.
func (f *fixture) desire(instances int) {
	f.Helper()
	f.must(f.bbs.Desire(f.ctx, lrp.DesiredLRP{
		ProcessGUID: process, Domain: domain, Settings: lrp.Settings{Instances: instances},
		Definition: lrp.Definition{Resources: size, RunInfo: f.RunInfo},
	}))
}

// instance is the request for the instance at an index.
func (f *fixture) instance(index int) auction.Item {
	f.Helper()
	d, err := f.bbs.BBS.Deployment(f.ctx, process)
	f.must(err)
	item, err := auction.NewLRP(d, lrp.Key{ProcessGUID: process, DefinitionID: d.ActiveDefinitionID, Index: index, Domain: domain}, f.now())
	f.must(err)
	return item
}

// task makes a task and returns the request for it.
func (f *fixture) task() auction.Item {
	f.Helper()
	f.must(f.bbs.DesireTask(f.ctx, task.Desire{GUID: job, Domain: domain, Definition: task.Definition{Resources: size, RunInfo: f.RunInfo}}))
	return auction.NewTask(f.taskRecord(), f.now())
}

func (f *fixture) taskRecord() *task.Task {
	f.Helper()
	t, err := f.bbs.BBS.Task(f.ctx, job)
	f.must(err)
	return t
}

// perform hands work to the cell, which must take all of it.
func (f *fixture) perform(items ...auction.Item) {
	f.Helper()
	if rejections := f.offer(items...); len(rejections) > 0 {
		f.Fatalf("the cell refuses %+v", rejections)
	}
}

func (f *fixture) offer(items ...auction.Item) []auction.Rejection {
	f.Helper()
	rejections, err := f.Cell.Perform(f.ctx, auction.Work{CellID: cellID, Items: items})
	f.must(err)
	return rejections
}

// records are those at index 0.
func (f *fixture) records() []lrp.ActualLRP {
	f.Helper()
	s, err := f.bbs.BBS.Slot(f.ctx, process, 0)
	f.must(err)
	return s.Records
}

// record finds the record of an instance at index 0.
func (f *fixture) record(state lrp.State, presence lrp.Presence, cell string) (lrp.ActualLRP, bool) {
	f.Helper()
	for _, r := range f.records() {
		if r.State == state && r.Presence == presence && r.CellID == cell {
			return r, true
		}
	}
	return lrp.ActualLRP{}, false
}

// run brings one instance to run on the cell.
func (f *fixture) run() lrp.ActualLRP {
	f.Helper()
	f.desire(1)
	f.perform(f.instance(0))
	return f.running()
}

// running waits until the instance at index 0 runs on the cell.
func (f *fixture) running() (r lrp.ActualLRP) {
	f.Helper()
	f.until("the instance is RUNNING on the cell", func() (so bool) {
		r, so = f.record(lrp.Running, lrp.Ordinary, cellID)
		return so
	})
	return r
}

// runTask brings the task to run on the cell.
func (f *fixture) runTask() *task.Task {
	f.Helper()
	f.perform(f.task())
	return f.taskRunning()
}

func (f *fixture) taskRunning() *task.Task {
	f.Helper()
	f.until("the task runs on the cell", func() bool {
		t := f.taskRecord()
		return t.State == task.Running && t.CellID == cellID && f.Begun(t.InstanceGUID) > 0
	})
	return f.taskRecord()
}

// startElsewhere lets the other cell run the instance at index 0.
func (f *fixture) startElsewhere() {
	f.Helper()
	f.must(f.bbs.BBS.StartLRP(f.ctx, process, 0, lrp.Start{
		DefinitionID: f.instance(0).DefinitionID, Domain: domain, Instance: other, NetInfo: lrp.NetInfo{Address: "192.0.2.2"}}))
}

// losesCell marks the records of the cell as suspect, as convergence does.
func (f *fixture) losesCell() {
	f.Helper()
	_, _, err := storage.ApplySlot(f.ctx, f.store, process, 0, nil, func(s lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		return lrp.Step(s, d, lrp.MarkSuspect{CellID: cellID}, f.now(), lrp.Policy{})
	})
	f.must(err)
}

// onCall runs once, before the BBS decides on the first call of a step.
func (f *fixture) onCall(step rep.Step, do func(call)) {
	var once sync.Once
	f.bbs.set(func() {
		f.bbs.before = func(c call) {
			if c.step == step {
				once.Do(func() { do(c) })
			}
		}
	})
}

// accepted are the calls of a step that the BBS carried out.
func (f *fixture) accepted(step rep.Step) []call {
	return f.bbs.calls(step, func(c call) bool { return c.accepted })
}

// all are the calls of a step.
func (f *fixture) all(step rep.Step) []call {
	return f.bbs.calls(step, func(call) bool { return true })
}

// never fails if the cell has made a call of a step.
func (f *fixture) never(step rep.Step) {
	f.Helper()
	if list := f.all(step); len(list) > 0 {
		f.Errorf("the cell must not %v, and has: %v", step, list)
	}
}

// begunOnce fails unless the work of an instance has begun exactly once.
func (f *fixture) begunOnce(instanceGUID string) {
	f.Helper()
	if n := f.Begun(instanceGUID); n != 1 {
		f.Errorf("the work of %s has begun %d times, want once", instanceGUID, n)
	}
}

// neverBegun fails if the work of any instance that the cell named has begun.
func (f *fixture) neverBegun(step rep.Step) {
	f.Helper()
	list := f.all(step)
	if len(list) == 0 {
		f.Errorf("the cell has not asked to %v\n%s", step, f.bbs.account())
	}
	for _, c := range list {
		if n := f.Begun(c.instance); n != 0 {
			f.Errorf("the work of %s has begun %d times, want never", c.instance, n)
		}
	}
}

// holds reports whether State lists an instance.
func (f *fixture) holds(key lrp.Key) bool {
	f.Helper()
	return slices.Contains(f.state().LRPs, key)
}
