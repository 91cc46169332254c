package wire

import (
	"context"
	"sync"
)

// Turns let few callers at a time have a key; the others wait. The zero value is ready
// for use. Its method may be called at the same time.
type Turns[K comparable] struct {
	mu    sync.Mutex
	taken map[K]*turn
}

// A turn is one key that somebody has or waits for.
type turn struct {
	places  chan struct{}
	callers int // who have it or wait for it; guarded by Turns.mu
}

// Take waits until fewer than most others have the key, or ctx ends. All who take a key
// name the same most. After an error, which is that of ctx, the caller has nothing;
// otherwise it calls leave once.
func (t *Turns[K]) Take(ctx context.Context, key K, most int) (leave func(), err error) {
	t.mu.Lock()
	k := t.taken[key]
	if k == nil {
		if t.taken == nil {
			t.taken = map[K]*turn{}
		}
		k = &turn{places: make(chan struct{}, most)}
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
	case k.places <- struct{}{}:
		return func() { <-k.places; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	}
}
