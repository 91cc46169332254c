package bbs

import (
	"context"
	"slices"
	"sync"

	"github.com/diegosdk/diego/storage"
)

// placesEach is how many subscribers over a network read from the store at a time, and
// how many hold a large event. An event may have 57 MiB, and twice as much while it is
// encoded.
const placesEach = 4

// A queue gives a few places to callers, each of whom may want many. A caller takes all
// places but one, so that another caller need not wait for its subscribers. Of those
// who wait, the caller with the fewest places comes first.
type queue struct {
	mu      sync.Mutex
	taken   int
	of      map[string]int // the places of each caller
	waiting []*waiter      // in order of arrival
}

// A waiter waits for a place, which it has when mine is closed.
type waiter struct {
	caller string
	mine   chan struct{}
}

// enter waits for a place, or until ctx ends. After an error the caller has none;
// otherwise it leaves the place once.
func (q *queue) enter(ctx context.Context, caller string) error {
	w := &waiter{caller, make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.admit()
	q.mu.Unlock()
	select {
	case <-w.mine:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else {
		q.put(caller, -1)
		q.admit()
	}
	return ctx.Err()
}

// tryEnter takes a place if one is free.
func (q *queue) tryEnter(caller string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.fits(caller) { // those who wait do not fit either
		return false
	}
	q.put(caller, 1)
	return true
}

// leave gives a place back.
func (q *queue) leave(caller string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.put(caller, -1)
	q.admit()
}

// The rest is called with the lock.

func (q *queue) fits(caller string) bool {
	return q.taken < placesEach && q.of[caller] < placesEach-1
}

func (q *queue) put(caller string, n int) {
	if q.of == nil {
		q.of = map[string]int{}
	}
	q.taken += n
	if q.of[caller] += n; q.of[caller] == 0 {
		delete(q.of, caller)
	}
}

// admit gives the free places away.
func (q *queue) admit() {
	for {
		first := -1
		for i, w := range q.waiting {
			if q.fits(w.caller) && (first < 0 || q.of[w.caller] < q.of[q.waiting[first].caller]) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		w := q.waiting[first]
		q.waiting = slices.Delete(q.waiting, first, first+1)
		q.put(w.caller, 1)
		close(w.mine)
	}
}

// A share is what a subscription has of the places. A subscription in the same process
// has nil, and needs no place: it may be as slow as it likes.
type share struct {
	caller         string
	match          func(*storage.Subject) bool
	reading, large *queue
	holds          bool // a place for a large event
}

func (b *BBS) newShare(ctx context.Context, f storage.EventFilter) *share {
	return &share{caller: storage.Caller(ctx), match: f.Matcher(), reading: &b.reading, large: &b.large}
}

// read calls f, which reads from the store, with a place for that.
func (s *share) read(ctx context.Context, f func() error) error {
	if s == nil {
		return f()
	}
	if err := s.reading.enter(ctx, s.caller); err != nil {
		return err
	}
	defer s.reading.leave(s.caller)
	return f()
}

// mayHold reports whether the subscription may hold an entry. It may hold a large one
// only as the first of its page, so that a reader who is slow with the others does not
// keep the place, and takes a place for it if one is free. An event that the filter does
// not want needs none: it is only looked at, so it is soon dropped.
func (s *share) mayHold(e *tailEntry, first bool) bool {
	if s == nil || !e.large() {
		return true
	}
	if !first || s.holds {
		return first
	}
	subject := e.event.Subject()
	if !s.match(&subject) {
		return true
	}
	s.holds = s.large.tryEnter(s.caller)
	return s.holds
}

// part returns the first entries of a page of the tail, without a large event behind
// others. It returns none if the first event is large, is wanted, and has no place.
func (s *share) part(page []tailEntry) []tailEntry {
	last := len(page) - 1 // a page ends with a large event
	if s.mayHold(&page[last], last == 0) {
		return page
	}
	page[last] = tailEntry{} // the array keeps it
	return page[:last]
}

// wait waits for a place for a large event. The subscription holds no event meanwhile.
func (s *share) wait(ctx context.Context) error {
	if s.holds {
		return nil
	}
	err := s.large.enter(ctx, s.caller)
	s.holds = err == nil
	return err
}

// done gives the place for a large event back.
func (s *share) done() {
	if s != nil && s.holds {
		s.holds = false
		s.large.leave(s.caller)
	}
}
