package memcell_test

import (
	"context"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A meddler is a BBS that does something else between a decision and its answer.
type meddler struct {
	*bbs.BBS
	claimed, started func(ctx context.Context)
}

func (m *meddler) ClaimLRP(ctx context.Context, processGUID string, index int, c lrp.Claim) error {
	err := m.BBS.ClaimLRP(ctx, processGUID, index, c)
	if do := m.claimed; do != nil {
		m.claimed = nil
		do(context.WithoutCancel(ctx))
	}
	return err
}

func (m *meddler) StartTask(ctx context.Context, guid string, c task.Start) (bool, error) {
	run, err := m.BBS.StartTask(ctx, guid, c)
	if do := m.started; do != nil {
		m.started = nil
		do(context.WithoutCancel(ctx))
	}
	return run, err
}

// noEffects leaves it to the test to hand out work.
type noEffects struct{}

func (noEffects) Carry([]lrp.Effect, []task.Effect) {}

func newCell(t *testing.T) (*memcell.Cell, *meddler, *memcell.Clock) {
	t.Helper()
	clock := memcell.NewClock()
	plain, err := bbs.New(bbs.Options{Store: memstore.New(&memstore.Options{Now: clock.Now}), Effects: noEffects{}, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	cell, m := memcell.NewFleet(1, clock)[0], &meddler{BBS: plain}
	cell.BBS = m
	return cell, m, clock
}

var runInfo = executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/sh", User: "nobody"}}}

func perform(t *testing.T, c *memcell.Cell, item auction.Item) {
	t.Helper()
	rejections, err := c.Perform(t.Context(), auction.Work{CellID: c.Presence.CellID, Items: []auction.Item{item}})
	if err != nil || len(rejections) > 0 {
		t.Fatalf("the cell refuses %+v: %v", rejections, err)
	}
}

// only is the container of a cell that has one.
func only(t *testing.T, c *memcell.Cell) executor.Container {
	t.Helper()
	list, err := c.Containers(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("the cell has %d containers, %v; want one", len(list), err)
	}
	return list[0]
}

func TestAContainerBeginsOnceIfAPollComesDuringAStep(t *testing.T) {
	cell, m, clock := newCell(t)
	if err := m.Desire(t.Context(), lrp.DesiredLRP{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1}, Definition: lrp.Definition{RunInfo: runInfo},
	}); err != nil {
		t.Fatal(err)
	}
	d, err := m.Deployment(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	item, err := auction.NewLRP(d, lrp.Key{ProcessGUID: "web", DefinitionID: d.ActiveDefinitionID, Domain: "apps"}, clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	perform(t, cell, item)
	m.claimed = cell.Poll
	cell.Step(t.Context())
	c := only(t, cell)
	if n := cell.Begun(c.GUID); n != 1 || c.State != executor.Running {
		t.Errorf("its work has begun %d times, and it is %v; want once, and RUNNING", n, c.State)
	}
}

func TestACancelledTaskDoesNotBegin(t *testing.T) {
	cell, m, clock := newCell(t)
	if err := m.DesireTask(t.Context(), task.Desire{GUID: "job", Domain: "apps", Definition: task.Definition{RunInfo: runInfo}}); err != nil {
		t.Fatal(err)
	}
	record, err := m.Task(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	perform(t, cell, auction.NewTask(record, clock.Now()))
	instance := only(t, cell).GUID
	m.started = func(ctx context.Context) {
		if err := cell.CancelTask(ctx, "job", instance); err != nil {
			t.Error(err)
		}
	}
	cell.Step(t.Context())
	left, err := cell.Containers(t.Context())
	if n := cell.Begun(instance); err != nil || n != 0 || len(left) > 0 {
		t.Errorf("its work has begun %d times, and the cell has %d containers, %v; want none of both", n, len(left), err)
	}
}
