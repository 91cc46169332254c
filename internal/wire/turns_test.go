package wire

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestFewCallersAtATimeHaveAKey(t *testing.T) {
	for _, places := range []int{1, 3} {
		var all Turns[string]
		var have, most atomic.Int32
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				leave, err := all.Take(t.Context(), "a", places)
				if err != nil {
					t.Error(err)
					return
				}
				n := have.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				runtime.Gosched() // so that others come meanwhile
				have.Add(-1)
				leave()
			})
		}
		callers.Wait()
		if n := int(most.Load()); n > places {
			t.Errorf("%d callers have a key of which %d may have it", n, places)
		}

		var leaves []func()
		for range places {
			leave, err := all.Take(t.Context(), "a", places)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		other, err := all.Take(t.Context(), "b", places) // which waits for nobody
		if err != nil {
			t.Fatal(err)
		}
		other()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := all.Take(ctx, "a", places); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller whose context has ended gets %v", err)
		}
		for _, leave := range leaves {
			leave()
		}
		if len(all.taken) != 0 {
			t.Errorf("%d keys are remembered that nobody has", len(all.taken))
		}
	}
}
