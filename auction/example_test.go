package auction_test

import (
	"fmt"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// exampleCell is an empty cell of 8 GB.
func exampleCell(id, zone string) auction.CellState {
	size := auction.Capacity{MemoryMB: 8192, DiskMB: 65536, Containers: 250}
	return auction.CellState{
		ID: id, Zone: zone, Total: size, Remaining: size,
		RootFSProviders: []string{"preloaded:linux", "docker"},
	}
}

var (
	exampleSize = executor.Resources{MemoryMB: 2048, DiskMB: 1024}
	exampleInfo = executor.RunInfo{RootFS: "preloaded:linux"}
)

// exampleWork is n instances of the process web.
func exampleWork(n int) []auction.Item {
	d := &lrp.Deployment{
		ProcessGUID: "web", Domain: "apps", ActiveDefinitionID: "v1",
		Definitions: map[string]lrp.Definition{"v1": {Resources: exampleSize, RunInfo: exampleInfo}},
	}
	var work []auction.Item
	for index := range n {
		key := lrp.Key{ProcessGUID: "web", DefinitionID: "v1", Index: index, Domain: "apps"}
		item, err := auction.NewLRP(d, key, time.Time{})
		if err != nil {
			panic(err)
		}
		work = append(work, item)
	}
	return work
}

// Three instances go to three zones. The one that is too large for any cell
// is refused, with what is in its way.
func Example() {
	cells := []auction.CellState{exampleCell("cell-1", "z1"), exampleCell("cell-2", "z1"), exampleCell("cell-3", "z2"), exampleCell("cell-4", "z3")}
	cells[1].Evacuating = true
	work := append(exampleWork(3), auction.NewTask(&task.Task{
		GUID: "report", Domain: "apps",
		Definition: task.Definition{Resources: executor.Resources{MemoryMB: 9000}, RunInfo: exampleInfo},
	}, time.Time{}))

	result, err := auction.Place(cells, work, auction.Policy{})
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range result.Placements {
		fmt.Println(p.Item.Key, "on", p.CellID)
	}
	for _, r := range result.Refusals {
		fmt.Println(r)
	}
	fmt.Println(result.Placements[2])
	// Output:
	// lrp web.0 (definition v1) on cell-1
	// lrp web.1 (definition v1) on cell-3
	// lrp web.2 (definition v1) on cell-4
	// task report: insufficient resources: of 4 cells 1 evacuating, 3 short of memory; the nearest, cell-1, lacks 2856 MiB of memory
	// lrp web.2 (definition v1) goes to cell-4: resources 0.090 (memory 25.0%, disk 1.6%, containers 0.4%, starting +0.00); runner-up cell-1: 1 of its process in the zone and 1 on the cell, resources 0.430 (memory 50.0%, disk 3.1%, containers 0.8%, starting +0.25)
}

// Batch jobs on machines with GPUs. They are not containers, so neither machines
// nor jobs say more than what they have and what they take.
func ExamplePlace_furtherResources() {
	machine := func(id string, gpus int64) auction.CellState {
		size := auction.Capacity{Extra: executor.Amounts{"gpu": gpus}}
		return auction.CellState{ID: id, Total: size, Remaining: size}
	}
	job := func(id string, gpus int64) auction.Item {
		return auction.Item{
			Key:       auction.Key{Kind: auction.Task, GUID: id},
			Resources: executor.Resources{Extra: executor.Amounts{"gpu": gpus}},
		}
	}
	machines := []auction.CellState{machine("dgx-1", 8), machine("dgx-2", 8), machine("desktop", 1)}
	jobs := []auction.Item{job("evaluate", 1), job("train", 8), job("tune", 4), job("simulate", 6)}

	result, err := auction.Place(machines, jobs, auction.Policy{})
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range result.Placements {
		fmt.Println(p.Item.Key, "on", p.CellID)
	}
	for _, r := range result.Refusals {
		fmt.Println(r)
	}
	// Output:
	// task train on dgx-1
	// task simulate on dgx-2
	// task evaluate on desktop
	// task tune: insufficient resources: of 3 cells 3 short of gpu; the nearest, dgx-2, lacks 2 gpu
}

// A filter of one's own: no cell takes more than two instances.
func ExampleFilter() {
	atMostTwo := func(item *auction.Item, cell *auction.CellState) auction.CellReason {
		if item.Kind == auction.LRP && len(cell.LRPs) >= 2 {
			return "with two instances"
		}
		return ""
	}
	cells := []auction.CellState{exampleCell("cell-1", "z1"), exampleCell("cell-2", "z2")}

	result, err := auction.Place(cells, exampleWork(5), auction.Policy{Filters: []auction.Filter{atMostTwo}})
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range result.Placements {
		fmt.Println(p.Item.Key, "on", p.CellID)
	}
	fmt.Println(result.Refusals[0])
	// Output:
	// lrp web.0 (definition v1) on cell-1
	// lrp web.1 (definition v1) on cell-2
	// lrp web.2 (definition v1) on cell-1
	// lrp web.3 (definition v1) on cell-2
	// lrp web.4 (definition v1): found no compatible cells: of 2 cells 2 with two instances
}

// A custom scorer: the fullest cell first, in any zone.
func ExampleScorer() {
	fullest := func(_ *auction.Item, _ *auction.CellState, score auction.Score) float64 {
		return -score.Memory
	}
	cells := []auction.CellState{exampleCell("cell-1", "z1"), exampleCell("cell-2", "z2")}
	cells[1].Remaining.MemoryMB = 4096

	result, err := auction.Place(cells, exampleWork(3), auction.Policy{Scorer: fullest})
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range result.Placements {
		fmt.Println(p.Item.Key, "on", p.CellID, "at", p.Score.Memory)
	}
	// Output:
	// lrp web.0 (definition v1) on cell-2 at 0.75
	// lrp web.1 (definition v1) on cell-2 at 1
	// lrp web.2 (definition v1) on cell-1 at 0.25
}

// The older rule for zones places an instance by its index.
func ExamplePreferredZones() {
	zones := auction.PreferredZones{"z0", "z1", "z2"}
	cells := []auction.CellState{exampleCell("cell-a", "z0"), exampleCell("cell-b", "z1")} // nothing in z2
	result, err := auction.Place(cells, exampleWork(6), zones.Apply(auction.Policy{}))
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range result.Placements {
		fmt.Println(p.Item.Key, "prefers", zones.Zone(p.Item.GUID, p.Item.Index), "and is on", p.CellID)
	}
	for _, r := range result.Refusals {
		fmt.Println(r)
	}
	// Output:
	// lrp web.0 (definition v1) prefers z1 and is on cell-b
	// lrp web.1 (definition v1) prefers z2 and is on cell-a
	// lrp web.2 (definition v1) prefers z0 and is on cell-a
	// lrp web.3 (definition v1) prefers z1 and is on cell-b
	// lrp web.5 (definition v1) prefers z0 and is on cell-a
	// lrp web.4 (definition v1): found no compatible cells: of 2 cells 2 outside the preferred zone
}
