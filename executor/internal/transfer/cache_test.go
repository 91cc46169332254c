package transfer

import (
	"context"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

// Another tenant decides how many files are removed to make room.
func TestWhoNeedsRoomWaitsASecondForItsRemoval(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		removed := false
		c := cache{limit: 10, most: 10, keys: map[string]*slot{}, removeAll: func(context.Context, string) error {
			time.Sleep(time.Minute)
			removed = true
			return nil
		}}
		put := func(key string) {
			s, err := c.enter(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			c.put(s, &version{path: key, size: 8}).Release()
			c.leave(key, s)
		}
		put("of another one")
		began := time.Now()
		put("own")
		if took := time.Since(began); took != time.Second || removed {
			t.Errorf("to make room took %v, removed: %v", took, removed)
		}
		time.Sleep(time.Minute)
		if !removed || len(c.keys) != 1 {
			t.Errorf("removed in the end: %v; %d are kept", removed, len(c.keys))
		}
		if began = time.Now(); !c.dropUnused(0) || time.Since(began) != time.Minute {
			t.Errorf("who has no disk left waits %v", time.Since(began))
		}
	})
}
