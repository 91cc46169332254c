package diego_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/simulation"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A town is a control plane and real cells, each a rep over a manager over a
// scripted backend, in virtual time.
type town struct {
	*diego.ControlPlane
	t     *testing.T
	ctx   context.Context
	clock *simulation.Clock
	store *memstore.Store
	cells []*townCell
	down  bool // the BBS, as the cells see it
}

type townCell struct {
	*rep.Rep
	id      string
	run     int
	off     bool
	backend *scripted.Backend
	manager *manager.Manager
}

// newTown makes one that leads and whose cells are known. change may change
// the options of the reps.
func newTown(t *testing.T, cells int, change func(*rep.Options)) *town {
	t.Helper()
	w := &town{t: t, ctx: t.Context(), clock: simulation.NewClock()}
	w.store = memstore.New(&memstore.Options{Now: w.clock.Now})
	var err error
	w.ControlPlane, err = diego.New(diego.Options{
		Store: w.store, Dial: w.dial, Owner: "plane-1", Now: w.clock.Now, Concurrency: 1, Guard: converge.Guard{Grace: -1},
	})
	w.must(err)
	for i := range cells {
		c := &townCell{id: fmt.Sprintf("cell-%d", i+1), backend: scripted.New(scripted.Options{Now: w.clock.Now})}
		w.cells = append(w.cells, c)
		w.boot(c, change)
	}
	w.step()
	return w
}

// boot starts the daemon of a cell on what it finds.
func (w *town) boot(c *townCell, change func(*rep.Options)) {
	w.t.Helper()
	c.run++
	c.off = false
	var err error
	c.manager, err = manager.New(w.ctx, manager.Options{
		Backend: c.backend, Now: w.clock.Now, Capacity: manager.Capacity{MemoryMB: 1 << 16, DiskMB: 1 << 16, Containers: 100},
	})
	w.must(err)
	announcer, err := diego.NewAnnouncer(diego.AnnouncerOptions{
		Store: w.store, Presence: diego.CellPresence{CellID: c.id}, Owner: fmt.Sprintf("%s run %d", c.id, c.run),
	})
	w.must(err)
	guids := 0
	o := rep.Options{
		CellID: c.id, BBS: w.BBS, Executor: c.manager, Announcer: announcer, RootFSProviders: []string{"preloaded:linux"},
		Concurrency: 1, Now: w.clock.Now, NewGUID: func() string { guids++; return fmt.Sprintf("%s-%d-%d", c.id, c.run, guids) },
	}
	if change != nil {
		change(&o)
	}
	c.Rep, err = rep.New(o)
	w.must(err)
}

// kill ends the daemon of a cell in the middle of everything.
func (w *town) kill(c *townCell) {
	c.off = true
	c.backend = c.backend.Restart()
}

func (w *town) dial(p diego.CellPresence) (auction.CellClient, error) {
	i := slices.IndexFunc(w.cells, func(c *townCell) bool { return c.id == p.CellID })
	if i < 0 {
		return nil, errors.New("no such cell")
	}
	return w.cells[i], nil
}

func (w *town) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *town) step() {
	w.t.Helper()
	for _, c := range w.cells {
		if !c.off {
			c.manager.Tick(w.ctx)
			c.Tick(w.ctx)
		}
	}
	w.must(w.Tick(w.ctx))
}

func (w *town) pass(d time.Duration) {
	w.t.Helper()
	for range int(d / time.Second) {
		w.clock.Advance(time.Second)
		w.step()
	}
}

func (w *town) wantRecords(want ...string) {
	w.t.Helper()
	var got []string
	for r, err := range w.store.ActualLRPs(w.ctx, storage.ActualLRPFilter{}) {
		w.must(err)
		got = append(got, describe(&r))
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("got records %q, want %q", got, want)
	}
}

func TestADesiredLRPRunsInContainersOfRealCells(t *testing.T) {
	w := newTown(t, 2, nil)
	w.must(w.BBS.Desire(w.ctx, desired("web", 2)))
	w.pass(5 * time.Second)
	w.wantRecords("web/0 RUNNING ORDINARY cell-1", "web/1 RUNNING ORDINARY cell-2")
	if list := w.cells[0].manager.List(); len(list) != 1 || list[0].State != executor.Running {
		t.Errorf("the first cell has %+v", list)
	}
	one := 1
	w.must(w.BBS.UpdateDeployment(w.ctx, "web", lrp.Update{Instances: &one}))
	w.pass(5 * time.Second)
	w.wantRecords("web/0 RUNNING ORDINARY cell-1")
	if list := w.cells[1].manager.List(); len(list) != 0 {
		t.Errorf("the second cell still has %+v", list)
	}
}

func TestATaskRunsOnceAndItsResultIsRead(t *testing.T) {
	w := newTown(t, 1, nil)
	d := desiredTask("job", "")
	d.Definition.Action = executor.Action{Run: &executor.RunAction{Path: scripted.Path, Args: []string{"wait 3s", "write /result 42"}, User: "vcap"}}
	d.Definition.ResultFile = "/result"
	w.must(w.BBS.DesireTask(w.ctx, d))
	w.pass(10 * time.Second)
	got, err := w.BBS.Task(w.ctx, "job")
	w.must(err)
	if got.State != task.Completed || got.Failed || got.Result != "42" {
		t.Errorf("the task is %+v", got)
	}
	if list := w.cells[0].manager.List(); len(list) != 0 {
		t.Errorf("the cell still has %+v", list)
	}
}
