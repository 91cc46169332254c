package process

import (
	"context"
	"fmt"
	"sync"
)

// looks lets one look at the host serve all callers that wait for one: a look
// costs as much as the host has processes, and thousands of containers may be
// stopped at once.
type looks[T any] struct {
	take func() (T, error)

	mu   sync.Mutex
	next *look[T] // joined by callers until it begins; nil if nobody waits
	busy bool     // run goes on
}

// A look is one call of take. Its result is set before done is closed.
type look[T any] struct {
	done   chan struct{}
	result T
	err    error
}

// join returns what the first look that begins after the call has found: an
// earlier one may have missed what the caller has just done. It costs at most
// the rest of the look that goes on and one more. An error is take's or ctx's.
func (l *looks[T]) join(ctx context.Context) (T, error) {
	l.mu.Lock()
	if l.next == nil {
		l.next = &look[T]{done: make(chan struct{})}
	}
	mine := l.next
	if !l.busy {
		l.busy = true
		go l.run()
	}
	l.mu.Unlock()
	select {
	case <-mine.done:
		return mine.result, mine.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no look at the host has ended in time: %w", ctx.Err())
	}
}

// run looks until nobody waits.
func (l *looks[T]) run() {
	for {
		l.mu.Lock()
		now := l.next
		l.next, l.busy = nil, now != nil
		l.mu.Unlock()
		if now == nil {
			return
		}
		now.result, now.err = l.take()
		close(now.done)
	}
}
