package auction

import (
	"cmp"
	"container/list"
	"slices"
	"time"
)

// A waitlist is the work of a Runner that is not in a batch. Some of it is due.
// The rest was refused and waits. Of that, what was refused for lack of room may
// take part in rounds before it is due, because room may appear at any moment and
// newer work would take it.
//
// No method looks at all the work that waits; take looks at what is due.
type waitlist struct {
	work  map[Key]*waiting
	ready queue // due at once
	// later has a queue for each length of wait. Waits of one length end in the
	// order in which they began.
	later []*later
	// domains has the domains with work that was refused for lack of room, and
	// turns has the same in the order in which they are looked at.
	domains map[string]*list.Element // of *domainQueue
	turns   list.List
}

type later struct {
	wait time.Duration
	queue
}

type domainQueue struct {
	domain string
	queue
}

// waiting is work that is not in a batch.
type waiting struct {
	item     Item
	attempts int       // that failed
	due      time.Time // zero: at once
	links    [2]link
}

// A waiting item stands in a queue for when it is due and, if it was refused for
// lack of room, in that of its domain.
const (
	byDue = iota
	byDomain
)

type link struct {
	queue         *queue // nil: in none
	before, after *waiting
}

// A queue is a list that an item can leave from anywhere in constant time.
type queue struct {
	by          int // which link of an item is that of this queue
	first, last *waiting
	n           int
}

func (q *queue) push(w *waiting) {
	w.links[q.by] = link{queue: q, before: q.last}
	if q.last == nil {
		q.first = w
	} else {
		q.last.links[q.by].after = w
	}
	q.last = w
	q.n++
}

func (q *queue) drop(w *waiting) {
	l := w.links[q.by]
	if l.before == nil {
		q.first = l.after
	} else {
		l.before.links[q.by].after = l.after
	}
	if l.after == nil {
		q.last = l.before
	} else {
		l.after.links[q.by].before = l.before
	}
	w.links[q.by] = link{}
	q.n--
}

func newWaitlist() waitlist {
	return waitlist{work: map[Key]*waiting{}, ready: queue{by: byDue}, domains: map[string]*list.Element{}}
}

// add adds work that is due at once. It replaces work with the same key.
func (l *waitlist) add(w *waiting) {
	l.remove(l.work[w.item.Key])
	l.work[w.item.Key] = w
	l.ready.push(w)
}

// addRefused adds work that was refused at the given time and is due after the
// wait. With early it may take part before.
func (l *waitlist) addRefused(w *waiting, now time.Time, wait time.Duration, early bool) {
	l.remove(l.work[w.item.Key])
	l.work[w.item.Key] = w
	w.due = now.Add(wait)
	i := slices.IndexFunc(l.later, func(q *later) bool { return q.wait == wait })
	if i < 0 {
		i = len(l.later)
		l.later = append(l.later, &later{wait, queue{by: byDue}})
	}
	l.later[i].push(w)
	if !early {
		return
	}
	e := l.domains[w.item.Domain]
	if e == nil {
		e = l.turns.PushBack(&domainQueue{w.item.Domain, queue{by: byDomain}})
		l.domains[w.item.Domain] = e
	}
	e.Value.(*domainQueue).push(w)
}

// remove removes work, unless it is nil.
func (l *waitlist) remove(w *waiting) {
	if w == nil {
		return
	}
	l.hold(w)
	w.links[byDue].queue.drop(w)
	delete(l.work, w.item.Key)
}

// hold keeps work from taking part before it is due.
func (l *waitlist) hold(w *waiting) {
	q := w.links[byDomain].queue
	if q == nil {
		return
	}
	if q.drop(w); q.n == 0 {
		l.turns.Remove(l.domains[w.item.Domain])
		delete(l.domains, w.item.Domain)
	}
}

// holds reports whether exactly this work waits, and not a later request for it.
func (l *waitlist) holds(w *waiting) bool { return l.work[w.item.Key] == w }

// nextDue is when the first work is due; the zero time means at once.
func (l *waitlist) nextDue() (due time.Time) {
	if l.ready.n > 0 {
		return due
	}
	for _, q := range l.later {
		if q.n > 0 && (due.IsZero() || q.first.due.Before(due)) {
			due = q.first.due
		}
	}
	return due
}

// due returns the work that is due.
func (l *waitlist) due(now time.Time) (due []*waiting) {
	for w := l.ready.first; w != nil; w = w.links[byDue].after {
		due = append(due, w)
	}
	for _, q := range l.later {
		for w := q.first; w != nil && !now.Before(w.due); w = w.links[byDue].after {
			due = append(due, w)
		}
	}
	return due
}

// maxEarly is how much refused work a round looks at that is not due. A placement
// of 100 items costs far less than asking the cells.
const maxEarly = 100

// early looks at up to maxEarly items that were refused for lack of room and are
// not due. It lets in those that may take part in a round with the given work. The
// domains take turns, and each item goes to the end of its domain's queue once a
// round has looked at it (see seen). So neither a domain with much work nor an item
// that is too large keeps others from being looked at.
//
// An item is not let in if its group would bring it before work of a domain with
// less work than its own: that is for work that is due. Otherwise the instances at
// index 0 of a domain that waits for much would take all places from its neighbours'
// tasks in every round, and not only when they are due.
func (l *waitlist) early(now time.Time, due []*waiting) (looked, in []*waiting) {
	if looked = l.look(now); len(looked) == 0 {
		return nil, nil
	}
	type share struct {
		work   int   // of the domain, due or not
		last   int64 // group of it in this round
		looked []*waiting
	}
	var shares []*share
	known := map[string]*share{}
	of := func(domain string) *share {
		s := known[domain]
		if s == nil {
			s = &share{}
			if e := l.domains[domain]; e != nil {
				s.work = e.Value.(*domainQueue).n
			}
			known[domain] = s
			shares = append(shares, s)
		}
		return s
	}
	for _, w := range due {
		s := of(w.item.Domain)
		s.last = max(s.last, w.item.group())
		if w.links[byDomain].queue == nil { // else it is counted already
			s.work++
		}
	}
	for _, w := range looked {
		s := of(w.item.Domain)
		s.looked = append(s.looked, w)
	}
	slices.SortStableFunc(shares, func(x, y *share) int { return cmp.Compare(x.work, y.work) })
	var less, last int64 // the last groups of domains with less work, and with at most as much
	for i, s := range shares {
		if i > 0 && shares[i-1].work < s.work {
			less = last
		}
		for _, w := range s.looked {
			if group := w.item.group(); group >= less {
				in = append(in, w)
				s.last = max(s.last, group)
			}
		}
		last = max(last, s.last)
	}
	return looked, in
}

// look returns the first items of all domains in their turn, then the second items
// and so on, leaving out those that are due.
func (l *waitlist) look(now time.Time) (looked []*waiting) {
	var next []*waiting
	for e := l.turns.Front(); e != nil && len(next) < maxEarly; e = e.Next() {
		if w := e.Value.(*domainQueue).first.notDue(now); w != nil {
			next = append(next, w)
		}
	}
	for len(next) > 0 {
		further := next[:0]
		for _, w := range next {
			if len(looked) == maxEarly {
				return looked
			}
			looked = append(looked, w)
			if after := w.links[byDomain].after.notDue(now); after != nil {
				further = append(further, after)
			}
		}
		next = further
	}
	return looked
}

// notDue returns the first item of the domain's queue, from w on, that is not due, or nil.
func (w *waiting) notDue(now time.Time) *waiting {
	for w != nil && !now.Before(w.due) {
		w = w.links[byDomain].after
	}
	return w
}

// seen puts work at the end of its domain's queue, and the domain at the end of
// the turns.
func (l *waitlist) seen(looked []*waiting) {
	for _, w := range looked {
		q := w.links[byDomain].queue
		q.drop(w)
		q.push(w)
		l.turns.MoveToBack(l.domains[w.item.Domain])
	}
}
