package memcell_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
)

func item(index int) auction.Item {
	return auction.Item{Key: auction.Key{GUID: "web", Index: index, DefinitionID: "v1", Domain: "apps"}, Resources: executor.Resources{MemoryMB: 64}}
}

// A model answers operators as every other cell does.
func TestAModelCellAnswersWhatOperatorsAsk(t *testing.T) {
	clock := memcell.NewClock()
	cell := memcell.NewFleet(1, clock)[0]
	cell.NewGUID = func() string { return "a-guid" }
	var api rep.API = cell
	perform := func(index int) int {
		t.Helper()
		rejections, err := api.Perform(t.Context(), auction.Work{CellID: "cell-1", Items: []auction.Item{item(index)}})
		if err != nil {
			t.Fatal(err)
		}
		return len(rejections)
	}
	if perform(0) != 0 {
		t.Fatal("a cell with room refuses work")
	}
	list, err := api.Containers(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("it has %+v, %v; want one container", list, err)
	}
	if c := list[0]; c.GUID != "a-guid" || c.State != executor.Reserved || c.Tags[executor.TagProcessGUID] != "web" || c.Tags[executor.TagProcessIndex] != "0" || !c.Since.Equal(clock.Now()) {
		t.Errorf("got %+v", c)
	}
	for _, err := range api.Logs(t.Context(), rep.LogRequest{ContainerGUID: "a-guid"}) {
		if !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("its logs end with %v", err)
		}
	}

	began := clock.Now()
	for range 2 { // the second changes nothing
		if err := api.Evacuate(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Second)
	}
	if s, err := api.Evacuation(t.Context()); err != nil || !s.Evacuating || !s.BeganAt.Equal(began) || s.Containers != 1 || s.Done {
		t.Errorf("its evacuation is %+v, %v", s, err)
	}
	if perform(1) != 1 {
		t.Error("it takes work while it evacuates")
	}
	cell.Lose()
	if s, _ := api.Evacuation(t.Context()); !s.Done {
		t.Errorf("it is empty, and its evacuation is %+v", s)
	}
	_ = cell.CancelEvacuation(t.Context())
	if s, _ := api.Evacuation(t.Context()); s.Evacuating || perform(1) != 0 {
		t.Errorf("it has returned, and says %+v", s)
	}
}

func TestAModelCellMayBeAskedByManyAtATime(t *testing.T) {
	cell := memcell.NewFleet(1, memcell.NewClock())[0]
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			_, _ = cell.Perform(t.Context(), auction.Work{CellID: "cell-1", Items: []auction.Item{item(i)}})
			_ = cell.Evacuate(t.Context())
			_, _ = cell.Containers(t.Context())
			_, _ = cell.Evacuation(t.Context())
			_, _ = cell.State(t.Context())
			cell.Begun("cell-1-1")
			cell.TaskBegun("job")
			_ = cell.CancelEvacuation(t.Context())
		})
	}
	group.Wait()
}
