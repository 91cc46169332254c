package manager

import (
	"context"
	"sync"
	"time"
)

// A pace bounds how often something happens: in the order of the callers, at a rate,
// and after a pause a number of times at once.
type pace struct {
	every time.Duration // at the rate, one per
	burst int

	mu   sync.Mutex
	next time.Time // when the next one is due, were there no burst
}

// turn takes n turns at once, and returns how long to wait before the first.
func (p *pace) turn(now time.Time, n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rested := now.Add(-time.Duration(p.burst-1) * p.every); p.next.Before(rested) {
		p.next = rested
	}
	wait := max(p.next.Sub(now), 0)
	p.next = p.next.Add(time.Duration(n) * p.every)
	return wait
}

// wait waits for n turns, or for the end of ctx, which it returns.
func (p *pace) wait(ctx context.Context, n int) error {
	wait := p.turn(time.Now(), n)
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
