package sqlstore

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A group gathers what several goroutines ask for at the same time, and does
// it together: while one batch is under way, the next one collects.
//
// Its fields are set before its first use. Its methods are for any number of
// goroutines at once.
type group[T member] struct {
	// limit is how many batches are under way at once, most how many members a
	// batch has.
	limit, most int
	// run carries a batch out, and finishes each of its members.
	run func([]T)
	// begin is called for each request, which its error refuses; end when the
	// request is no longer part of anything.
	begin func() error
	end   func()
	// gather waits, before a batch, for those whose last batch has just ended
	// and who will be back with their next request.
	gather bool

	mu      sync.Mutex
	waiting []T
	running int
	// want is how many requests there will be once those who were told of the
	// last batch are back, and enough is closed when they are there. It is 0
	// after a batch that told nobody, as it failed.
	want   int
	enough chan struct{}
}

// A member is a request of a group. It embeds a ticket.
type member interface {
	take() bool
	finished() <-chan struct{}
	abandon() bool
}

// A ticket tells whether a request is waiting, taken or abandoned, and when it
// is done.
type ticket struct {
	state atomic.Int32
	done  chan struct{}
}

const (
	waits int32 = iota
	taken
	abandoned
)

// newTicket returns a ticket that waits.
func newTicket() ticket { return ticket{done: make(chan struct{})} }

// take makes the request part of a batch, unless its caller has gone.
func (t *ticket) take() bool { return t.state.CompareAndSwap(waits, taken) }

// abandon takes the request back, unless it is part of a batch.
func (t *ticket) abandon() bool { return t.state.CompareAndSwap(waits, abandoned) }

// finish tells the caller that the request is done. What it came to is written
// before.
func (t *ticket) finish() { close(t.done) }

// finished is closed when the request is done.
func (t *ticket) finished() <-chan struct{} { return t.done }

// do adds a request and waits until it is done, or until ctx ends. In the
// second case the batch goes on for the others, and for this request too
// unless it has not begun.
func (g *group[T]) do(ctx context.Context, x T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := g.begin(); err != nil {
		return err
	}
	g.mu.Lock()
	g.waiting = append(g.waiting, x)
	if g.enough != nil && len(g.waiting) >= g.want {
		close(g.enough)
		g.enough = nil
	}
	start := g.running < g.limit
	if start {
		g.running++
	}
	g.mu.Unlock()
	if start {
		go g.loop()
	}
	select {
	case <-x.finished():
		return nil
	case <-ctx.Done():
		x.abandon()
		return ctx.Err()
	}
}

// loop runs batches until nothing waits.
func (g *group[T]) loop() {
	var batch []T
	var last time.Duration // how long the last batch took
	for {
		// Whoever can run now may have something to add.
		runtime.Gosched()
		if g.gather && len(batch) > 0 {
			g.await(min(last/gatherShare, maxGather))
		}
		g.mu.Lock()
		n := min(len(g.waiting), g.most)
		if n == 0 {
			g.running--
			g.mu.Unlock()
			return
		}
		batch = batch[:0]
		for _, x := range g.waiting[:n] {
			if x.take() {
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
			g.run(batch)
			last = time.Since(began)
		}
		for range n {
			g.end()
		}
	}
}

// gatherShare is the part of a batch's duration that the next batch waits, at
// most, for the callers of the last one. A batch costs about the same however
// large it is, so two half batches take twice as long as a whole one. What took
// very long was no batch like others: then maxGather is the bound.
const (
	gatherShare = 2
	maxGather   = 50 * time.Millisecond
)

// telling notes that n members of a batch are about to be told that it is over.
func (g *group[T]) telling(n int) {
	g.mu.Lock()
	g.want = len(g.waiting) + n
	g.mu.Unlock()
}

// await waits a little until those who waited when the last batch was over are
// joined by as many as were in it. If nobody waits there is nobody to keep
// waiting.
func (g *group[T]) await(most time.Duration) {
	g.mu.Lock()
	if n := len(g.waiting); n == 0 || n >= g.want {
		g.mu.Unlock()
		return
	}
	enough := make(chan struct{})
	g.enough = enough
	g.mu.Unlock()
	timer := time.NewTimer(most)
	select {
	case <-enough:
	case <-timer.C:
	}
	timer.Stop()
	g.mu.Lock()
	g.enough = nil
	g.mu.Unlock()
}
