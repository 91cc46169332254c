package converge_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// desireTask adds a PENDING task.
func (h *house) desireTask(guid string) {
	h.t.Helper()
	h.stepTask(guid, task.Desire{GUID: guid, Domain: "apps", Definition: task.Definition{
		RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/job", User: "vcap"}}},
	}})
}

func (h *house) stepTask(guid string, c task.Command) {
	h.t.Helper()
	if _, _, err := storage.ApplyTask(h.t.Context(), h.store, guid, nil, func(tk *task.Task) (task.Decision, error) {
		return task.Step(tk, c, h.now, task.Policy{})
	}); err != nil {
		h.t.Fatal(err)
	}
}

// A healthy house has some processes and a task, all RUNNING, and everything
// was looked at.
func healthyHouse(t *testing.T) *house {
	h := newConvergeHouse(t)
	for n := range 3 {
		guid := fmt.Sprintf("web-%d", n)
		h.desire(guid, 2)
		h.run(guid, 0, "cell-1")
		h.run(guid, 1, "cell-2")
	}
	h.desireTask("job")
	h.stepTask("job", task.Start{CellID: "cell-2", InstanceGUID: "job-1"})
	if p := h.pass(); !p.Full || len(p.Actions) != 0 {
		t.Fatalf("the first pass is %+v, want a full one with nothing to do", p)
	}
	return h
}

func TestAPassLooksOnlyAtWhatHasChangedOrIsDue(t *testing.T) {
	for _, tt := range []struct {
		name   string
		happen func(h *house)
		want   string // the actions and whether the pass was full
	}{
		{"nothing", func(*house) {}, "partial"},
		{"an instance crashes", func(h *house) {
			h.step("web-1", 0, lrp.Crash{Instance: lrp.InstanceKey{InstanceGUID: "web-1-0-on-cell-1", CellID: "cell-1"}})
			h.now = h.now.Add(30 * time.Second)
		}, "1 the start is overdue, partial"},
		{"a deployment grows", func(h *house) {
			h.write(changeInstances(h, "web-2", 3))
		}, "1 no instance at a desired index, partial"},
		{"a task is not started", func(h *house) {
			h.desireTask("late")
			h.pass()
			h.now = h.now.Add(30 * time.Second)
		}, "1 the start is overdue, partial"},
		{"a cell goes", func(h *house) {
			h.now = h.now.Add(45 * time.Second)
			h.present("cell-1", "cell-3")
			h.now = h.now.Add(30 * time.Second)
		}, "3 the cell is missing, partial"},
		{"a cell is gone for so long that its tasks fail", func(h *house) {
			h.now = h.now.Add(45 * time.Second)
			h.present("cell-1", "cell-3")
			h.now = h.now.Add(30 * time.Second)
			h.pass()
			h.pass()
			h.present("cell-1", "cell-3")
			h.now = h.now.Add(time.Minute - 1)
			h.pass()
			h.pass()
			h.present("cell-1", "cell-3")
			h.now = h.now.Add(1)
		}, "1 the cell is missing, 3 the start is overdue, partial"},
		{"a cell comes back", func(h *house) {
			h.now = h.now.Add(45 * time.Second)
			h.present("cell-1", "cell-3")
			h.now = h.now.Add(30 * time.Second)
			h.pass()
			h.present("cell-2")
		}, "3 the cell is back, partial"},
		{"all cells go", func(h *house) { h.now = h.now.Add(2 * time.Minute) }, "full"},
		{"time passes", func(h *house) {
			h.now = h.now.Add(5 * time.Minute)
			h.present("cell-1", "cell-2", "cell-3")
		}, "full"},
		{"the clock steps back", func(h *house) { h.now = h.now.Add(-time.Second) }, "full"},
		{"the log has moved on", func(h *house) {
			for range 2100 {
				h.write(storage.Batch{Events: []storage.Event{{Domain: &storage.DomainEvent{Domain: "apps"}}}})
			}
		}, "full"},
		{"the store is opened again", func(h *house) { h.restored() }, "partial"},
		{"the store is opened again and a deployment grows", func(h *house) {
			h.restored()
			h.write(changeInstances(h, "web-2", 3))
			h.restored()
		}, "1 no instance at a desired index, partial"},
		{"the store is put back", func(h *house) {
			fallBack := h.store.Save()
			h.write(changeInstances(h, "web-2", 3))
			h.pass()
			fallBack()
			h.restored()
		}, "full"},
		{"a record rots, unseen", func(h *house) {
			h.store.Corrupt(storage.RecordKey{Kind: storage.ActualLRPRecord, GUID: "web-1", Index: 1, DefinitionID: "v1"})
		}, "partial"},
		{"a record rots, and its process is looked at", func(h *house) {
			h.store.Corrupt(storage.RecordKey{Kind: storage.ActualLRPRecord, GUID: "web-1", Index: 1, DefinitionID: "v1"})
			h.write(changeInstances(h, "web-1", 3))
			h.pass()
		}, "2 no instance at a desired index, full"},
		{"an event rots", func(h *house) {
			h.write(changeInstances(h, "web-1", 3))
			log, err := h.store.Log(h.t.Context())
			if err != nil || !h.store.Corrupt(storage.EventKey(log.Newest)) {
				h.t.Fatal("there is no such event", err)
			}
		}, "1 no instance at a desired index, full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := healthyHouse(t)
			tt.happen(h)
			plan, err := h.Plan(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			p := h.pass()
			var got []string
			for _, a := range p.Actions {
				got = append(got, fmt.Sprint(a.Count, " ", a.Reason))
			}
			got = append(got, map[bool]string{true: "full", false: "partial"}[p.Full])
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			n := 0
			for _, a := range p.Actions {
				n += a.Count
			}
			if plan.Full != p.Full || len(plan.LRPs)+len(plan.Tasks) != n {
				t.Errorf("planned %+v, and did %+v", plan, p)
			}
		})
	}
}

// restored leaves a gap in the log, as each opening of a store does.
func (h *house) restored() {
	h.t.Helper()
	if err := h.store.Restored(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func TestAPassReadsSoManyEventsAtMostAcrossGaps(t *testing.T) {
	for _, tt := range []struct {
		events int
		full   bool
	}{{9_999, false}, {10_000, true}} {
		h := newConvergeHouse(t)
		h.store = memstore.New(&memstore.Options{Now: h.clock, Events: 20_000})
		h.Converger = h.converger(converge.ConvergerOptions{})
		h.pass()
		h.restored() // one event of its own
		h.write(storage.Batch{Events: slices.Repeat([]storage.Event{{Domain: &storage.DomainEvent{Domain: "apps"}}}, tt.events)})
		if p := h.pass(); p.Full != tt.full {
			t.Errorf("after %d events and a gap: full is %v", tt.events, p.Full)
		}
	}
}

func changeInstances(h *house, guid string, n int) (b storage.Batch) {
	h.t.Helper()
	d, err := h.store.Deployment(h.t.Context(), guid)
	if err != nil {
		h.t.Fatal(err)
	}
	change, err := d.Update(lrp.Update{Instances: &n})
	if err != nil {
		h.t.Fatal(err)
	}
	b.AddChange(change)
	return b
}

func TestAPassLooksAtEverythingEachTimeIfItIsToldTo(t *testing.T) {
	h := newConvergeHouse(t)
	h.Converger = h.converger(converge.ConvergerOptions{FullInterval: -1})
	for range 3 {
		if p := h.pass(); !p.Full {
			t.Error("it went by the log")
		}
	}
}

func TestWhatAPassFailedToMendIsTriedAgainByTheNext(t *testing.T) {
	h := healthyHouse(t)
	h.write(changeInstances(h, "web-2", 3))
	h.commit = func(storage.Batch) error { return errUnreadable }
	if p, err := h.Pass(t.Context()); err == nil || p.Full {
		t.Errorf("got %+v, %v", p, err)
	}
	h.commit = nil
	if p := h.pass(); p.Full || p.Starts != 1 {
		t.Errorf("got %+v, want one start from a pass that is not full", p)
	}
}

func TestAPlanDoesNothing(t *testing.T) {
	h := newConvergeHouse(t)
	h.desire("web", 2)
	for _, full := range []bool{true, false} {
		p, err := h.Plan(t.Context(), full)
		if err != nil || !p.Full || len(p.LRPs) != 2 {
			t.Errorf("got %+v, %v; want two instances to be made, by a first look", p, err)
		}
	}
	h.wantRecords()
	if len(h.effects) != 0 {
		t.Errorf("got effects %v", h.effects)
	}
}

// The figures that follow the log are those of a look at everything.
func TestTheCensusFollowsTheLog(t *testing.T) {
	h := newConvergeHouse(t)
	followed := counted{}
	h.Converger = h.converger(converge.ConvergerOptions{Metrics: followed})
	h.pass()
	me := lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-1"}
	for i, happen := range []func(){
		func() { h.desire("web", 3) },
		func() { h.pass() }, // which makes its records
		func() { h.run("web", 0, "cell-2") },
		func() { h.step("web", 1, lrp.Claim{Instance: me}) },
		func() { h.step("web", 1, lrp.Start{Instance: me}) },
		func() { h.step("web", 1, lrp.EvacuateRunning{Instance: me}) },
		func() { h.step("web", 0, lrp.MarkSuspect{CellID: "cell-2"}) },
		func() { h.desireTask("job") },
		func() { h.stepTask("job", task.Start{CellID: "cell-1", InstanceGUID: "j"}) },
		func() { h.stepTask("job", task.Cancel{}) },
		func() { h.step("web", 2, lrp.Start{Instance: lrp.InstanceKey{InstanceGUID: "k", CellID: "cell-9"}}) },
		func() { h.step("web", 1, lrp.RemoveEvacuating{Instance: me}) },
		func() { h.write(changeInstances(h, "web", 5)) },
		func() { h.write(changeInstances(h, "web", 1)) },
		func() { h.desire("other", 2) },
		func() { h.run("other", 0, "cell-1") },
		func() { h.run("other", 1, "cell-1") },
		func() { crashOften(h, "other", 0, 4) },
	} {
		happen()
		if p := h.pass(); p.Full {
			t.Fatalf("step %d: the pass looked at everything", i)
		}
		// Another pass has nothing to do; nothing has changed since.
		h.pass()
		counted := counted{}
		if _, err := h.converger(converge.ConvergerOptions{Metrics: counted}).Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		records := func(name string, _ float64) bool {
			return !strings.HasPrefix(name, "lrps") && !strings.HasPrefix(name, "tasks") && !strings.HasPrefix(name, "processes")
		}
		got, want := maps.Clone(followed), counted
		maps.DeleteFunc(got, records)
		maps.DeleteFunc(want, records)
		if !maps.Equal(got, want) {
			t.Errorf("step %d: got %v, want %v", i, got, want)
		}
	}
	for name, want := range map[string]float64{"lrps_desired": 3, "lrps_missing": 1, "processes_crashing": 1} {
		if got := followed[name+"[]"]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// crashOften crashes an instance so often, and starts it before each crash but
// the first.
func crashOften(h *house, guid string, index, times int) {
	h.t.Helper()
	for n := range times {
		me := lrp.InstanceKey{InstanceGUID: fmt.Sprintf("%s-%d-on-cell-1", guid, index), CellID: "cell-1"}
		if n > 0 {
			h.step(guid, index, lrp.Start{Instance: me})
		}
		h.step(guid, index, lrp.Crash{Instance: me})
	}
}
