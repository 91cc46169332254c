package rep

import "sync"

// A queue holds the subjects that somebody should look at. Only one caller at a
// time has taken a subject. If the subject is added meanwhile, it waits, and is
// looked at once more afterwards.
//
// A tenant decides how many of its containers need a look, and how much there is to
// read for each. So the domains take turns, and one domain leaves others a place. Two
// hostile domains can hold all places, for up to Options.CallTimeout in each call.
type queue struct {
	mu      sync.Mutex
	most    int // how many subjects of one domain may be taken
	known   map[string]place
	domains map[string]*domain
	line    []*domain // those of which a subject may be taken, the next one first
	// wake tells one receiver that something waits or was given back.
	wake chan struct{}
}

// A domain is what the queue has of one tenant. It is forgotten when it has nothing.
type domain struct {
	waiting []subject
	taken   int
	inLine  bool
}

// A place is where the subject of a guid is.
type place uint8

const (
	waiting place = iota + 1
	taken
	takenAndWaiting
)

// newQueue returns the queue for so many callers at a time.
func newQueue(callers int) *queue {
	return &queue{most: mostOfDomain(callers), known: map[string]place{}, domains: map[string]*domain{}, wake: make(chan struct{}, 1)}
}

// mostOfDomain is how many of some places one domain may take: all but one, so that
// a subject of another domain is looked at at once. One place has nothing to leave.
func mostOfDomain(places int) int { return max(1, places-1) }

// add has a subject looked at, once more if it is taken. A guid always has the same
// subject, so the one that is known already is kept.
func (q *queue) add(s subject) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.known[s.guid] {
	case waiting, takenAndWaiting:
	case taken:
		q.known[s.guid] = takenAndWaiting
	default:
		q.wait(s)
	}
}

// wait has a subject wait behind the others of its domain.
func (q *queue) wait(s subject) {
	q.known[s.guid] = waiting
	d := q.domains[s.domain]
	if d == nil {
		d = &domain{}
		q.domains[s.domain] = d
	}
	d.waiting = append(d.waiting, s)
	q.lineUp(d)
	q.signal()
}

// lineUp puts a domain behind the others if it has a subject that may be taken.
func (q *queue) lineUp(d *domain) {
	if !d.inLine && len(d.waiting) > 0 && d.taken < q.most {
		d.inLine = true
		q.line = append(q.line, d)
	}
}

// take returns the first subject of the domain whose turn it is. It returns false
// if none waits that may be taken.
func (q *queue) take() (subject, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.line) == 0 {
		return subject{}, false
	}
	d := q.line[0]
	q.line, d.inLine = q.line[1:], false
	s := d.waiting[0]
	d.waiting = d.waiting[1:]
	d.taken++
	q.known[s.guid] = taken
	q.lineUp(d)
	return s, true
}

// done gives a subject back.
func (q *queue) done(s subject) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.domains[s.domain]
	d.taken--
	if q.known[s.guid] == takenAndWaiting {
		q.wait(s)
	} else {
		delete(q.known, s.guid)
	}
	q.lineUp(d)
	if d.taken+len(d.waiting) == 0 {
		delete(q.domains, s.domain)
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
