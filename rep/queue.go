package rep

import (
	"slices"
	"sync"
)

// A queue holds the subjects that somebody should look at. Only one caller at a
// time has taken a subject. If the subject is added meanwhile, it waits, and is
// looked at once more afterwards.
type queue struct {
	mu      sync.Mutex
	waiting []subject
	known   map[string]place
	// wake tells one receiver that something waits or was given back.
	wake chan struct{}
}

// A place is where the subject of a guid is.
type place uint8

const (
	waiting place = iota + 1
	taken
	takenAndWaiting
)

func newQueue() *queue { return &queue{known: map[string]place{}, wake: make(chan struct{}, 1)} }

func (q *queue) add(s subject) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.known[s.guid] {
	case waiting, takenAndWaiting:
		return
	case taken:
		q.known[s.guid] = takenAndWaiting
	default:
		q.known[s.guid] = waiting
	}
	q.waiting = append(q.waiting, s)
	q.signal()
}

// take returns the first subject that waits and is not taken.
func (q *queue) take() (subject, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, s := range q.waiting {
		if q.known[s.guid] == waiting {
			q.waiting = slices.Delete(q.waiting, i, i+1)
			q.known[s.guid] = taken
			return s, true
		}
	}
	return subject{}, false
}

// done gives a subject back.
func (q *queue) done(s subject) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known[s.guid] == takenAndWaiting {
		q.known[s.guid] = waiting
	} else {
		delete(q.known, s.guid)
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
