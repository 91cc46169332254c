// Package group gathers the requests of several goroutines into batches.
package group

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A Group gathers the simultaneous requests of several goroutines and carries
// them out together: while one batch is under way, the next one collects.
//
// Its fields are set before its first use. Any number of goroutines may call
// its methods.
type Group[T Member] struct {
	// Limit is how many batches are under way at once, Most how many members a
	// batch has.
	Limit, Most int
	// Run carries a batch out, and finishes each of its members.
	Run func([]T)
	// Begin is called for each request, which its error refuses, and End when the
	// request is no longer part of anything.
	Begin func() error
	End   func()
	// Gather waits, before a batch, for callers whose last batch has just ended
	// and who will soon be back with their next request.
	Gather bool

	mu      sync.Mutex
	waiting []T
	running int
	// want is how many requests there will be once the callers of the last batch
	// are back, and enough is closed when they are there. It is 0 after a batch
	// that failed and so finished nobody.
	want   int
	enough chan struct{}
}

// A Member is a request of a group. It embeds a Ticket.
type Member interface {
	Take() bool
	Finished() <-chan struct{}
	abandon() bool // only a Ticket has it
}

// A Ticket tells whether a request is waiting, taken or abandoned, and when it
// is done.
type Ticket struct {
	state atomic.Int32
	done  chan struct{}
}

const (
	waits int32 = iota
	taken
	abandoned
)

// NewTicket returns a ticket that waits.
func NewTicket() Ticket { return Ticket{done: make(chan struct{})} }

// Take makes the request part of a batch, unless its caller has gone.
func (t *Ticket) Take() bool { return t.state.CompareAndSwap(waits, taken) }

// abandon takes the request back, unless it is part of a batch.
func (t *Ticket) abandon() bool { return t.state.CompareAndSwap(waits, abandoned) }

// Finish tells the caller that the request is done. The result is written
// before.
func (t *Ticket) Finish() { close(t.done) }

// Finished is closed when the request is done.
func (t *Ticket) Finished() <-chan struct{} { return t.done }

// Do adds a request and waits until it is done, or until ctx ends. In the
// second case the batch goes on for the others, and for this request too if it
// has begun.
func (g *Group[T]) Do(ctx context.Context, x T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := g.Begin(); err != nil {
		return err
	}
	g.mu.Lock()
	g.waiting = append(g.waiting, x)
	if g.enough != nil && len(g.waiting) >= g.want {
		close(g.enough)
		g.enough = nil
	}
	start := g.running < g.Limit
	if start {
		g.running++
	}
	g.mu.Unlock()
	if start {
		go g.loop()
	}
	select {
	case <-x.Finished():
		return nil
	case <-ctx.Done():
		x.abandon()
		return ctx.Err()
	}
}

// loop runs batches until nothing waits.
func (g *Group[T]) loop() {
	var batch []T
	var last time.Duration // how long the last batch took
	for {
		// Goroutines that can run now may have something to add.
		runtime.Gosched()
		if g.Gather && len(batch) > 0 {
			g.await(min(last/gatherShare, maxGather))
		}
		g.mu.Lock()
		n := min(len(g.waiting), g.Most)
		if n == 0 {
			g.running--
			g.mu.Unlock()
			return
		}
		batch = batch[:0]
		for _, x := range g.waiting[:n] {
			if x.Take() {
				batch = append(batch, x)
			}
		}
		rest := copy(g.waiting, g.waiting[n:])
		clear(g.waiting[rest:])
		g.waiting = g.waiting[:rest]
		g.want = 0
		g.mu.Unlock()
		if len(batch) > 0 {
			began := time.Now()
			g.Run(batch)
			last = time.Since(began)
		}
		for range n {
			g.End()
		}
	}
}

// gatherShare is the share of a batch's duration for which the next batch
// waits, at most, for the callers of the last one. A batch costs about the same
// however large it is, so two half batches take twice as long as a whole one. A
// batch that took very long was an exception: then maxGather is the limit.
const (
	gatherShare = 2
	maxGather   = 50 * time.Millisecond
)

// Telling notes that n members of a batch are about to be finished.
func (g *Group[T]) Telling(n int) {
	g.mu.Lock()
	g.want = len(g.waiting) + n
	g.mu.Unlock()
}

// await waits a little until those who waited when the last batch ended are
// joined by as many as were in it. If nobody waits, it does not wait either.
func (g *Group[T]) await(most time.Duration) {
	g.mu.Lock()
	if n := len(g.waiting); n == 0 || n >= g.want {
		g.mu.Unlock()
		return
	}
	enough := make(chan struct{})
	g.enough = enough
	g.mu.Unlock()
	select {
	case <-enough:
	case <-time.After(most):
	}
	g.mu.Lock()
	g.enough = nil
	g.mu.Unlock()
}
