package manager

import (
	"container/list"
	"context"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor/internal/transfer"
)

// A pool is what bounds a kind of job.
type pool uint8

const (
	deletePool pool = iota
	signalPool
	startPool
	probePool // of its own, since containers say how long a probe may take
	createPool
	downloadPool
	uploadPool
	measurePool
	sweepPool
	volumePool
	volumeProbePool // of its own, so that calls that hang leave it a place
	pools
)

// Places are what a pool has for its jobs. Those that find none wait, each behind
// the others of its sharer, and the sharers take turns. So a tenant with thousands of
// jobs, such as checks that get no answer, does not keep others waiting until all of
// his have had their places.
type places struct {
	sharers map[string]*sharer
	line    list.List // of *sharer: those whose jobs wait and may have a place, the next one first
	taken   []*job    // the jobs with a place, the first one longest
	late    int       // how many go on without
}

// A sharer is a container, a volume driver, or the Manager itself (""), in one pool.
type sharer struct {
	pool    pool
	name    string
	waiting list.List     // of *job, in the order in which they came
	has     int           // jobs with a place, and late ones
	inLine  *list.Element // nil if it is not
}

// A job is work that may wait. It is done without the Manager's lock, and the
// outcome that it returns is carried out with it.
type job struct {
	Job
	sharer    *sharer
	work      func(context.Context) (outcome func())
	waiting   *list.Element // among those of its sharer, until it has a place or is cancelled
	placed    bool          // it has or had a place
	since     time.Time     // when it got it
	due       time.Time     // when it begins, if it is delayed
	late      bool          // it has given its place up, and goes on
	cancelled bool
	cancel    context.CancelFunc // nil until it is carried out
}

// submit queues a job of a container.
func (m *Manager) submit(p pool, kind JobKind, guid string, work func(context.Context) func()) *job {
	return m.submitTo(guid, p, kind, guid, work)
}

// submitTo queues a job that takes a place of the sharer.
func (m *Manager) submitTo(name string, p pool, kind JobKind, guid string, work func(context.Context) func()) *job {
	pl := &m.loop.places[p]
	s := pl.sharers[name]
	if s == nil {
		if pl.sharers == nil {
			pl.sharers = map[string]*sharer{}
		}
		s = &sharer{pool: p, name: name}
		pl.sharers[name] = s
	}
	j := &job{Job: Job{kind, guid}, sharer: s, work: work}
	j.waiting = s.waiting.PushBack(j)
	m.settle(s)
	m.wakeUp()
	return j
}

// stop cancels a job. If it has no place yet it needs none any more: its work is called
// with a context that has ended, and must do nothing but return the outcome.
func (j *job) stop(m *Manager) {
	if j.cancelled {
		return
	}
	j.cancelled, j.due = true, m.options.Now()
	if j.waiting != nil {
		m.unqueue(j)
		m.loop.cancelled = append(m.loop.cancelled, j)
	}
	if j.cancel != nil {
		j.cancel()
	}
	m.wakeUp()
}

// unqueue ends the waiting of a job.
func (m *Manager) unqueue(j *job) {
	j.sharer.waiting.Remove(j.waiting)
	j.waiting = nil
	m.settle(j.sharer)
}

// settle has a sharer stand in line if it has to, and forgets one that has nothing.
func (m *Manager) settle(s *sharer) {
	pl := &m.loop.places[s.pool]
	switch wants := s.waiting.Len() > 0 && s.has < m.most(s.pool); {
	case wants && s.inLine == nil:
		s.inLine = pl.line.PushBack(s)
	case !wants && s.inLine != nil:
		pl.line.Remove(s.inLine)
		s.inLine = nil
	}
	if s.waiting.Len() == 0 && s.has == 0 {
		delete(pl.sharers, s.name)
	}
}

func (m *Manager) workers(p pool) int {
	return [pools]int{
		deletePool: m.options.DeleteWorkers, createPool: m.options.CreateWorkers,
		signalPool: m.options.ProcessWorkers, startPool: m.options.ProcessWorkers, probePool: m.options.ProcessWorkers,
		measurePool: 1, sweepPool: 1, downloadPool: m.options.Downloads, uploadPool: m.options.Uploads,
	}[p]
}

// most is how many jobs of one sharer go on at a time. A container gets no more than
// half of the places, so that what holds up its own jobs does not hold up those of all
// others. Each volume driver has its own, for the same reason.
func (m *Manager) most(p pool) int {
	switch p {
	case volumePool:
		return volumeCalls
	case volumeProbePool:
		return 1
	}
	return max(1, m.workers(p)/2)
}

// free reports whether a pool has a place that nobody has taken.
func (m *Manager) free(p pool) bool {
	return p == volumePool || p == volumeProbePool || len(m.loop.places[p].taken) < m.workers(p)
}

// A turn is how long a job keeps its place in its pool. What it waits for may be
// up to a tenant: a child that another process stops before it is its program, a
// port that answers no probe, a server that sends a little a minute, a process that
// does not die while its volume does not answer. A tenant with several containers
// could hold all places so. So a job that is late goes on without its place, and the
// share of its container alone bounds how many there are; a pool with no turn has
// only jobs that are up to the host.
func turn(p pool) time.Duration {
	switch p {
	case startPool, signalPool, probePool:
		return time.Second
	case createPool, deletePool, downloadPool, uploadPool:
		return transfer.Turn
	}
	return 0
}

// mayBeLate reports whether one more job of a pool may go on without a place. Each
// transfer takes disk that nobody has reserved.
func (m *Manager) mayBeLate(p pool) bool {
	switch p {
	case downloadPool, uploadPool:
		return m.loop.places[p].late < transfer.LateEach*m.workers(p)
	}
	return true
}

// relief is when the next job of a pool gives its place up, or false if none does.
func (m *Manager) relief(p pool) (time.Time, bool) {
	taken := m.loop.places[p].taken
	if turn(p) == 0 || len(taken) == 0 || !m.mayBeLate(p) {
		return time.Time{}, false
	}
	return taken[0].since.Add(turn(p)), true
}

// relieve takes the places of those that have had their turn.
func (m *Manager) relieve(now time.Time) {
	for p := range pools {
		for {
			at, ok := m.relief(p)
			if !ok || at.After(now) {
				break
			}
			pl := &m.loop.places[p]
			pl.taken[0].late = true
			pl.taken = slices.Delete(pl.taken, 0, 1)
			pl.late++
		}
	}
}

// leave is for a job that is over.
func (m *Manager) leave(j *job) {
	if !j.placed {
		return // it was cancelled before it had a place
	}
	s := j.sharer
	pl := &m.loop.places[s.pool]
	if j.late {
		pl.late--
	} else if i := slices.Index(pl.taken, j); i >= 0 {
		pl.taken = slices.Delete(pl.taken, i, i+1)
	}
	s.has--
	m.settle(s)
}

// take returns the next job that may be carried out now, or nil. Those that were cancelled
// come first, because they need no place.
func (m *Manager) take(delays bool) *job {
	now := m.options.Now()
	if len(m.loop.cancelled) > 0 {
		j := m.loop.cancelled[0]
		m.loop.cancelled[0], m.loop.cancelled = nil, m.loop.cancelled[1:]
		return j
	}
	for i, j := range m.loop.delayed {
		if !j.due.After(now) {
			m.loop.delayed = slices.Delete(m.loop.delayed, i, i+1)
			return j
		}
	}
	m.relieve(now)
	for p := range pools {
		for m.free(p) && m.loop.places[p].line.Len() > 0 {
			j := m.placeNext(p, now)
			if delays && m.options.Delay != nil {
				if delay := m.options.Delay(j.Job); delay > 0 {
					j.due = now.Add(delay)
					m.loop.delayed = append(m.loop.delayed, j)
					continue
				}
			}
			return j
		}
	}
	return nil
}

// placeNext gives the next job its place, and puts its sharer behind all others in line.
func (m *Manager) placeNext(p pool, now time.Time) *job {
	pl := &m.loop.places[p]
	s := pl.line.Front().Value.(*sharer)
	j := s.waiting.Front().Value.(*job)
	j.placed, j.since = true, now
	pl.taken = append(pl.taken, j)
	s.has++
	pl.line.Remove(s.inLine)
	s.inLine = nil
	m.unqueue(j)
	return j
}
