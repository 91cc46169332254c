package system_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// present are the ids of the cells that are.
func (w *town) present() (ids []string) {
	w.t.Helper()
	cells, err := w.BBS.Cells(w.ctx)
	w.must(err)
	for _, c := range cells {
		ids = append(ids, c.CellID)
	}
	return ids
}

func TestAnEvacuationEndsAsSoonAsTheWorkHasMoved(t *testing.T) {
	w := newTown(t, 2, nil)
	w.desire("web", 4, definition())
	w.desireTask("job", doing("wait 25s", "write /result 42"), "/result")
	w.pass(5 * time.Second)
	c := w.cells[0]
	if len(c.states()) != 3 && len(w.cells[1].states()) != 3 {
		t.Fatalf("the cells have %q and %q", c.states(), w.cells[1].states())
	}
	if w.task("job").CellID != c.id {
		c = w.cells[1]
	}
	other := w.cells[0]
	if other == c {
		other = w.cells[1]
	}
	w.must(c.Evacuate(w.ctx))
	w.must(c.Evacuate(w.ctx)) // once is enough
	rejected, err := c.Perform(w.ctx, auction.Work{CellID: c.id, Items: []auction.Item{
		{Key: auction.Key{Kind: auction.Task, GUID: "late"}, RootFS: "preloaded:linux"}}})
	if err != nil || len(rejected) != 1 || rejected[0].Reason != "evacuating" {
		t.Errorf("the evacuating cell answers %v, %v", rejected, err)
	}
	if s, err := c.State(w.ctx); err != nil || !s.Evacuating {
		t.Errorf("its state is %+v, %v", s, err)
	}
	w.pass(15 * time.Second)
	if c.Evacuated() || w.task("job").State != task.Running {
		t.Error("the evacuation did not wait for the task")
	}
	for _, r := range w.records() {
		if !strings.HasSuffix(r, "RUNNING ORDINARY "+other.id) {
			t.Errorf("after one round a record is %s", r)
		}
	}
	if took := w.until("evacuated", c.Evacuated); took > 15*time.Second {
		t.Errorf("it then took %v", took)
	}
	if got := w.task("job"); got.Failed || got.Result != "42" {
		t.Errorf("the task is %+v", got)
	}
	w.wantEmpty(c)
	if got := w.present(); !slices.Equal(got, []string{other.id}) {
		t.Errorf("present are %q", got)
	}
	w.pass(time.Minute) // it does not come back
	if got := w.present(); !slices.Equal(got, []string{other.id}) {
		t.Errorf("a minute later present are %q", got)
	}
}

func TestAnEmptyCellIsEvacuatedAtOnce(t *testing.T) {
	w := newTown(t, 1, nil)
	w.must(w.cells[0].Evacuate(w.ctx))
	if took := w.until("evacuated", w.cells[0].Evacuated); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Each state of a container is met by an evacuation.
func TestEveryInstanceLeavesAnEvacuatingCellWhateverItIsDoing(t *testing.T) {
	for _, c := range []struct {
		name, state string
		prepare     func(*town)
	}{
		{"a reservation", "RESERVED", func(w *town) { w.door.loses["Deployments"] = true }},
		{"it is being made", "INITIALIZING", func(w *town) { w.cells[0].delay[manager.JobCreate] = time.Hour }},
		{"it runs", "RUNNING", func(*town) {}},
		{"it has crashed", "COMPLETED", func(w *town) {
			w.pass(2 * time.Second)
			w.door.shut = true
			w.must(w.cells[0].backend.Signal(w.ctx, w.instance("web", 0), executor.Kill))
		}},
		{"it was stopped", "COMPLETED", func(w *town) {
			w.pass(2 * time.Second)
			w.door.shut = true
			w.must(w.cells[0].manager.Stop(w.instance("web", 0)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTown(t, 2, nil)
			w.cells[1].off = true // the work goes to the first cell
			w.pass(30 * time.Second)
			w.desire("web", 1, definition())
			c.prepare(w)
			w.pass(3 * time.Second)
			if got := w.cells[0].states(); len(got) != 1 || !strings.HasSuffix(got[0], c.state) {
				t.Fatalf("the cell has %q", got)
			}
			w.door.shut = false
			w.boot(w.cells[1])
			w.must(w.cells[0].Evacuate(w.ctx))
			if took := w.until("evacuated", w.cells[0].Evacuated); took > time.Minute {
				t.Errorf("it took %v", took)
			}
			w.wantEmpty(w.cells[0])
			w.until("it runs elsewhere", func() bool { return slices.Equal(w.records(), []string{"web/0 RUNNING ORDINARY cell-2"}) })
		})
	}
}

func TestWhatIsLeftWhenAnEvacuationTimesOutIsTakenBack(t *testing.T) {
	w := newTown(t, 1, nil)
	c := w.cells[0]
	w.desire("web", 1, definition())
	w.desireTask("job", doing("wait forever"), "")
	w.pass(5 * time.Second)
	w.must(c.Evacuate(w.ctx))
	w.pass(time.Minute)
	w.wantRecords("web/0 UNCLAIMED ORDINARY", "web/0 RUNNING EVACUATING cell-1") // it serves as long as it can
	if took := w.until("evacuated", c.Evacuated); took < 8*time.Minute || took > 10*time.Minute {
		t.Errorf("it took %v more", took)
	}
	w.wantRecords("web/0 UNCLAIMED ORDINARY")
	if got := w.task("job"); !got.Failed || got.FailureReason != task.ReasonEvacuationTimedOut {
		t.Errorf("the task is %+v", got)
	}
	w.pass(15 * time.Second) // their grace
	w.wantEmpty(c)
	if got := w.present(); len(got) != 0 {
		t.Errorf("present are %q", got)
	}
}

// The bound of the control plane is for cells that have fallen silent: one that
// evacuates for longer keeps its route, as long as its container runs.
func TestARouteLivesAsLongAsItsEvacuatingContainer(t *testing.T) {
	for _, cell := range []time.Duration{25 * time.Second, 3 * time.Second} {
		t.Run(cell.String(), func(t *testing.T) {
			w := newTown(t, 1, func(o *rep.Options) { o.EvacuationTimeout = cell }, func(o *diego.Options) {
				o.LRPs.EvacuationTimeout = 6 * time.Second
			})
			w.desire("web", 1, definition())
			w.pass(5 * time.Second)
			w.must(w.cells[0].Evacuate(w.ctx))
			for began := w.clock.Now(); w.clock.Now().Sub(began) < cell-time.Second; {
				w.pass(time.Second)
				w.must(w.Converge(w.ctx))
				w.wantRecords("web/0 UNCLAIMED ORDINARY", "web/0 RUNNING EVACUATING cell-1")
			}
			w.until("evacuated", w.cells[0].Evacuated)
			w.wantRecords("web/0 UNCLAIMED ORDINARY")
		})
	}
}

func TestAnEvacuationEndsAlsoIfTheBBSDoesNotAnswer(t *testing.T) {
	w := newTown(t, 1, func(o *rep.Options) { o.EvacuationTimeout, o.FinishTimeout = time.Minute, 20*time.Second })
	c := w.cells[0]
	w.desire("web", 1, definition())
	w.pass(5 * time.Second)
	w.must(c.Evacuate(w.ctx))
	w.door.shut = true
	if took := w.until("evacuated", c.Evacuated); took < time.Minute+15*time.Second || took > time.Minute+30*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := c.Run(w.ctx); err == nil || !errors.Is(err, errShut) {
		t.Errorf("Run ends with %v", err)
	}
}

func TestASickCellGetsNoWorkUntilItHasRecovered(t *testing.T) {
	test := &rep.SelfTest{RunInfo: doing("wait 1s").RunInfo}
	w := newTown(t, 2, func(o *rep.Options) { o.SelfTest = test })
	c := w.cells[0]
	w.pass(5 * time.Minute)
	if s, _ := c.State(w.ctx); s.Unhealthy || s.StartingContainers > 0 || !s.Remaining.Equal(s.Total) {
		t.Errorf("a healthy cell says %+v", s)
	}
	c.fault = func(op scripted.Op, _ string) error {
		if op == scripted.Create {
			return errors.New("no bridge")
		}
		return nil
	}
	w.until("unhealthy", func() bool { s, _ := c.State(w.ctx); return s.Unhealthy })
	rejected, err := c.Perform(w.ctx, auction.Work{CellID: c.id, Items: []auction.Item{
		{Key: auction.Key{Kind: auction.Task, GUID: "late"}, RootFS: "preloaded:linux"}}})
	if err != nil || len(rejected) != 1 || rejected[0].Reason != "unhealthy" {
		t.Errorf("the unhealthy cell answers %v, %v", rejected, err)
	}
	w.desire("web", 4, definition())
	w.pass(time.Minute)
	for _, r := range w.records() {
		if !strings.HasSuffix(r, "RUNNING ORDINARY cell-2") {
			t.Errorf("a record is %s", r)
		}
	}
	c.fault = nil
	if took := w.until("healthy", func() bool { s, _ := c.State(w.ctx); return !s.Unhealthy }); took > 30*time.Second {
		t.Errorf("it took %v to recover", took)
	}
	w.must(c.Evacuate(w.ctx))
	w.until("evacuated", c.Evacuated) // the test's containers are not waited for
}

func TestTheLastCellSaysWhyItsWorkStays(t *testing.T) {
	w := newTown(t, 2, nil)
	w.cells[1].off = true
	w.pass(30 * time.Second)
	w.desire("web", 1, definition())
	w.desireTask("job", doing("wait forever"), "")
	w.pass(5 * time.Second)
	c := w.cells[0]
	cell := &localcell.Cell{Rep: c.Rep, Manager: c.manager}
	waiting := func() string {
		s, err := cell.Evacuation(w.ctx)
		w.must(err)
		return strings.Join(s.Waiting, "; ")
	}
	if got := waiting(); got != "" {
		t.Errorf("before it is drained it waits for %q", got)
	}
	w.must(c.Evacuate(w.ctx))
	w.pass(time.Second)
	if got := waiting(); !strings.Contains(got, "web/0: the control plane has been asked to move it") || !strings.Contains(got, "task job: a task is not moved") {
		t.Errorf("at first it waits for %q", got)
	}
	w.pass(15 * time.Second)
	if got := waiting(); !strings.Contains(got, "web/0: no cell takes its replacement: found no compatible cell") || !strings.Contains(got, "evacuating") {
		t.Errorf("it waits for %q", got)
	}
	w.boot(w.cells[1])
	w.until("its replacement runs", func() bool { return strings.Contains(waiting(), "web/0: its replacement runs") })
	w.until("the instance is gone", func() bool { return !strings.Contains(waiting(), "web/0") })
}

func TestADrainRecreatesNoMoreInstancesAtATimeThanTheBudgetAllows(t *testing.T) {
	w := newTown(t, 2, nil)
	l := lrp.DesiredLRP{ProcessGUID: "web", Domain: "apps", UpdateStrategy: lrp.Recreate, Definition: definition()}
	l.Instances, l.Disruption = 6, &lrp.Disruption{MaxUnavailable: 2}
	w.must(w.BBS.Desire(w.ctx, l))
	unavailable := func() int {
		n := l.Instances
		for r, err := range w.store.ActualLRPs(w.ctx, storage.ActualLRPFilter{}) {
			if w.must(err); r.State == lrp.Running && r.Routable {
				n--
			}
		}
		return n
	}
	w.until("all run", func() bool { return unavailable() == 0 })
	for _, c := range w.cells {
		c.delay[manager.JobCreate] = 5 * time.Second
	}
	c := w.cells[0]
	w.must(c.Evacuate(w.ctx))
	most := 0
	w.until("the cell is empty", func() bool {
		most = max(most, unavailable())
		return c.Evacuated()
	})
	if most != 2 {
		t.Errorf("at most %d were unavailable, want 2", most)
	}
	w.until("all run again", func() bool { return unavailable() == 0 })
}

func TestAnEventSaysThatAnInstanceEndedWithTheTimeOfItsEvacuation(t *testing.T) {
	w := newTown(t, 1, func(o *rep.Options) { o.EvacuationTimeout = time.Minute })
	w.desire("web", 1, definition())
	w.pass(5 * time.Second)
	extent, err := w.store.Log(w.ctx)
	w.must(err)
	w.must(w.cells[0].Evacuate(w.ctx))
	w.until("evacuated", w.cells[0].Evacuated)
	var said []string
	for e, err := range w.store.Events(w.ctx, extent.Newest, storage.EventFilter{}) {
		if w.must(err); e.LRP != nil {
			said = append(said, e.LRP.Explain())
		}
	}
	if !slices.Contains(said, "ended on cell-1 (its time to evacuate has passed)") {
		t.Errorf("the events say %q", said)
	}
}
