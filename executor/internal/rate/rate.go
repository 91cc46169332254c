// Package rate bounds how often something happens.
package rate

import (
	"context"
	"sync"
	"time"
)

// A Rate bounds how often something happens: in the order of the callers, at a rate,
// and after a pause a number of times at once. Any number of goroutines may call its
// methods.
type Rate struct {
	Every time.Duration // at the rate, one per
	Burst int
	// Longest is the longest wait for a turn. What is due later than that is forgiven, so
	// a rate that becomes faster is not held to what a slower one owes. 0 means no bound.
	Longest time.Duration

	mu   sync.Mutex
	next time.Time // when the next one is due, were there no burst
}

// Turn takes n turns at once, and returns how long to wait before the first.
func (p *Rate) Turn(now time.Time, n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rested := now.Add(-time.Duration(p.Burst-1) * p.Every); p.next.Before(rested) {
		p.next = rested
	}
	if latest := now.Add(p.Longest); p.Longest > 0 && p.next.After(latest) {
		p.next = latest
	}
	wait := max(p.next.Sub(now), 0)
	p.next = p.next.Add(time.Duration(n) * p.Every)
	return wait
}

// Wait waits for n turns, or for the end of ctx, which it returns.
func (p *Rate) Wait(ctx context.Context, n int) error {
	wait := p.Turn(time.Now(), n)
	if wait == 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
