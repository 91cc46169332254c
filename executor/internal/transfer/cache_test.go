package transfer

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

// Another tenant decides how many files are removed to make room.
func TestWhoNeedsRoomWaitsASecondForItsRemoval(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		var removed atomic.Bool
		c := cache{limit: 10, most: 10, keys: map[string]*slot{}, dropping: make(chan struct{}, 1), removeAll: func(context.Context, string) error {
			time.Sleep(time.Minute)
			removed.Store(true)
			return nil
		}}
		put := func(key string) {
			s, err := c.enter(t.Context(), key, "")
			if err != nil {
				t.Fatal(err)
			}
			c.put(s, &version{path: key, size: 8}).Release()
			c.leave(key, s, "")
		}
		put("of another one")
		began := time.Now()
		put("own")
		if took := time.Since(began); took != time.Second || removed.Load() {
			t.Errorf("to make room took %v, removed: %v", took, removed.Load())
		}
		clear(c.keys) // nothing else is kept
		c.bytes, c.count = 0, 0
		if !c.dropUnused(t.Context(), 0) || time.Since(began) != time.Minute || !removed.Load() {
			t.Errorf("who finds the disk full waits %v, and not until what was evicted is removed", time.Since(began))
		}
		put("last")
		began = time.Now()
		if !c.dropUnused(t.Context(), 1) || time.Since(began) != time.Minute {
			t.Errorf("who finds the disk full waits %v, and not until what was kept is removed", time.Since(began))
		}
		put("another")
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if c.dropUnused(ctx, 2) || time.Since(began) != 2*time.Second {
			t.Errorf("who is called off waits %v for a removal", time.Since(began))
		}
		time.Sleep(time.Minute) // until it is over
	})
}
