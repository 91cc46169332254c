package bbs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/diegosdk/diego/storage"
)

func TestGapsAreWhatIsNotAmongOnesOwn(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 2000 {
		var added spans
		own := map[int64]bool{}
		for range random.IntN(8) {
			first := int64(random.IntN(30))
			last := first + int64(random.IntN(4))
			added = added.add(span{storage.Cursor(first), storage.Cursor(last)})
			for n := first; n <= last; n++ {
				own[n] = true
			}
		}
		first := int64(random.IntN(30))
		last := first - 1 + int64(random.IntN(15))
		var want, got []int64
		for n := first; n <= last; n++ {
			if !own[n] {
				want = append(want, n)
			}
		}
		for _, gap := range added.gaps(span{storage.Cursor(first), storage.Cursor(last)}) {
			for n := gap.first; n <= gap.last; n++ {
				got = append(got, int64(n))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v without %v: got %v, want %v", [2]int64{first, last}, added, got, want)
		}
	}
}
