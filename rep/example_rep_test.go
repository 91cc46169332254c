package rep_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// emptyBBS has no records. A cell answers the auctioneer without asking it.
type emptyBBS struct{ rep.BBS }

func (emptyBBS) ActualLRPs(context.Context, storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return func(func(lrp.ActualLRP, error) bool) {}
}

func (emptyBBS) Tasks(context.Context, storage.TaskFilter) iter.Seq2[*task.Task, error] {
	return func(func(*task.Task, error) bool) {}
}

// The auctioneer asks a cell for its state and hands it work. The cell reserves
// what it has room for, and refuses the rest with the reason.
func ExampleRep_Perform() {
	ctx := context.Background()
	containers, err := manager.New(ctx, manager.Options{
		Backend:  scripted.New(scripted.Options{}),
		Capacity: executor.Capacity{MemoryMB: 1024, DiskMB: 4096, Containers: 10},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	cell, err := rep.New(rep.Options{CellID: "cell-1", BBS: emptyBBS{}, Executor: containers, RootFSProviders: []string{"preloaded:linux"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	containers.Tick(ctx)                   // removes what an earlier run has left
	if err := cell.Sync(ctx); err != nil { // before its first Sync it takes no work
		fmt.Println(err)
		return
	}

	item := func(guid string, memoryMB int64) auction.Item {
		return auction.Item{
			Key:       auction.Key{Kind: auction.LRP, GUID: guid, Domain: "apps", DefinitionID: "v1"},
			Resources: executor.Resources{MemoryMB: memoryMB}, RootFS: "preloaded:linux",
		}
	}
	work := auction.Work{CellID: "cell-1", Items: []auction.Item{item("web", 512), item("huge", 4096), item("web", 512)}}
	rejections, err := cell.Perform(ctx, work)
	for _, r := range rejections {
		fmt.Printf("%s is refused\n", r.Key.GUID)
	}
	fmt.Println("error:", err)

	state, err := cell.State(ctx)
	fmt.Println(len(state.LRPs), "instance starting, remaining MB:", state.Remaining.MemoryMB, err)

	err = cell.Evacuate(ctx)
	fmt.Println("error:", err)
	rejections, err = cell.Perform(ctx, auction.Work{CellID: "cell-1", Items: []auction.Item{item("late", 1)}})
	fmt.Println(rejections[0].Reason, err)
	// Output:
	// huge is refused
	// error: <nil>
	// 1 instance starting, remaining MB: 512 <nil>
	// error: <nil>
	// evacuating <nil>
}
