package manager

import (
	"container/list"
	"context"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/transfer"
)

// A pool is what bounds a kind of job.
type pool uint8

const (
	logPool pool = iota
	deletePool
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
	fetchPool       // of what containers need before they are made
	pools
)

// Places are what a pool has for its jobs. Those that find none wait, each behind the
// others of its sharer. The domains take turns, and so do the sharers of each domain. So
// a tenant with thousands of jobs in many containers, such as checks that get no answer,
// does not keep others waiting until all of his have had their places.
type places struct {
	domains map[string]*domain
	sharers map[string]*sharer
	line    list.List // of *domain: those with jobs that wait and may have a place, the next one first
	ready   int       // sharers in the lines of all domains, including domains that have all the places they may take
	taken   []*job    // the jobs with a place, the first one longest
	late    int       // how many go on without
}

// A domain is what one tenant has in one pool. What is nobody's is in the domain "".
type domain struct {
	name    string
	line    list.List     // of *sharer, like that of the domains
	sharers int           // not only those in line
	taken   int           // jobs with a place
	late    int           // jobs that go on without
	inLine  *list.Element // nil if it is not
}

// A sharer is a container, a volume driver, or the Manager itself (""), in one pool.
type sharer struct {
	pool    pool
	name    string
	domain  *domain
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
	s := m.sharer(p, name, guid)
	j := &job{Job: Job{kind, guid}, sharer: s, work: work}
	j.waiting = s.waiting.PushBack(j)
	m.settle(s)
	m.wakeUp()
	return j
}

// sharer returns the one of a name. Its domain is that of the container that it is first
// here for, and stays that while it has jobs.
func (m *Manager) sharer(p pool, name, guid string) *sharer {
	pl := &m.loop.places[p]
	if s := pl.sharers[name]; s != nil {
		return s
	}
	if pl.sharers == nil {
		pl.sharers, pl.domains = map[string]*sharer{}, map[string]*domain{}
	}
	of := ""
	if e := m.entries[guid]; e != nil {
		of = e.container.Tags[executor.TagDomain]
	}
	d := pl.domains[of]
	if d == nil {
		d = &domain{name: of}
		pl.domains[of] = d
	}
	d.sharers++
	s := &sharer{pool: p, name: name, domain: d}
	pl.sharers[name] = s
	return s
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

// settle has a sharer and its domain stand in line if they have to, and forgets those that
// have nothing.
func (m *Manager) settle(s *sharer) {
	d, pl := s.domain, &m.loop.places[s.pool]
	pl.ready += queue(&d.line, &s.inLine, s, s.waiting.Len() > 0 && s.has < m.most(s.pool))
	m.settleDomain(s.pool, d)
	if s.waiting.Len() == 0 && s.has == 0 {
		delete(pl.sharers, s.name)
		if d.sharers--; d.sharers == 0 {
			delete(pl.domains, d.name)
		}
	}
}

func (m *Manager) settleDomain(p pool, d *domain) {
	queue(&m.loop.places[p].line, &d.inLine, d, d.line.Len() > 0 && (m.unbounded(p) || d.taken < m.mostOfDomain(p)))
}

// queue has who stand in a line, at the end if it is not there yet, or leave it. It returns
// how many more are in the line then.
func queue(line *list.List, place **list.Element, who any, wants bool) int {
	switch {
	case wants && *place == nil:
		*place = line.PushBack(who)
		return 1
	case !wants && *place != nil:
		line.Remove(*place)
		*place = nil
		return -1
	}
	return 0
}

func (m *Manager) workers(p pool) int {
	return [pools]int{
		logPool: m.options.ProcessWorkers, deletePool: m.options.DeleteWorkers, createPool: m.options.CreateWorkers,
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
	case volumeProbePool, fetchPool:
		return 1
	}
	return max(1, m.workers(p)/2)
}

// mostOfDomain is how many places the jobs of one domain may take, as for transfers.
func (m *Manager) mostOfDomain(p pool) int { return transfer.MostOfDomain(m.workers(p)) }

// unbounded reports whether only its sharers bound a pool. Those of fetchPool wait for the
// places of the downloads, where the domains take turns. What the cache has needs none.
func (m *Manager) unbounded(p pool) bool {
	return p == volumePool || p == volumeProbePool || p == fetchPool
}

// free reports whether a pool has a place that nobody has taken.
func (m *Manager) free(p pool) bool {
	return m.unbounded(p) || len(m.loop.places[p].taken) < m.workers(p)
}

// A turn is how long a job keeps its place in its pool. What it waits for may be
// up to a tenant: a child that another process stops before it is its program, a
// port that answers no probe, a server that sends a little a minute, a volume that does
// not answer while a container is made or dies. A tenant with several containers could
// hold all places so. So a job that is late goes on without its place, and the share of
// its container alone bounds how many there are; a pool with no turn has only jobs that
// are up to the host.
func turn(p pool) time.Duration {
	switch p {
	case logPool, startPool, signalPool, probePool:
		return time.Second
	case createPool, deletePool, downloadPool, uploadPool:
		return transfer.Turn
	}
	return 0
}

// mayBeLate reports whether one more job of a domain may go on without a place. Each
// transfer takes disk that nobody has reserved.
func (m *Manager) mayBeLate(p pool, d *domain) bool {
	switch p {
	case downloadPool, uploadPool:
		return m.loop.places[p].late < transfer.LateEach*m.workers(p) && d.late < transfer.LateEach*m.mostOfDomain(p)
	}
	return true
}

// relief is which job of a pool gives its place up next, and when, or false if none does.
func (m *Manager) relief(p pool) (next int, at time.Time, ok bool) {
	if turn(p) == 0 {
		return 0, time.Time{}, false
	}
	for i, j := range m.loop.places[p].taken {
		if m.mayBeLate(p, j.sharer.domain) {
			return i, j.since.Add(turn(p)), true
		}
	}
	return 0, time.Time{}, false
}

// relieve takes the places of those that have had their turn.
func (m *Manager) relieve(now time.Time) {
	for p := range pools {
		for {
			next, at, ok := m.relief(p)
			if !ok || at.After(now) {
				break
			}
			pl := &m.loop.places[p]
			j := pl.taken[next]
			j.late = true
			pl.taken = slices.Delete(pl.taken, next, next+1)
			pl.late++
			j.sharer.domain.taken--
			j.sharer.domain.late++
			m.settleDomain(p, j.sharer.domain)
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
		s.domain.late--
	} else if i := slices.Index(pl.taken, j); i >= 0 {
		pl.taken = slices.Delete(pl.taken, i, i+1)
		s.domain.taken--
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

// placeNext gives the next job its place, and puts its sharer and its domain behind all
// others in their lines.
func (m *Manager) placeNext(p pool, now time.Time) *job {
	pl := &m.loop.places[p]
	d := pl.line.Front().Value.(*domain)
	s := d.line.Front().Value.(*sharer)
	j := s.waiting.Front().Value.(*job)
	j.placed, j.since = true, now
	pl.taken = append(pl.taken, j)
	d.taken++
	s.has++
	pl.ready += queue(&d.line, &s.inLine, s, false)
	queue(&pl.line, &d.inLine, d, false)
	m.unqueue(j)
	return j
}
