package auction_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/diegosdk/diego/auction"
)

func BenchmarkPlace(b *testing.B) {
	for _, size := range []struct {
		items, cells int
		memoryMB     int64
	}{
		{4_000, 100, 32 << 10},
		{40_000, 1_000, 32 << 10},
		{50_000, 1_250, 32 << 10},
		{400_000, 10_000, 32 << 10},
		{1_000_000, 10_000, 96 << 10},
	} {
		b.Run(fmt.Sprintf("items=%d/cells=%d", size.items, size.cells), func(b *testing.B) {
			work := apps(rand.New(rand.NewPCG(1, 1)), size.items, math.MaxInt64)
			place(b, fleetOf(size.cells, size.memoryMB), work)
		})
	}
}

// place reports what a user feels.
func place(b *testing.B, cells []auction.CellState, work []auction.Item) {
	b.ReportAllocs()
	var r auction.Result
	for b.Loop() {
		var err error
		if r, err = auction.Place(cells, work, auction.Policy{}); err != nil {
			b.Fatal(err)
		}
	}
	q := qualityOf(cells, r)
	b.ReportMetric(float64(len(work)*b.N)/b.Elapsed().Seconds(), "placements/s")
	b.ReportMetric(float64(q.unplaced), "unplaced")
	b.ReportMetric(q.stddev, "stddev")
	b.ReportMetric(float64(q.skew), "skew")
}
