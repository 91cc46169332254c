package scoreparts_test

import (
	"context"
	"strings"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/scoreparts"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

func TestTheTextHasEveryPartThatIsNotZeroOnBothCells(t *testing.T) {
	here := auction.Score{ZoneInstances: 1, Memory: 0.25, Disk: 1.0 / 3, Starting: 0.25}
	there := auction.Score{ZoneInstances: 1, CellInstances: 2, Memory: 0.5, Disk: 1.0 / 3}
	for _, c := range []struct {
		p    auction.Placement
		want string
	}{
		{auction.Placement{Choice: auction.Choice{Score: here}, RunnerUp: auction.Choice{CellID: "cell-2", Score: there}},
			"; parts against cell-2: of its process in the zone 1/1, of its process on the cell 0/2, memory in use 0.25/0.5, disk in use 0.3333/0.3333, containers that start 0.25/0"},
		{auction.Placement{Choice: auction.Choice{Score: here}}, "; parts: of its process in the zone 1, memory in use 0.25, disk in use 0.3333, containers that start 0.25"},
		{auction.Placement{Choice: auction.Choice{Score: auction.Score{Preference: -1e300, CellTasks: 3, Containers: 1, Extra: 2, BinPack: 0.5}}}, "; parts: preference -1e+300, tasks on the cell 3, containers in use 1, further resources in use 2, bin packing 0.5"},
		{auction.Placement{RunnerUp: auction.Choice{CellID: "cell-2"}}, ""},
	} {
		text := scoreparts.Text(&c.p)
		if text != c.want {
			t.Errorf("got  %s\nwant %s", text, c.want)
		}
		if len(text) > 400+len(c.p.RunnerUp.CellID) {
			t.Errorf("%d bytes: %s", len(text), text)
		}
		if said := "placed on cell-1: score 0.1, as good as cell-2"; scoreparts.Without(said+text) != said {
			t.Errorf("without the parts: %s", scoreparts.Without(said+text))
		}
	}
}

// A fleet of cells keeps the reasons that it gets.
type fleet struct {
	cells []*cell
}

type cell struct {
	auction.CellClient
	id    string
	takes bool
	got   []auction.Work
}

func (f *fleet) Cells(context.Context) (list []auction.Cell, _ error) {
	for _, c := range f.cells {
		list = append(list, auction.Cell{ID: c.id, Client: c})
	}
	return list, nil
}

func (f *fleet) FailActualLRP(context.Context, lrp.Key, lrp.PlacementError) error { return nil }

func (f *fleet) RejectTask(_ context.Context, _ string, a task.Attempt, _ string) (task.Attempt, bool, error) {
	return a, false, nil
}

func (c *cell) State(context.Context) (auction.CellState, error) {
	room := executor.Capacity{MemoryMB: 1000, DiskMB: 1000, Containers: 10}
	return auction.CellState{ID: c.id, Zone: "z1", RootFSProviders: []string{"preloaded:linux"}, Total: room, Remaining: room, TakesReasons: c.takes}, nil
}

func (c *cell) Perform(_ context.Context, w auction.Work) ([]auction.Rejection, error) {
	c.got = append(c.got, w)
	return nil, nil
}

func item(index int, memoryMB int64) auction.Item {
	return auction.Item{
		Key:       auction.Key{Kind: auction.LRP, GUID: "web", Domain: "apps", Index: index, DefinitionID: "v1"},
		Resources: executor.Resources{MemoryMB: memoryMB}, RootFS: "preloaded:linux",
	}
}

func TestACellThatTakesReasonsGetsTheParts(t *testing.T) {
	f := &fleet{cells: []*cell{{id: "cell-1", takes: true}, {id: "cell-2", takes: true}, {id: "cell-3"}}}
	told := 0
	o := auction.RunnerOptions{Directory: f, Reporter: f, Concurrency: 1, Placed: func(r auction.Result) { told += len(r.Placements) }}
	scoreparts.Explain(&o)
	r, err := auction.NewRunner(o)
	if err != nil {
		t.Fatal(err)
	}
	for batch, memory := range []int64{100, 200} { // the second batch forgets the first
		var items []auction.Item
		for i := range 6 {
			items = append(items, item(6*batch+i, memory))
		}
		r.Request(items...)
		if _, err := r.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if told != 12 {
		t.Errorf("the option Placed saw %d placements", told)
	}
	for _, c := range f.cells {
		if len(c.got) != 2 {
			t.Fatalf("%s got work %d times", c.id, len(c.got))
		}
		for batch, w := range c.got {
			if !c.takes {
				if w.Reasons != nil {
					t.Errorf("%s takes no reasons and got %q", c.id, w.Reasons)
				}
				continue
			}
			if len(w.Reasons) != 2 {
				t.Fatalf("%s got %d reasons", c.id, len(w.Reasons))
			}
			for i, reason := range w.Reasons {
				// The use of the cell's memory with the work on it.
				uses := []string{[]string{"memory in use 0.1/", "memory in use 0.2/"}[i], []string{"memory in use 0.2/", "memory in use 0.4/"}[i]}
				if !strings.HasPrefix(reason, "score ") || !strings.Contains(reason, "; parts against cell-") || !strings.Contains(reason, uses[batch]) {
					t.Errorf("batch %d, %s: %s", batch, c.id, reason)
				}
			}
		}
	}
}
