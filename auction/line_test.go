package auction

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A line's cells are in the order of their scores, however they move.
func TestALineKeepsItsOrder(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := &fleet{starting: 1, cells: make([]cell, 700), places: make([]int32, 700)}
		var cells []int32
		for i := range f.cells {
			cells = append(cells, int32(i))
			f.places[i] = 64 + int32(i)
		}
		l := newLine(len(cells))
		for range 600 {
			l.catchUp(f, cells, 64)
			most := 1 + 100*r.IntN(2)
			for range r.IntN(most) + 1 { // sometimes so many that the line is made anew
				n := int32(r.IntN(len(cells)))
				f.cells[n].starting = int32(r.IntN(1+300*int(seed%2)) + int(seed)*r.IntN(4))
				l.stale.add(n, len(cells))
			}
		}
		l.catchUp(f, cells, 64)
		var want []spot
		for _, n := range cells {
			want = append(want, spot{int64(f.cells[n].starting), n, f.places[n]})
		}
		slices.SortFunc(want, func(a, b spot) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		if got := slices.Concat(l.blocks...); !slices.Equal(got, want) {
			t.Errorf("seed %d: the line is out of order", seed)
		}
		for _, b := range l.blocks {
			if len(b) == 0 || len(b) > maxBlock {
				t.Errorf("seed %d: a block has %d cells", seed, len(b))
			}
		}
	}
}
