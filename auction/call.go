package auction

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrBusy is the error of a call that was not made because too many earlier
// calls to the same cell, Directory or Reporter were abandoned at their deadline
// and have not returned yet.
var ErrBusy = errors.New("earlier calls have missed their deadline and still have not returned")

// A line carries calls to one party: a cell, the Directory or the Reporter. It
// is for use by several goroutines at once.
type line struct {
	// limit bounds the calls that are abandoned at a time. 0 makes every call
	// in the caller's goroutine and waits for it without end.
	limit     int32
	abandoned atomic.Int32
}

// call makes one call over l and returns at the deadline even if f ignores its
// context. Such a call is abandoned: it goes on in its own goroutine, and its
// answer is dropped.
func call[T any](ctx context.Context, l *line, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	var none T
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch {
	case l.limit == 0:
		return f(ctx)
	case l.abandoned.Load() >= l.limit:
		return none, ErrBusy
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := f(ctx)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		l.abandoned.Add(1)
		go func() {
			<-answers
			l.abandoned.Add(-1)
		}()
		return none, ctx.Err()
	}
}
