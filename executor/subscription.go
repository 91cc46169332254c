package executor

import (
	"context"
	"errors"
)

// Errors that end a Subscription.
var (
	// ErrClosed: the Subscription was closed.
	ErrClosed = errors.New("the subscription is closed")
	// ErrBehind: nobody took its events for too long. To catch up, subscribe
	// again and then list.
	ErrBehind = errors.New("the subscription fell too far behind")
)

// A Subscription delivers the events of a cell's containers, in order for each
// container. A slow receiver may miss states that have passed, but never the
// last one. One goroutine at a time may call Poll and Next; Close may be called
// concurrently with them.
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
