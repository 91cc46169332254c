package rep_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
)

// gauges remembers the last value of each.
type gauges struct {
	auction.NoMetrics
	values map[string]float64
}

func (g gauges) Gauge(name string, value float64, labels ...auction.Label) {
	g.values[fmt.Sprint(name, labels)] = value
}

func TestACellCountsFurtherResourcesFromTheReservationOn(t *testing.T) {
	ctx := context.Background()
	containers, err := manager.New(ctx, manager.Options{
		Backend:  scripted.New(scripted.Options{}),
		Capacity: executor.Capacity{MemoryMB: 1024, DiskMB: 4096, Containers: 10, Extra: executor.Amounts{"gpu": 4}},
	})
	if err != nil {
		t.Fatal(err)
	}
	figures := gauges{values: map[string]float64{}}
	cell, err := rep.New(rep.Options{CellID: "cell-1", BBS: emptyBBS{}, Executor: containers, Metrics: figures})
	if err != nil {
		t.Fatal(err)
	}
	containers.Tick(ctx) // finds that no earlier run has left anything
	if err := cell.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	item := func(guid string, gpus int64) auction.Item {
		return auction.Item{
			Key:       auction.Key{Kind: auction.LRP, GUID: guid, Domain: "apps", DefinitionID: "v1"},
			Resources: executor.Resources{MemoryMB: 1, Extra: executor.Amounts{"gpu": gpus}}, RootFS: "preloaded:linux",
		}
	}
	rejections, err := cell.Perform(ctx, auction.Work{CellID: "cell-1", Items: []auction.Item{item("fits", 3), item("not", 2)}})
	if err != nil || len(rejections) != 1 || rejections[0].Key.GUID != "not" {
		t.Fatalf("got %v, %v", rejections, err)
	}
	state, err := cell.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(executor.Amounts{"gpu": 1}, state.Remaining.Extra); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(executor.Amounts{"gpu": 4}, state.Total.Extra); diff != "" {
		t.Errorf("total (-want +got):\n%s", diff)
	}
	if got := figures.values["rep_capacity[{of gpu}]"]; got != 4 {
		t.Errorf("the figures are %v", figures.values)
	}
}
