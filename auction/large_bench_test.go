package auction_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
)

// largeApps makes apps with so many instances each, of 64 MB to 2 GB.
func largeApps(n, instances int) []auction.Item {
	r := rand.New(rand.NewPCG(1, 1))
	items := make([]auction.Item, 0, n*instances)
	for range n {
		memory, guid := powers(r), fmt.Sprintf("app-%08x", r.Uint32())
		for i := range instances {
			items = append(items, auction.Item{
				Key:       auction.Key{GUID: guid, Domain: "apps", Index: i, DefinitionID: "d"},
				Resources: executor.Resources{MemoryMB: memory, DiskMB: memory},
				RootFS:    "preloaded:linux",
			})
		}
	}
	return items
}

// BenchmarkPlaceLargeApps places apps of many instances, of which the last has
// more than there are cells.
func BenchmarkPlaceLargeApps(b *testing.B) {
	for _, size := range []struct{ apps, instances int }{{1_000, 1_000}, {100, 10_000}, {1, 50_000}} {
		b.Run(fmt.Sprintf("apps=%d/instances=%d/cells=10000", size.apps, size.instances), func(b *testing.B) {
			place(b, fleetOf(10_000, 96<<10), largeApps(size.apps, size.instances), auction.Policy{})
		})
	}
}

// BenchmarkPlaceRefusedShapes asks for 50,000 items of which each has a size of
// its own and none fits.
func BenchmarkPlaceRefusedShapes(b *testing.B) {
	work := apps(rand.New(rand.NewPCG(1, 1)), 50_000, even)
	for i := range work {
		work[i].MemoryMB = 20_000 + int64(i)
		work[i].DiskMB = 40_000 - int64(i)/2
	}
	cells := fleetOf(10_000, 32<<10)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range cells {
		cells[i].Remaining.MemoryMB = r.Int64N(16 << 10)
		cells[i].Remaining.DiskMB = r.Int64N(16 << 10)
	}
	b.Run("items=50000/cells=10000", func(b *testing.B) { place(b, cells, work, auction.Policy{}) })
}

// BenchmarkPlaceOwnClasses places onto cells of which no two are alike: by size,
// slightly or in every way, or by what they offer.
func BenchmarkPlaceOwnClasses(b *testing.B) {
	for _, unlike := range []struct {
		name string
		by   func(r *rand.Rand, i int, c *auction.CellState)
	}{
		{"size", func(_ *rand.Rand, i int, c *auction.CellState) { c.Total.MemoryMB += int64(i) }},
		{"sizes", func(r *rand.Rand, _ int, c *auction.CellState) {
			c.Total = auction.Capacity{MemoryMB: 16<<10 + r.Int64N(48<<10), DiskMB: 16<<10 + r.Int64N(48<<10), Containers: 128 + r.Int64N(512)}
		}},
		{"offers", func(_ *rand.Rand, _ int, c *auction.CellState) { c.OptionalPlacementTags = []string{c.ID} }},
	} {
		b.Run("items=50000/cells=10000/by="+unlike.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			cells := fleetOf(10_000, 32<<10)
			for i := range cells {
				unlike.by(r, i, &cells[i])
				cells[i].Remaining = cells[i].Total
			}
			place(b, cells, apps(rand.New(rand.NewPCG(1, 1)), 50_000, powers), auction.Policy{})
		})
	}
}

// BenchmarkPlacePreferredZones places by the older rule for zones.
func BenchmarkPlacePreferredZones(b *testing.B) {
	policy := auction.PreferredZones{"z1", "z2", "z3"}.Apply(auction.Policy{})
	work := apps(rand.New(rand.NewPCG(1, 1)), 50_000, powers)
	b.Run("items=50000/cells=10000", func(b *testing.B) { place(b, fleetOf(10_000, 32<<10), work, policy) })
}
