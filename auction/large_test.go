package auction_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
)

// unlikeCells makes n cells that differ in what the seed says: in size, in what
// they offer, in what runs there and in whether they take work.
func unlikeCells(r *rand.Rand, n int, process string) []auction.CellState {
	cells := fleetOf(n, 16<<10)
	sizes, offers, others := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	for i := range cells {
		c := &cells[i]
		c.Zone = fmt.Sprintf("z%d", r.IntN(3))
		if sizes {
			c.Total = auction.Capacity{MemoryMB: 4<<10 + r.Int64N(16<<10), DiskMB: 8<<10 + r.Int64N(16<<10), Containers: 5 + r.Int64N(40)}
			c.Remaining = c.Total
		}
		if offers {
			c.OptionalPlacementTags = []string{c.ID}
		}
		if others {
			c.Evacuating, c.Cordoned, c.Unhealthy = r.IntN(15) == 0, r.IntN(15) == 0, r.IntN(15) == 0
			for range r.IntN(3) {
				c.LRPs = append(c.LRPs, lrp.Key{ProcessGUID: process, DefinitionID: "d", Index: 1000 + i, Domain: "apps"})
				c.Remaining.Containers--
			}
		}
	}
	return cells
}

// withGPUs gives most of the cells GPUs, and has some of the work take them.
func withGPUs(r *rand.Rand, cells []auction.CellState, work []auction.Item) {
	for i := range cells {
		if n := r.Int64N(9); n > 1 {
			cells[i].Total.Extra, cells[i].Remaining.Extra = executor.Amounts{"gpu": n}, executor.Amounts{"gpu": n - r.Int64N(2)}
		}
	}
	for i := range work {
		if work[i].Index%5 < 2 {
			work[i].Extra = executor.Amounts{"gpu": int64(1 + work[i].Index%2)}
		}
	}
}

func TestPlacementsOfLargeAppsAreTheOracles(t *testing.T) {
	for seed := range fewer(7) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			work := largeApps(2, 220)
			for i := range work {
				if work[i].Index%7 == int(seed) { // a definition of another size
					work[i].DefinitionID, work[i].MemoryMB = "e", 1000
				}
			}
			cells := unlikeCells(r, 90, work[0].GUID)
			if seed >= 5 {
				withGPUs(r, cells, work)
			}
			p := auction.Policy{BinPackWeight: one(r.IntN, 0, 0, 0.01), PreferredZones: one(r.IntN, nil, nil, auction.PreferredZones{"z0", "z2"})}
			check(t, cells, work, p)
		})
	}
}

// Once an app is on most cells, the search goes by what earlier ones have found
// out. A packed placement lowers scores, most of all if starting costs nothing.
func TestPlacementsOfAppsOnMostCellsAreTheOracles(t *testing.T) {
	packed := 0
	for seed := range fewer(9) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			cells, work := unlikeCells(r, 150, "none"), largeApps(3, 170)
			var memoryMB int64
			for i := range work {
				if work[i].Index%11 == int(seed) { // a definition of another size
					work[i].DefinitionID, work[i].MemoryMB = "e", 700
				}
				memoryMB += work[i].MemoryMB
			}
			for i := range cells {
				cells[i].Zone = "z1"
				if seed%2 == 0 { // little is left over
					cells[i].Total.MemoryMB = memoryMB/150 + r.Int64N(100)
					cells[i].Remaining = cells[i].Total
				}
			}
			if seed >= 6 {
				withGPUs(r, cells, work)
			}
			p := auction.Policy{StartingContainerWeight: one(r.IntN, 0, -1, 0.05), BinPackWeight: one(r.IntN, 0, 0, 0.01)}
			check(t, cells, work, p)
			if mustPlace(t, cells, work, p).Packed {
				packed++
			}
		})
	}
	if packed == 0 && !testenv.Race {
		t.Error("none is packed")
	}
}

// A process that is on all of the emptiest cells stands in its own way.
func TestPlacementsBehindManyClosedCellsAreTheOracles(t *testing.T) {
	const all, on = 400, 300
	cells, work := fleetOf(all, 16<<10), largeApps(2, 25)
	for i := range cells {
		c := &cells[i]
		c.Zone = "z1"
		if i < on {
			c.LRPs = append(c.LRPs, lrp.Key{ProcessGUID: work[0].GUID, DefinitionID: "d", Index: 1000 + i, Domain: "apps"})
		} else {
			c.Remaining.MemoryMB -= int64(i)
		}
	}
	check(t, cells, work, auction.Policy{})
}

func TestPlacementsOnUnlikeCellsAreTheOracles(t *testing.T) {
	for seed := range fewer(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 4))
			work := apps(r, 300, even)
			for i := range work {
				work[i].MemoryMB += r.Int64N(3000) // many sizes are refused
			}
			for i := range 40 {
				work[i].Key = auction.Key{Kind: auction.Task, GUID: fmt.Sprintf("task-%d", i)}
			}
			check(t, unlikeCells(r, 60, work[100].GUID), work, auction.Policy{})
		})
	}
}

// The last instances of a large app find few cells without one of it, and those of
// other apps move the cells meanwhile.
func TestASearchForAnInstanceOfALargeAppLooksAtFewCells(t *testing.T) {
	sizes := []struct {
		apps, instances, cells int
		most                   float64
	}{{200, 200, 2_000, 8}, {100, 2_000, 2_000, 25}}
	if testenv.Race {
		sizes = sizes[:1]
	}
	for _, tt := range sizes {
		work := largeApps(tt.apps, tt.instances)
		each := float64(auction.Looked(fleetOf(tt.cells, 96<<10), work, auction.Policy{})) / float64(len(work))
		t.Logf("%+v: %.1f for each instance", tt, each)
		if each > tt.most {
			t.Errorf("%+v: it looks at %.1f nodes and cells for each instance", tt, each)
		}
	}
}

// The order of work is found without remembering anything for each index, and the
// cells of a line are in blocks of one allocation.
func TestAllocationsDoNotGrowWithTheInstancesOfAnAppOrWithTheCells(t *testing.T) {
	allocations := func(cells, instances int) float64 {
		fleet, work := fleetOf(cells, 96<<10), largeApps(1, instances)
		return testing.AllocsPerRun(3, func() { mustPlace(t, fleet, work, auction.Policy{}) })
	}
	few, instances := allocations(2_000, 5_000), 40_000
	if testenv.Race {
		instances = 10_000
	}
	for _, tt := range []struct{ cells, instances int }{{2_000, instances}, {16_000, instances}} {
		many := allocations(tt.cells, tt.instances)
		t.Logf("2,000 cells and 5,000 instances: %.0f allocations; %+v: %.0f", few, tt, many)
		if many > few+50 {
			t.Errorf("%+v take %.0f allocations, 2,000 cells and 5,000 instances take %.0f", tt, many, few)
		}
	}
}

func TestTheOrderOfWorkHoldsForIndicesThatAreFarApart(t *testing.T) {
	var want []auction.Item
	for _, index := range []int{0, 1, 2, 77, 1 << 16, 1<<16 + 1, 1 << 33, auction.MaxSize - 1, auction.MaxSize} {
		for _, memory := range []int64{4096, 512, 511, 0} {
			for _, guid := range []string{"a", "b"} {
				i := auction.Item{Key: auction.Key{GUID: guid, Domain: "apps", Index: index, DefinitionID: fmt.Sprint(memory)}}
				i.MemoryMB = memory
				want = append(want, i)
			}
		}
	}
	invalid := []auction.Item{ // refused, in the order of their indices
		{Key: auction.Key{GUID: "a", Index: math.MinInt}},
		{Key: auction.Key{GUID: "b", Index: -5}},
		{Key: auction.Key{GUID: "a", Index: math.MaxInt - 1}},
	}
	for seed := range fewer(20) {
		work := append(slices.Clone(want), invalid...)
		rand.New(rand.NewPCG(seed, 6)).Shuffle(len(work), func(i, j int) { work[i], work[j] = work[j], work[i] })
		r := mustPlace(t, fleetOf(3, 1<<20), work, auction.Policy{})
		if len(r.Placements) != len(want) || len(r.Refusals) != len(invalid) {
			t.Fatalf("seed %d: %d placed, %d refused", seed, len(r.Placements), len(r.Refusals))
		}
		for i := range want {
			if got := r.Placements[i].Item.Key; got != want[i].Key {
				t.Fatalf("seed %d: number %d is %v, want %v", seed, i, got, want[i].Key)
			}
		}
		for i := range invalid {
			if got := r.Refusals[i].Item.Key; got != invalid[i].Key {
				t.Fatalf("seed %d: refusal %d is %v, want %v", seed, i, got, invalid[i].Key)
			}
		}
	}
}

// No kind of work or fleet may make a batch look at many nodes and cells for each
// item.
func TestNoPlacementLooksAtManyCellsForAnItem(t *testing.T) {
	const n, of = 10_000, 2_000
	ordinary := apps(rand.New(rand.NewPCG(1, 1)), n, powers)
	fleet := fleetOf(of, 16<<10)
	change := func(f func(r *rand.Rand, i int, c *auction.CellState)) []auction.CellState {
		r := rand.New(rand.NewPCG(1, 1))
		cells := fleetOf(of, 16<<10)
		for i := range cells {
			f(r, i, &cells[i])
			cells[i].Remaining = cells[i].Total
		}
		return cells
	}
	shapes := apps(rand.New(rand.NewPCG(1, 1)), n, powers)
	for i := range shapes {
		shapes[i].MemoryMB, shapes[i].DiskMB = 20_000+int64(i), 40_000-int64(i)/2
	}
	for _, tt := range []struct {
		name  string
		cells []auction.CellState
		work  []auction.Item
		p     auction.Policy
		most  float64
	}{
		{"ordinary", fleet, ordinary, auction.Policy{}, 8},
		{"one large app", fleet, largeApps(1, n), auction.Policy{}, 15},
		{"large apps on every cell", fleet, largeApps(5, of), auction.Policy{}, 100},
		{"refused shapes", fleet, shapes, auction.Policy{}, 35},
		{"cells of slightly different size", change(func(_ *rand.Rand, i int, c *auction.CellState) { c.Total.MemoryMB += int64(i) }), ordinary, auction.Policy{}, 200},
		{"cells of all sizes", change(func(r *rand.Rand, _ int, c *auction.CellState) {
			c.Total.MemoryMB, c.Total.DiskMB = 8<<10+r.Int64N(24<<10), 8<<10+r.Int64N(24<<10)
		}), ordinary, auction.Policy{}, 230},
		{"cells with offers of their own", change(func(_ *rand.Rand, _ int, c *auction.CellState) { c.OptionalPlacementTags = []string{c.ID} }), ordinary, auction.Policy{}, 8},
		{"preferred zones", fleet, ordinary, auction.PreferredZones{"z1", "z2", "z3"}.Apply(auction.Policy{}), 8},
	} {
		each := float64(auction.Looked(tt.cells, tt.work, tt.p)) / float64(len(tt.work))
		t.Logf("%s: %.1f for each item", tt.name, each)
		if each > tt.most {
			t.Errorf("%s: it looks at %.1f nodes and cells for each item, want at most %v", tt.name, each, tt.most)
		}
	}
}
