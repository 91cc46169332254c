package bbs

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrClockSkew is wrapped by every [ClockSkewError].
var ErrClockSkew = errors.New("the clocks are too far apart")

// A ClockSkewError says that this process does not begin to lead, because its
// clock and the store's differ by more than MaxClockSkew. Its own clock would
// stamp records, while convergence, leases and domains use the store's.
type ClockSkewError struct {
	// Role is the role in which this process would lead, for example "bbs".
	Role string
	// Store and Process are the readings of the two clocks at one moment.
	Store, Process time.Time
	// Max is the allowed difference.
	Max time.Duration
}

func (e *ClockSkewError) Error() string {
	const layout = "2006-01-02T15:04:05.000Z07:00"
	return fmt.Sprintf("%v to lead as %q: the store's says %s and this process's %s, a difference of %v where %v is allowed; "+
		"synchronize both hosts (NTP), or give the store and this process the same Now",
		ErrClockSkew, e.Role, e.Store.UTC().Format(layout), e.Process.UTC().Format(layout), e.Store.Sub(e.Process).Abs(), e.Max)
}

// Unwrap makes errors.Is(err, ErrClockSkew) true.
func (e *ClockSkewError) Unwrap() error { return ErrClockSkew }

// checkClocks fails with a *ClockSkewError if this process should not begin to
// lead. It runs before the lease is taken: when the store's clock jumps ahead,
// the lease of a working leader seems free, and must stay with the leader.
func (l *Leadership) checkClocks(ctx context.Context) error {
	if l.o.MaxClockSkew < 0 {
		return nil
	}
	before := l.o.Now()
	store, err := l.o.Store.Now(ctx)
	if err != nil {
		return err
	}
	return l.compareClocks(store, before)
}

// compareClocks publishes the skew of a reading of the store's clock that was
// requested at before and has just come. It fails with a *ClockSkewError if the
// skew is too large.
func (l *Leadership) compareClocks(store, before time.Time) error {
	skew := skewOf(store, before, l.o.Now())
	l.o.Metrics.Gauge("store_clock_skew_seconds", skew.Seconds())
	if l.o.MaxClockSkew < 0 || skew.Abs() <= l.o.MaxClockSkew {
		return nil
	}
	return &ClockSkewError{Role: l.o.Role, Store: store, Process: store.Add(-skew), Max: l.o.MaxClockSkew}
}

// skewOf is how far the store's clock is ahead of this process's, which was
// read before and after it; negative if it is behind. A pause between the
// readings does not count as skew.
func skewOf(store, before, after time.Time) time.Duration {
	switch {
	case store.Before(before):
		return store.Sub(before)
	case store.After(after):
		return store.Sub(after)
	}
	return 0
}

// warn logs that the clocks of a leader and its store differ, at most once a
// minute.
func (l *Leadership) warn(skew error) {
	now := l.o.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if skew != nil && now.Sub(l.warned).Abs() >= time.Minute {
		l.warned = now
		l.o.Logger.Warn("the clock of this process differs from its store's; it goes on leading", "role", l.o.Role, "err", skew)
	}
}
