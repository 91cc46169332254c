package converge_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

var errRead = errors.New("broken disk")

// A readerWithFault fails one kind of read.
type readerWithFault struct {
	storage.Reader
	fault string
}

func (r readerWithFault) err(read string) error {
	if read == r.fault {
		return errRead
	}
	return nil
}

func failing[T any](err error, list iter.Seq2[T, error]) iter.Seq2[T, error] {
	if err == nil {
		return list
	}
	return func(yield func(T, error) bool) {
		var zero T
		yield(zero, err)
	}
}

func (r readerWithFault) Now(ctx context.Context) (time.Time, error) {
	now, err := r.Reader.Now(ctx)
	return now, errors.Join(err, r.err("the clock"))
}

func (r readerWithFault) Log(ctx context.Context) (storage.Extent, error) {
	log, err := r.Reader.Log(ctx)
	return log, errors.Join(err, r.err("the log's extent"))
}

func (r readerWithFault) Leases(ctx context.Context, kind string) iter.Seq2[storage.Lease, error] {
	return failing(r.err("the cells"), r.Reader.Leases(ctx, kind))
}

func (r readerWithFault) Domains(ctx context.Context) iter.Seq2[lrp.Domain, error] {
	return failing(r.err("the domains"), r.Reader.Domains(ctx))
}

func (r readerWithFault) Events(ctx context.Context, after storage.Cursor, f storage.EventFilter) iter.Seq2[storage.Event, error] {
	return failing(r.err("the log"), r.Reader.Events(ctx, after, f))
}

func (r readerWithFault) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	read := "the records"
	if f.CellIDs != nil {
		read = "the records of a cell"
	}
	return failing(r.err(read), r.Reader.ActualLRPs(ctx, f))
}

func (r readerWithFault) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	read := "the tasks"
	if f.CellIDs != nil {
		read = "the tasks of a cell"
	}
	return failing(r.err(read), r.Reader.Tasks(ctx, f))
}

func (r readerWithFault) Task(ctx context.Context, guid string) (*task.Task, error) {
	if err := r.err("a task"); err != nil {
		return nil, err
	}
	return r.Reader.Task(ctx, guid)
}

// A storeWithFault shows its views through one.
type storeWithFault struct {
	storage.Store
	fault *string
}

func (s storeWithFault) View(ctx context.Context, f func(storage.Reader) error) error {
	return s.Store.View(ctx, func(r storage.Reader) error { return f(readerWithFault{r, *s.fault}) })
}

// A pass that could not read something tells of it, ends nothing for want of
// what it did not see, and has the next pass look at everything.
func TestAReadThatFailsFailsThePassAndTheNextLooksAtEverything(t *testing.T) {
	for _, c := range []struct {
		read string
		full bool // in a pass that looks at everything
	}{
		{"the clock", true},
		{"the log's extent", true},
		{"the cells", true},
		{"the domains", true},
		{"the records", true},
		{"the tasks", true},
		{"the clock", false},
		{"the log's extent", false},
		{"the cells", false},
		{"the domains", false},
		{"the log", false},
		{"the records of a cell", false},
		{"the tasks of a cell", false},
		{"the records", false},
		{"a task", false},
	} {
		name := c.read + " by the log"
		if c.full {
			name = c.read
		}
		t.Run(name, func(t *testing.T) {
			h, fault := newConvergeHouse(t), ""
			o := converge.ConvergerOptions{Store: storeWithFault{h.store, &fault}, Effects: h, Now: h.clock, Guard: converge.Guard{Grace: -1}}
			convergence, err := converge.NewConverger(o)
			if err != nil {
				t.Fatal(err)
			}
			h.desire("web", 2)
			h.run("web", 0, "cell-1")
			h.run("web", 1, "cell-2")
			if !c.full {
				if p, err := convergence.Pass(t.Context()); err != nil || !p.Full {
					t.Fatal(p, err)
				}
			}
			// Something to follow, a task to look at and a cell that came.
			desire := task.Desire{GUID: "job", Domain: "apps", Definition: task.Definition{
				RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/job", User: "vcap"}}},
			}}
			if _, _, err := storage.ApplyTask(t.Context(), h.store, "job", nil, func(tk *task.Task) (task.Decision, error) {
				return task.Step(tk, desire, h.now, task.Policy{})
			}); err != nil {
				t.Fatal(err)
			}
			h.step("web", 0, lrp.Start{Instance: lrp.InstanceKey{InstanceGUID: "web-0-on-cell-1", CellID: "cell-1"}, NetInfo: lrp.NetInfo{Address: "10.0.0.9"}})
			h.present("cell-4")
			before := h.records()

			fault = c.read
			p, err := convergence.Pass(t.Context())
			if !errors.Is(err, errRead) || p.Failed != 1 {
				t.Errorf("got %v and %d failed, want the store's error once", err, p.Failed)
			}
			h.wantRecords(before...)
			fault = ""
			if p, err := convergence.Pass(t.Context()); err != nil || !p.Full {
				t.Errorf("the next pass: looked at everything %t, %v", p.Full, err)
			}
			h.wantRecords(before...)
		})
	}
}

func TestAPlanThatCannotBeMadeSaysWhy(t *testing.T) {
	h, fault := newConvergeHouse(t), "the domains"
	c, err := converge.NewConverger(converge.ConvergerOptions{Store: storeWithFault{h.store, &fault}, Effects: h, Now: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Plan(t.Context(), true); !errors.Is(err, errRead) {
		t.Errorf("got %v, want the store's error", err)
	}
}

// What triggered it has still to be seen.
func TestAPassThatCouldNotLookIsDueAgainAtOnce(t *testing.T) {
	h, fault := newConvergeHouse(t), "the cells"
	c, err := converge.NewConverger(converge.ConvergerOptions{Store: storeWithFault{h.store, &fault}, Effects: h, Now: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, ran, err := c.Tick(t.Context()); !ran || !errors.Is(err, errRead) {
			t.Fatal(ran, err)
		}
	}
	fault = ""
	if _, ran, err := c.Tick(t.Context()); !ran || err != nil {
		t.Error(ran, err)
	}
	if _, ran, _ := c.Tick(t.Context()); ran {
		t.Error("a pass was made that was not due")
	}
}

// A storeWithoutRecords fails to list actual LRPs outside of views.
type storeWithoutRecords struct {
	storage.Store
	fails bool
}

func (s *storeWithoutRecords) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	if s.fails {
		return failing(errRead, s.Store.ActualLRPs(ctx, f))
	}
	return s.Store.ActualLRPs(ctx, f)
}

// In quarantine, a deployment no longer desires its instances, so their domains
// must stop being fresh in the same commit.
func TestADeploymentIsNotQuarantinedWhileItsInstancesCannotBeRead(t *testing.T) {
	h := newConvergeHouse(t)
	store := &storeWithoutRecords{h.store, true}
	c, err := converge.NewConverger(converge.ConvergerOptions{Store: store, Effects: h, Now: h.clock, Guard: converge.Guard{Grace: -1}})
	if err != nil {
		t.Fatal(err)
	}
	h.desire("web", 1)
	h.run("web", 0, "cell-1")
	if !h.store.Corrupt(storage.DeploymentKey("web")) {
		t.Fatal("there is no such record")
	}
	if _, err := c.Pass(t.Context()); !errors.Is(err, errRead) {
		t.Errorf("got %v, want the store's error", err)
	}
	if q := h.store.Quarantined(); len(q) > 0 {
		t.Errorf("got %v in quarantine, want nothing", q)
	}
	store.fails = false
	for range 3 {
		if _, err := c.Pass(t.Context()); err != nil {
			t.Error(err)
		}
		h.now = h.now.Add(time.Second)
	}
	if q := h.store.Quarantined(); len(q) != 1 {
		t.Errorf("got %v in quarantine, want the deployment", q)
	}
	h.wantRecords("web/0 RUNNING ORDINARY cell-1")
}
