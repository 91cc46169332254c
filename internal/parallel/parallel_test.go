package parallel_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/diegosdk/diego/internal/parallel"
)

func TestEachIsCalledOnceAndAtMostSoManyAtATime(t *testing.T) {
	for _, tt := range []struct{ n, limit int }{{0, 4}, {1, 4}, {3, 4}, {100, 4}} {
		var now, most atomic.Int64
		var mu sync.Mutex
		var seen []int
		parallel.Each(tt.n, tt.limit, func(i int) {
			defer now.Add(-1)
			for at := now.Add(1); ; {
				if before := most.Load(); at <= before || most.CompareAndSwap(before, at) {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, i)
		})
		slices.Sort(seen)
		if len(seen) != tt.n || len(slices.Compact(seen)) != tt.n || most.Load() > int64(tt.limit) {
			t.Errorf("%d calls, %d at a time: %v were made, %d at a time", tt.n, tt.limit, seen, most.Load())
		}
	}
}

func TestOneAtATimeIsALoop(t *testing.T) {
	var seen []int // not guarded: the race detector would see another goroutine
	parallel.Each(5, 1, func(i int) { seen = append(seen, i) })
	if !slices.Equal(seen, []int{0, 1, 2, 3, 4}) {
		t.Errorf("called for %v", seen)
	}
}
