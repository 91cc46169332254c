package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/diegosdk/diego/storage"
)

// Restored implements storage.Restorer. Call it after the function that Save
// returned.
func (s *Store) Restored(ctx context.Context) error {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(ctx); err != nil {
		return err
	}
	c.own()
	st, now := &c.state, c.now()
	g := storage.NextGap(st.newest, st.newest, now)
	gaps := slices.DeleteFunc(slices.Clone(st.gaps), func(g storage.Gap) bool { return g.First < st.oldest })
	var widened []storage.Gap
	st.gaps, widened = storage.MergeGaps(append(gaps, g))
	st.log = widen(st.log, widened)
	if len(st.log) == 0 {
		st.oldest = g.First
	}
	st.newest = g.First - 1
	c.append([]storage.Event{{Gap: &g}}, now)
	c.floor = max(c.floor, int64(g.First))
	return nil
}

// widen returns a log whose gaps were merged. Snapshots keep the log that they
// have.
func widen(log []storage.Event, widened []storage.Gap) []storage.Event {
	if len(widened) == 0 {
		return log
	}
	var merged []storage.Event
	for _, e := range log {
		for len(widened) > 0 && e.Sequence > widened[0].First {
			widened = widened[1:]
		}
		if len(widened) > 0 && e.Sequence > widened[0].After {
			if e.Sequence < widened[0].First {
				continue
			}
			e.Gap = &widened[0]
		}
		merged = append(merged, e)
	}
	return merged
}

// Save remembers the content of the store. fallBack puts it back, as a power
// cut or a restored backup does to a store on disk; it may be called again.
// Save is for tests. They call Restored after fallBack, because this store does
// not notice by itself that it went back.
func (s *Store) Save() (fallBack func()) {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	saved, floor := c.state, c.floor
	c.shared, c.leasesShared = true, true
	saved.log = slices.Clip(saved.log)
	sizes, bytes := slices.Clone(c.sizes), c.bytes
	requests, remembered, aside := maps.Clone(c.requests), slices.Clone(c.remembered), slices.Clone(c.aside)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.state, c.shared, c.leasesShared, c.floor = saved, true, true, floor
		c.requests, c.remembered, c.aside = maps.Clone(requests), slices.Clone(remembered), slices.Clone(aside)
		c.sizes, c.bytes = slices.Clone(sizes), bytes
		if c.wake != nil {
			close(c.wake)
			c.wake = nil
		}
	}
}
