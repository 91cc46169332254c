// Package deadline makes calls that end at their deadline even if the other side
// ignores it.
package deadline

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync/atomic"
	"time"
)

// ErrBusy is the error of a call that was not made because too many earlier
// calls over the same line were abandoned at their deadline and have not returned
// yet.
var ErrBusy = errors.New("earlier calls have missed their deadline and still have not returned")

// A Line carries calls to one party, such as a cell. It is for use by several
// goroutines at once.
type Line struct {
	limit     int32
	abandoned atomic.Int32
}

// NewLine limits how many calls may be abandoned at a time. With a limit of 0
// every call is made in the caller's goroutine, which waits for it without end.
func NewLine(limit int) *Line { return &Line{limit: int32(min(limit, math.MaxInt32))} }

// Busy reports whether a call was abandoned and has not returned yet. Keep a
// busy line: a new one would not count that call.
func (l *Line) Busy() bool { return l.abandoned.Load() > 0 }

// Lines are the lines to several parties, by name. It is for one goroutine at a
// time, apart from To.
type Lines struct {
	limit int
	lines map[string]*Line
}

// NewLines makes lines with this limit each; see NewLine.
func NewLines(limit int) *Lines { return &Lines{limit: limit} }

// Connect makes lines to the named parties that have none, and drops the others
// unless they are busy.
func (l *Lines) Connect(names iter.Seq[string]) {
	lines := map[string]*Line{}
	for name := range names {
		if lines[name] = l.lines[name]; lines[name] == nil {
			lines[name] = NewLine(l.limit)
		}
	}
	for name, line := range l.lines {
		if lines[name] == nil && line.Busy() {
			lines[name] = line
		}
	}
	l.lines = lines
}

// To is the line to a party that was passed to Connect.
func (l *Lines) To(name string) *Line { return l.lines[name] }

// Call makes one call over l and returns at the deadline even if f ignores its
// context. Such a call is abandoned: it goes on in its own goroutine, and its
// answer is dropped.
func Call[T any](ctx context.Context, l *Line, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
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
