package executor

import (
	"context"
	"errors"
)

// What ends a Subscription.
var (
	// ErrClosed: it was closed.
	ErrClosed = errors.New("the subscription is closed")
	// ErrBehind: nobody took its events for too long. Whoever needs to know
	// subscribes again, and then lists.
	ErrBehind = errors.New("the subscription fell too far behind")
)

// A Subscription hands over the events of a cell's containers, per container in
// their order. A slow receiver may miss states that have passed, and never the
// last one.
type Subscription interface {
	// Poll returns the next event, or false if none waits. An error says why
	// there will never be one: ErrClosed or ErrBehind.
	Poll() (Event, bool, error)
	// Next waits for the next event. An error is the context's, ErrClosed or
	// ErrBehind.
	Next(ctx context.Context) (Event, error)
	// Close ends the Subscription. Events that wait are dropped.
	Close()
}
