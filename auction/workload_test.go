package auction_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
)

// fleetOf makes n equal, empty cells in three zones.
func fleetOf(n int, memoryMB int64) []auction.CellState {
	cells := make([]auction.CellState, n)
	for i := range cells {
		total := auction.Capacity{MemoryMB: memoryMB, DiskMB: memoryMB, Containers: 512}
		cells[i] = auction.CellState{
			ID:              fmt.Sprintf("cell-%05d", i),
			Zone:            fmt.Sprintf("z%d", i%3+1),
			Total:           total,
			Remaining:       total,
			RootFSProviders: []string{"preloaded:linux", "docker"},
			Index:           i / 3,
		}
	}
	return cells
}

// A sizes draws the memory of an app's instances, in mebibytes.
type sizes func(r *rand.Rand) int64

// powers draws 64 MB, 128 MB … 2 GB, even draws anything between.
func powers(r *rand.Rand) int64 { return 64 << r.IntN(6) }
func even(r *rand.Rand) int64   { return 64 + r.Int64N(2048-64+1) }

// apps makes n items of apps with 1 to 50 instances. Disk is as large as
// memory, as are the cells'.
func apps(r *rand.Rand, n int, draw sizes) []auction.Item {
	var items []auction.Item
	for len(items) < n {
		memory, guid := draw(r), fmt.Sprintf("app-%08x", r.Uint32())
		for i := range min(1+r.IntN(50), n-len(items)) {
			items = append(items, auction.Item{
				Key:       auction.Key{GUID: guid, Domain: "apps", Index: i, DefinitionID: "d"},
				Resources: executor.Resources{MemoryMB: memory, DiskMB: memory},
				RootFS:    "preloaded:linux",
			})
		}
	}
	return items
}

// fleetFor makes n cells whose memory is so large that the work needs the given
// part of it.
func fleetFor(n int, work []auction.Item, demand float64) []auction.CellState {
	var memoryMB int64
	for _, i := range work {
		memoryMB += i.MemoryMB
	}
	return fleetOf(n, int64(float64(memoryMB)/demand/float64(n)))
}

// quality is what an operator asks of a placement as a whole.
type quality struct {
	unplaced int
	// stddev is the standard deviation over the cells of their memory use.
	stddev float64
	// skew is the largest difference between the zones' numbers of instances
	// of one app; missing counts the apps of three and more that miss a zone.
	skew, missing int
}

func qualityOf(cells []auction.CellState, r auction.Result) quality {
	q := quality{unplaced: len(r.Refusals)}
	used, zone := map[string]int64{}, map[string]string{}
	for _, c := range cells {
		used[c.ID] = c.Total.MemoryMB - c.Remaining.MemoryMB
		zone[c.ID] = c.Zone
	}
	perApp := map[string]map[string]int{}
	for _, p := range r.Placements {
		used[p.CellID] += p.Item.MemoryMB
		if perApp[p.Item.GUID] == nil {
			perApp[p.Item.GUID] = map[string]int{"z1": 0, "z2": 0, "z3": 0}
		}
		perApp[p.Item.GUID][zone[p.CellID]]++
	}
	for _, zones := range perApp {
		least, most := min(zones["z1"], zones["z2"], zones["z3"]), max(zones["z1"], zones["z2"], zones["z3"])
		q.skew = max(q.skew, most-least)
		if least == 0 && zones["z1"]+zones["z2"]+zones["z3"] >= 3 {
			q.missing++
		}
	}
	var sum, squares float64
	for _, c := range cells {
		use := float64(used[c.ID]) / float64(c.Total.MemoryMB)
		sum += use
		squares += use * use
	}
	mean := sum / float64(len(cells))
	q.stddev = math.Sqrt(max(0, squares/float64(len(cells))-mean*mean))
	return q
}
