// Command scorer places work by a rule of its own: cells that cost less come
// first, in any zone, as long as they are less than 80 % full. The rule
// is a pure function of the cell and of what auction.Place thinks of it; where
// it ties, Place's own objective decides.
package main

import (
	"fmt"
	"log"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// price is per hour, by the first of a cell's optional placement tags that has one.
var price = map[string]float64{"spot": 0.03, "reserved": 0.08}

// cheap ranks a cell: less is better.
func cheap(_ *auction.Item, cell *auction.CellState, score auction.Score) float64 {
	const onDemand, full = 0.20, 0.8
	rank := onDemand
	for _, tag := range cell.OptionalPlacementTags {
		if p, ok := price[tag]; ok {
			rank = p
			break
		}
	}
	if score.Memory > full {
		rank++ // anything else is better
	}
	return rank
}

func cell(id, zone string, tags ...string) auction.CellState {
	size := auction.Capacity{MemoryMB: 4096, DiskMB: 32_768, Containers: 100}
	return auction.CellState{
		ID: id, Zone: zone, Total: size, Remaining: size,
		RootFSProviders: []string{"preloaded:linux"}, OptionalPlacementTags: tags,
	}
}

func work(instances int) (items []auction.Item) {
	d := &lrp.Deployment{ProcessGUID: "web", Domain: "apps", ActiveDefinitionID: "v1", Definitions: map[string]lrp.Definition{
		"v1": {Resources: executor.Resources{MemoryMB: 1024, DiskMB: 512}, RunInfo: executor.RunInfo{RootFS: "preloaded:linux"}},
	}}
	for i := range instances {
		item, err := auction.NewLRP(d, lrp.Key{ProcessGUID: "web", Index: i, DefinitionID: "v1", Domain: "apps"}, time.Time{})
		if err != nil {
			log.Fatal(err)
		}
		items = append(items, item)
	}
	return items
}

func main() {
	cells := []auction.CellState{cell("a-1", "z1"), cell("b-1", "z2", "spot"), cell("b-2", "z2", "reserved")}
	for _, rule := range []struct {
		name   string
		policy auction.Policy
	}{{"as usual", auction.Policy{}}, {"cheap first", auction.Policy{Scorer: cheap}}} {
		fmt.Println(rule.name)
		result, err := auction.Place(cells, work(5), rule.policy)
		if err != nil {
			log.Fatal(err)
		}
		for _, p := range result.Placements {
			fmt.Printf("  web/%d on %s, memory %.0f%%, instead of %s\n", p.Item.Index, p.CellID, 100*p.Score.Memory, p.RunnerUp.CellID)
		}
	}
}
