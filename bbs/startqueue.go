package bbs

import (
	"cmp"
	"slices"
	"time"

	"github.com/diegosdk/diego/lrp"
)

const (
	// handOver is how long starts are collected into one batch of placement. A
	// large batch spreads work better, so all that is read meanwhile goes into it.
	handOver = 200 * time.Millisecond
	// After a read that took less than quickRead, the domain's next read is of twice as
	// many processes, at most maxRead. A deployment may have tens of MiB.
	quickRead = 20 * time.Millisecond
	maxRead   = 4
)

// A startQueue holds instances that are to be placed once the definitions of
// their processes have been read. The zero value is empty and ready to use, by one
// goroutine at a time.
//
// A tenant decides how large its definitions are. So domains take turns by the
// time that their reads have taken, and not by their number.
type startQueue struct {
	domains []*domainStarts
	queued  map[lrp.Key]bool
	turn    int
	left    map[string]*domainStarts // those that have nothing now, until the queue is empty
}

// A domainStarts is what one domain has in the queue. It is never empty, but among those
// that have left.
type domainStarts struct {
	name      string
	processes []processStarts // in the order in which they came
	position  map[string]int  // of a process in that list, plus taken
	taken     int             // how many processes were taken from the list
	spent     time.Duration
	turn      int // the last, or when it came
	read      int // how many processes are read at a time
}

// A processStarts is what one process has in the queue.
type processStarts struct {
	guid   string
	starts []queuedStart
}

// A queuedStart is one instance and when it asked for a cell.
type queuedStart struct {
	key lrp.Key
	at  time.Time
}

func (q *startQueue) empty() bool { return len(q.domains) == 0 }

// add queues the starts that are requested, each once.
func (q *startQueue) add(effects []lrp.Effect, now time.Time) {
	var named map[string]*domainStarts
	for _, e := range effects {
		if e.Kind != lrp.RequestStart || q.queued[e.Key] {
			continue
		}
		if named == nil {
			named = make(map[string]*domainStarts, len(q.domains))
			for _, d := range q.domains {
				named[d.name] = d
			}
		}
		if q.queued == nil {
			q.queued = map[lrp.Key]bool{}
		}
		q.queued[e.Key] = true
		d := named[e.Key.Domain]
		if d == nil {
			d = q.join(e.Key.Domain)
			named[e.Key.Domain] = d
		}
		guid := e.Key.ProcessGUID
		i, known := d.position[guid]
		if !known {
			i = d.taken + len(d.processes)
			d.position[guid] = i
			d.processes = append(d.processes, processStarts{guid: guid})
		}
		p := &d.processes[i-d.taken]
		p.starts = append(p.starts, queuedStart{e.Key, now})
	}
}

// join adds a domain. It begins with the smallest time that any domain has had, behind
// those, or with what it has had itself. So one that comes again and again keeps nobody
// waiting.
func (q *startQueue) join(name string) *domainStarts {
	d := &domainStarts{name: name, position: map[string]int{}, turn: q.turn, read: 1}
	if first := q.first(); first == nil {
		clear(q.left)
	} else if d.spent = first.spent; q.left[name] != nil {
		d.spent = max(d.spent, q.left[name].spent)
	}
	q.turn++
	q.domains = append(q.domains, d)
	return d
}

// first is the domain whose turn it is, nil if the queue is empty.
func (q *startQueue) first() *domainStarts {
	if q.empty() {
		return nil
	}
	return slices.MinFunc(q.domains, func(a, b *domainStarts) int {
		return cmp.Or(cmp.Compare(a.spent, b.spent), cmp.Compare(a.turn, b.turn))
	})
}

// take removes some processes of the domain whose turn it is. Call done when they
// have been read, with the time that it took.
func (q *startQueue) take() (list []processStarts, done func(took time.Duration)) {
	d := q.first()
	n := min(d.read, len(d.processes))
	list, d.processes = d.processes[:n:n], d.processes[n:]
	d.taken += n
	for _, p := range list {
		delete(d.position, p.guid)
		for _, s := range p.starts {
			delete(q.queued, s.key)
		}
	}
	d.turn = q.turn
	q.turn++
	if len(d.processes) == 0 {
		q.domains = slices.DeleteFunc(q.domains, func(other *domainStarts) bool { return other == d })
		if q.left == nil {
			q.left = map[string]*domainStarts{}
		}
		q.left[d.name] = d
	}
	return list, func(took time.Duration) {
		d.spent += max(took, 0)
		if d.read = min(2*d.read, maxRead); took > quickRead {
			d.read = 1
		}
	}
}
