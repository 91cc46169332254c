package system_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A town is a control plane and real cells, each a rep over a manager over a
// scripted backend, in virtual time.
type town struct {
	*diego.ControlPlane
	t      *testing.T
	ctx    context.Context
	clock  *memcell.Clock
	store  *memstore.Store
	door   *door // of all cells
	cells  []*townCell
	change func(*rep.Options)
}

type townCell struct {
	*rep.Rep
	id      string
	run     int
	off     bool
	owner   string // if all its runs have the same
	fault   func(op scripted.Op, guid string) error
	delay   map[manager.JobKind]time.Duration
	backend *scripted.Backend
	manager *manager.Manager
}

// newTown makes one that leads and whose cells are known. change may change
// the options of the reps, and more those of the control plane.
func newTown(t *testing.T, cells int, change func(*rep.Options), more ...func(*diego.Options)) *town {
	t.Helper()
	w := &town{t: t, ctx: t.Context(), clock: memcell.NewClock(), change: change}
	w.store = memstore.New(&memstore.Options{Now: w.clock.Now})
	var err error
	o := diego.Options{Store: w.store, Dial: w.dial, Owner: "plane-1", Now: w.clock.Now, Concurrency: 1, Guard: converge.Guard{Grace: -1}}
	for _, change := range more {
		change(&o)
	}
	w.ControlPlane, err = diego.New(o)
	w.must(err)
	w.door = &door{bbs: w.BBS, loses: map[string]bool{}}
	for i := range cells {
		c := &townCell{id: fmt.Sprintf("cell-%d", i+1), delay: map[manager.JobKind]time.Duration{}}
		c.backend = scripted.New(scripted.Options{Now: w.clock.Now, Fault: func(op scripted.Op, guid string) error {
			if c.fault == nil {
				return nil
			}
			return c.fault(op, guid)
		}})
		w.cells = append(w.cells, c)
		w.boot(c)
	}
	w.step()
	return w
}

// boot starts the daemon of a cell on what it finds.
func (w *town) boot(c *townCell) {
	w.t.Helper()
	c.run++
	c.off = false
	var err error
	c.manager, err = manager.New(w.ctx, manager.Options{
		Backend: c.backend, Now: w.clock.Now, Delay: func(j manager.Job) time.Duration { return c.delay[j.Kind] },
		Capacity: executor.Capacity{MemoryMB: 1 << 16, DiskMB: 1 << 16, Containers: 100},
	})
	w.must(err)
	announcer, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{
		Store: w.store, Presence: bbs.CellPresence{CellID: c.id}, Owner: cmp.Or(c.owner, fmt.Sprintf("%s run %d", c.id, c.run)),
	})
	w.must(err)
	guids := 0
	o := rep.Options{
		CellID: c.id, BBS: w.door, Executor: c.manager, Announcer: announcer, RootFSProviders: []string{"preloaded:linux"},
		Concurrency: 1, Now: w.clock.Now, NewGUID: func() string { guids++; return fmt.Sprintf("%s-%d-%d", c.id, c.run, guids) },
	}
	if w.change != nil {
		w.change(&o)
	}
	c.Rep, err = rep.New(o)
	w.must(err)
}

// kill ends the daemon of a cell in the middle of everything.
func (c *townCell) kill() {
	c.off = true
	c.backend = c.backend.Restart()
}

// states are such as "cell-1-1-1 RUNNING".
func (c *townCell) states() (list []string) {
	for _, k := range c.manager.List() {
		list = append(list, k.GUID+" "+k.State.String())
	}
	return list
}

func (w *town) dial(p bbs.CellPresence) (auction.CellClient, error) {
	i := slices.IndexFunc(w.cells, func(c *townCell) bool { return c.id == p.CellID })
	if i < 0 || w.cells[i].off {
		return nil, errors.New("the cell cannot be reached")
	}
	return w.cells[i], nil
}

func (w *town) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// step lets everybody do once what is due.
func (w *town) step() {
	w.t.Helper()
	for _, c := range w.cells {
		if !c.off {
			c.manager.Tick(w.ctx)
			c.Tick(w.ctx)
			c.manager.Tick(w.ctx)
		}
	}
	w.must(w.Tick(w.ctx))
}

// pass lets time pass, in steps of a second.
func (w *town) pass(d time.Duration) {
	w.t.Helper()
	for range int(d / time.Second) {
		w.clock.Advance(time.Second)
		w.step()
	}
}

// until lets time pass until something is true, for a day at most.
func (w *town) until(what string, done func() bool) (took time.Duration) {
	w.t.Helper()
	for took < 24*time.Hour {
		if done() {
			return took
		}
		w.pass(time.Second)
		took += time.Second
	}
	w.t.Fatalf("after a day: not %s; the records are %q", what, w.records())
	return 0
}

func (w *town) records() (list []string) {
	w.t.Helper()
	for r, err := range w.store.ActualLRPs(w.ctx, storage.ActualLRPFilter{}) {
		w.must(err)
		list = append(list, describe(&r))
	}
	return list
}

func (w *town) wantRecords(want ...string) {
	w.t.Helper()
	if got := w.records(); !slices.Equal(got, want) {
		w.t.Errorf("got records %q, want %q", got, want)
	}
}

func (w *town) wantEmpty(cells ...*townCell) {
	w.t.Helper()
	for _, c := range cells {
		if list := c.states(); len(list) > 0 {
			w.t.Errorf("%s still has %q", c.id, list)
		}
	}
}

func (w *town) task(guid string) *task.Task {
	w.t.Helper()
	t, err := w.BBS.Task(w.ctx, guid)
	w.must(err)
	return t
}

// doing is a definition whose process carries out statements.
func doing(statements ...string) lrp.Definition {
	d := definition()
	d.Action = executor.Action{Run: &executor.RunAction{Path: scripted.Path, Args: statements, User: "vcap"}}
	return d
}

func (w *town) desire(guid string, instances int, d lrp.Definition) {
	w.t.Helper()
	w.must(w.BBS.Desire(w.ctx, lrp.DesiredLRP{ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: instances}, Definition: d}))
}

func (w *town) desireTask(guid string, d lrp.Definition, resultFile string) {
	w.t.Helper()
	w.must(w.BBS.DesireTask(w.ctx, task.Desire{GUID: guid, Domain: "apps", Definition: task.Definition{RunInfo: d.RunInfo, ResultFile: resultFile}}))
}

func TestADesiredLRPRunsInContainersOfRealCells(t *testing.T) {
	w := newTown(t, 2, nil)
	w.desire("web", 2, definition())
	w.pass(5 * time.Second)
	w.wantRecords("web/0 RUNNING ORDINARY cell-1", "web/1 RUNNING ORDINARY cell-2")
	one := 1
	w.must(w.BBS.UpdateDeployment(w.ctx, "web", lrp.Update{Instances: &one}))
	w.pass(5 * time.Second)
	w.wantRecords("web/0 RUNNING ORDINARY cell-1")
	w.wantEmpty(w.cells[1])
}

func TestATaskRunsOnceAndItsResultIsRead(t *testing.T) {
	w := newTown(t, 1, nil)
	w.desireTask("job", doing("wait 3s", "write /result 42"), "/result")
	w.pass(10 * time.Second)
	if got := w.task("job"); got.State != task.Completed || got.Failed || got.Result != "42" {
		t.Errorf("the task is %+v", got)
	}
	w.wantEmpty(w.cells[0])
}

func TestACancelledTaskEndsItsContainer(t *testing.T) {
	w := newTown(t, 1, nil)
	w.desireTask("job", doing("wait forever"), "")
	w.pass(5 * time.Second)
	w.must(w.BBS.CancelTask(w.ctx, "job"))
	w.pass(2 * time.Second)
	if got := w.task("job"); got.FailureReason != task.ReasonCancelled {
		t.Errorf("the task is %+v", got)
	}
	w.wantEmpty(w.cells[0])
}

func TestWhatHappensWhileTheBBSIsAwayIsToldAfterwards(t *testing.T) {
	w := newTown(t, 1, nil)
	w.desire("web", 1, doing("wait 10s", "exit 3"))
	w.desire("steady", 1, doing("wait forever"))
	w.desireTask("job", doing("wait 10s", "write /result 42"), "/result")
	w.pass(5 * time.Second)
	w.wantRecords("steady/0 RUNNING ORDINARY cell-1", "web/0 RUNNING ORDINARY cell-1")
	w.door.shut = true
	w.pass(30 * time.Second)
	// Nobody has accepted the ends, so nothing is deleted; what runs, runs.
	if got := strings.Join(w.cells[0].states(), ", "); strings.Count(got, "COMPLETED") != 2 || strings.Count(got, "RUNNING") != 1 {
		t.Errorf("the cell has %s", got)
	}
	w.door.shut = false
	w.pass(7 * time.Second)
	if got := w.task("job"); got.State != task.Completed || got.Result != "42" {
		t.Errorf("the task is %+v", got)
	}
	slot, err := w.BBS.Slot(w.ctx, "web", 0)
	w.must(err)
	if r := slot.Records[0]; r.CrashCount != 1 || !strings.Contains(r.CrashReason, "exit status 3") {
		t.Errorf("the crash is recorded as %d times, %q", r.CrashCount, r.CrashReason)
	}
}

// Every call of a cell is carried out once although its answer is lost.
func TestALostAnswerChangesNothing(t *testing.T) {
	for _, call := range []string{"Claim", "Start", "Crash", "Remove", "StartTask", "Complete", "Reject", "Slot", "Task", "Deployments",
		"EvacuateClaimed", "EvacuateRunning", "EvacuateStopped", "EvacuateCrashed", "RemoveEvacuating"} {
		t.Run(call, func(t *testing.T) {
			w := newTown(t, 2, nil)
			begun := map[string]int{}
			for _, c := range w.cells {
				c.fault = func(op scripted.Op, guid string) error {
					if k, _ := c.manager.Get(guid); op == scripted.Start && k.Tags[executor.TagLifecycle] == executor.LifecycleTask {
						begun[k.Tags[executor.TagTaskGUID]]++
					}
					return nil
				}
			}
			broken := definition()
			broken.CachedDependencies = []executor.CachedDependency{{From: "http://nowhere.invalid/", To: "/x"}} // there are no downloads here
			lose := func() { w.door.loses[call] = true }
			lose()
			w.desire("web", 2, definition())
			w.desire("weak", 1, doing("wait 20s", "exit 1"))
			w.desireTask("job", doing("wait 5s", "write /result 42"), "/result")
			w.desireTask("hopeless", broken, "")
			w.pass(30 * time.Second)
			lose()
			w.must(w.cells[0].Evacuate(w.ctx))
			w.until("evacuated", w.cells[0].Evacuated)
			one := 1
			w.must(w.BBS.UpdateDeployment(w.ctx, "web", lrp.Update{Instances: &one}))
			lose()
			w.until("settled", func() bool {
				return slices.Contains(w.records(), "web/0 RUNNING ORDINARY cell-2") && len(w.records()) == 2
			})
			if begun["job"] > 1 {
				t.Errorf("the task has begun %d times", begun["job"])
			}
			slot, err := w.BBS.Slot(w.ctx, "web", 0)
			w.must(err)
			if slot.Records[0].CrashCount != 0 {
				t.Errorf("an instance that never crashed has done so %d times", slot.Records[0].CrashCount)
			}
		})
	}
}

func TestAContainerThatVanishesIsMissed(t *testing.T) {
	w := newTown(t, 1, nil)
	w.desire("web", 1, definition())
	w.desireTask("job", doing("wait forever"), "")
	w.pass(5 * time.Second)
	for _, k := range w.cells[0].manager.List() {
		w.must(w.cells[0].backend.Delete(w.ctx, k.GUID))
	}
	w.until("the task is missed", func() bool { return w.task("job").State == task.Completed })
	if !w.task("job").Failed {
		t.Error("the task has not failed")
	}
	w.until("the instance runs again", func() bool { return slices.Contains(w.records(), "web/0 RUNNING ORDINARY cell-1") })
	if got := w.cells[0].states(); len(got) != 1 {
		t.Errorf("the cell has %q", got)
	}
}

func TestACellThatStartsAgainReconcilesWhatItFinds(t *testing.T) {
	w := newTown(t, 1, nil)
	w.desire("web", 1, definition())
	w.desireTask("job", doing("wait forever"), "")
	w.pass(5 * time.Second)
	c := w.cells[0]
	before := w.instance("web", 0)
	c.kill()
	if left, err := c.backend.List(w.ctx); err != nil || len(left) != 2 {
		t.Fatalf("the daemon left %q, %v", left, err)
	}
	w.boot(c)
	w.pass(3 * time.Second)
	// Until the presence of the run before has ended, its containers may live.
	if got := w.instance("web", 0); got != before {
		t.Errorf("the record of the run before was changed to %q", got)
	}
	if left, _ := c.backend.List(w.ctx); len(left) != 0 {
		t.Errorf("strays are left: %q", left)
	}
	w.until("the task is missed", func() bool { return w.task("job").State == task.Completed })
	if got := w.task("job"); got.FailureReason != task.ReasonContainerMissing && got.FailureReason != task.ReasonCellMissing {
		t.Errorf("the task failed with %q", got.FailureReason)
	}
	took := w.until("the instance runs again", func() bool {
		return slices.Contains(w.records(), "web/0 RUNNING ORDINARY cell-1") && w.instance("web", 0) != before
	})
	if took > 30*time.Second {
		t.Errorf("that took %v", took)
	}
	if got := c.states(); len(got) != 1 {
		t.Errorf("the cell has %q", got)
	}
}

func TestACellThatKnowsThatItsFormerRunIsOverSaysAtOnceWhatIsGone(t *testing.T) {
	w := newTown(t, 1, nil)
	c := w.cells[0]
	c.kill()
	w.pass(time.Minute)
	c.owner = "the lock of cell-1"
	w.boot(c)
	w.desire("web", 1, definition())
	w.desireTask("job", doing("wait forever"), "")
	w.pass(5 * time.Second)
	before := w.instance("web", 0)
	c.kill()
	w.boot(c)
	w.pass(2 * time.Second)
	if got := w.instance("web", 0); got == before || before == "" {
		t.Errorf("the record is still that of %q", got)
	}
	if got := w.task("job"); got.State != task.Completed || got.FailureReason != task.ReasonContainerMissing {
		t.Errorf("the task is %+v", got)
	}
}

func (w *town) instance(guid string, index int) string {
	w.t.Helper()
	s, err := w.BBS.Slot(w.ctx, guid, index)
	w.must(err)
	if len(s.Records) == 0 {
		return ""
	}
	return s.Records[0].InstanceGUID
}

func TestOfTwoCellsWithTheSameWorkOneGetsIt(t *testing.T) {
	w := newTown(t, 2, nil)
	w.door.shut = true // they take the work, and nobody claims it yet
	w.desire("web", 1, definition())
	w.desireTask("job", doing("wait 5s"), "")
	w.pass(2 * time.Second)
	d, err := w.BBS.Deployment(w.ctx, "web")
	w.must(err)
	instance, err := auction.NewLRP(d, lrp.Key{ProcessGUID: "web", DefinitionID: d.ActiveDefinitionID, Domain: "apps"}, w.clock.Now())
	w.must(err)
	for _, c := range w.cells {
		for range 2 { // and they hear of it more than once
			rejected, err := c.Perform(w.ctx, auction.Work{CellID: c.id, Items: []auction.Item{
				instance, auction.NewTask(w.task("job"), w.clock.Now()), instance}})
			if err != nil || len(rejected) > 0 {
				t.Fatalf("%s refuses %v, %v", c.id, rejected, err)
			}
		}
		if got := c.states(); len(got) != 2 {
			t.Errorf("%s has reserved %q", c.id, got)
		}
	}
	w.door.shut = false
	w.until("the task is done", func() bool { return w.task("job").State == task.Completed })
	if w.task("job").Failed {
		t.Errorf("the task is %+v", w.task("job"))
	}
	w.pass(time.Minute)
	if got := append(w.cells[0].states(), w.cells[1].states()...); len(got) != 1 || !strings.HasSuffix(got[0], "RUNNING") {
		t.Errorf("the containers are %q", got)
	}
}

func TestAnInstanceIsStoppedAtAnyPointOfItsCreation(t *testing.T) {
	for name, reserved := range map[string]bool{"a reservation": true, "a container that is being made": false} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t, 1, nil)
			c := w.cells[0]
			c.delay[manager.JobCreate] = time.Hour
			w.door.loses["Deployments"] = reserved // claimed, and not run for now
			w.desire("web", 1, definition())
			w.pass(3 * time.Second)
			w.wantRecords("web/0 CLAIMED ORDINARY cell-1")
			want := map[bool]string{true: "RESERVED", false: "INITIALIZING"}[reserved]
			if got := c.states(); len(got) != 1 || !strings.HasSuffix(got[0], want) {
				t.Errorf("the cell has %q", got)
			}
			w.must(w.BBS.DeleteDeployment(w.ctx, "web"))
			w.pass(2 * time.Second)
			w.wantRecords()
			w.wantEmpty(c)
		})
	}
}

func TestAContainerThatCannotBeRemovedIsToldOnce(t *testing.T) {
	w := newTown(t, 1, nil)
	c := w.cells[0]
	w.desire("web", 1, doing("wait 10s", "exit 1"))
	w.pass(5 * time.Second)
	c.fault = func(op scripted.Op, _ string) error {
		if op == scripted.Delete {
			return errors.New("the mount is busy")
		}
		return nil
	}
	w.pass(40 * time.Second)
	c.fault = nil
	slot, err := w.BBS.Slot(w.ctx, "web", 0)
	w.must(err)
	if r := slot.Records[0]; r.CrashCount > 4 { // one for each start
		t.Errorf("the crashes were counted %d times", r.CrashCount)
	}
	w.must(w.BBS.DeleteDeployment(w.ctx, "web"))
	w.pass(2 * time.Minute)
	w.wantRecords()
	w.wantEmpty(c)
}

func TestWorkThatNobodyStartsExpiresWithoutACrash(t *testing.T) {
	w := newTown(t, 1, nil)
	w.desire("web", 1, definition())
	w.desireTask("job", doing("wait 1s"), "")
	w.step() // the work is reserved
	w.door.shut = true
	w.pass(90 * time.Second)
	if got := strings.Join(w.cells[0].states(), ", "); strings.Count(got, "COMPLETED") != 2 {
		t.Errorf("the cell has %s", got)
	}
	w.door.shut = false
	w.until("all is done", func() bool {
		return w.task("job").State == task.Completed && slices.Contains(w.records(), "web/0 RUNNING ORDINARY cell-1")
	})
	slot, err := w.BBS.Slot(w.ctx, "web", 0)
	w.must(err)
	if slot.Records[0].CrashCount != 0 || w.task("job").Failed {
		t.Errorf("an expired reservation was taken for a failure: %+v, %+v", slot.Records[0], w.task("job"))
	}
}
