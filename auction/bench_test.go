package auction_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/diegosdk/diego/auction"
)

func BenchmarkPlace(b *testing.B) {
	for _, size := range []struct {
		items, cells int
		memoryMB     int64
	}{
		{40_000, 100, 320 << 10},
		{40_000, 1_000, 32 << 10},
		{40_000, 10_000, 4 << 10},
		{50_000, 1_250, 32 << 10},
		{1_000_000, 10_000, 96 << 10},
	} {
		b.Run(fmt.Sprintf("items=%d/cells=%d", size.items, size.cells), func(b *testing.B) {
			work := apps(rand.New(rand.NewPCG(1, 1)), size.items, powers)
			place(b, fleetOf(size.cells, size.memoryMB), work, auction.Policy{})
		})
	}
}

// BenchmarkPlaceFull asks for 97 % of the fleet's memory.
func BenchmarkPlaceFull(b *testing.B) {
	for _, draw := range []struct {
		name string
		seed uint64
		draw sizes
	}{{"powers", 0, powers}, {"even", 9, even}} {
		b.Run("items=10000/cells=1000/sizes="+draw.name, func(b *testing.B) {
			work := apps(rand.New(rand.NewPCG(draw.seed, 1)), 10_000, draw.draw)
			place(b, fleetFor(1000, work, 0.97), work, auction.Policy{})
		})
	}
}

// BenchmarkPlaceOverfull asks for twice the fleet's memory, so that half of the
// work is refused, in one domain and in several.
func BenchmarkPlaceOverfull(b *testing.B) {
	work := apps(rand.New(rand.NewPCG(1, 1)), 50_000, even)
	b.Run("items=50000/cells=1250", func(b *testing.B) {
		place(b, fleetFor(1250, work, 2), work, auction.Policy{})
	})
	b.Run("items=50000/cells=1250/domains=10", func(b *testing.B) {
		work := slices.Clone(work)
		for i := range work {
			work[i].Domain = "domain-" + work[i].GUID[len(work[i].GUID)-1:]
			if work[i].Domain > "domain-9" {
				work[i].Domain = "domain-0"
			}
		}
		place(b, fleetFor(1250, work, 2), work, auction.Policy{})
	})
}

// BenchmarkPlaceTasks places tasks only.
func BenchmarkPlaceTasks(b *testing.B) {
	work := apps(rand.New(rand.NewPCG(1, 1)), 50_000, powers)
	for i := range work {
		work[i].Key = auction.Key{Kind: auction.Task, GUID: fmt.Sprintf("task-%06d", i)}
	}
	b.Run("items=50000/cells=1250", func(b *testing.B) {
		place(b, fleetOf(1250, 32<<10), work, auction.Policy{})
	})
}

// BenchmarkPlaceOneProcess places a single process with more instances than
// there are cells.
func BenchmarkPlaceOneProcess(b *testing.B) {
	work := apps(rand.New(rand.NewPCG(1, 1)), 10_000, func(*rand.Rand) int64 { return 256 })
	for i := range work {
		work[i].GUID, work[i].Index = "big", i
	}
	b.Run("items=10000/cells=1250", func(b *testing.B) {
		place(b, fleetOf(1250, 32<<10), work, auction.Policy{})
	})
}

// BenchmarkPlaceUnlikeCells places onto cells of which no two have the same
// size, so that the index is of no use, and by a scan.
func BenchmarkPlaceUnlikeCells(b *testing.B) {
	cells := fleetOf(1250, 32<<10)
	for i := range cells {
		cells[i].Total.MemoryMB += int64(i)
		cells[i].Remaining = cells[i].Total
	}
	work := apps(rand.New(rand.NewPCG(1, 1)), 10_000, powers)
	all := func(*auction.Item, *auction.CellState) auction.CellReason { return "" }
	b.Run("items=10000/cells=1250/by=index", func(b *testing.B) { place(b, cells, work, auction.Policy{}) })
	b.Run("items=10000/cells=1250/by=scan", func(b *testing.B) {
		place(b, cells, work, auction.Policy{Filters: []auction.Filter{all}})
	})
}

// place reports what a user feels.
func place(b *testing.B, cells []auction.CellState, work []auction.Item, p auction.Policy) {
	b.ReportAllocs()
	var r auction.Result
	for b.Loop() {
		r = mustPlace(b, cells, work, p)
	}
	q := qualityOf(cells, r)
	b.ReportMetric(float64(len(work)*b.N)/b.Elapsed().Seconds(), "placements/s")
	b.ReportMetric(float64(q.unplaced), "unplaced")
	b.ReportMetric(q.stddev, "stddev")
	b.ReportMetric(float64(q.skew), "skew")
}

// BenchmarkPlaceImages gives every app an image of its own and asks for twice
// the fleet's memory.
func BenchmarkPlaceImages(b *testing.B) {
	work := apps(rand.New(rand.NewPCG(1, 1)), 50_000, powers)
	cells := fleetFor(1250, work, 2)
	for i := range work {
		work[i].RootFS = "docker:///images/" + work[i].GUID
	}
	b.Run("items=50000/cells=1250", func(b *testing.B) { place(b, cells, work, auction.Policy{}) })
}
