package storage

import (
	"context"
	"time"
)

// Wait returns nil when the log of s has an event beyond after or may have one,
// and when after is beyond the log. It calls s.Wait if s is a [Waiter], and
// otherwise looks every interval (default 200 ms). The error is from s, or
// wraps the context's.
func Wait(ctx context.Context, s Store, after Cursor, interval time.Duration) error {
	if w, ok := s.(Waiter); ok {
		return w.Wait(ctx, after)
	}
	if interval <= 0 {
		interval = 200 * time.Millisecond
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		log, err := s.Log(ctx)
		if err != nil || log.Newest != after {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
