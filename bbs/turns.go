package bbs

import (
	"context"
	"sync"
)

// turns let one caller at a time have a key. The zero value is ready for use.
type turns struct {
	mu    sync.Mutex
	taken map[string]*turn // by key
}

// A turn is one key that somebody has or waits for.
type turn struct {
	one     chan struct{} // with an element while somebody has the key
	callers int           // who have it or wait for it; guarded by turns.mu
}

// take waits until nobody else has the key, or ctx ends. After an error the caller has
// nothing; otherwise it calls leave once.
func (t *turns) take(ctx context.Context, key string) (leave func(), err error) {
	t.mu.Lock()
	k := t.taken[key]
	if k == nil {
		if t.taken == nil {
			t.taken = map[string]*turn{}
		}
		k = &turn{one: make(chan struct{}, 1)}
		t.taken[key] = k
	}
	k.callers++
	t.mu.Unlock()
	gone := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if k.callers--; k.callers == 0 {
			delete(t.taken, key)
		}
	}
	select {
	case k.one <- struct{}{}:
		return func() { <-k.one; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	}
}
