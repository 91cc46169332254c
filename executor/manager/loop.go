package manager

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/diegosdk/diego/executor"
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

// A JobKind says what a job does.
type JobKind string

// The kinds of jobs.
const (
	JobCreate   JobKind = "create"
	JobDelete   JobKind = "delete"
	JobStart    JobKind = "start"
	JobSignal   JobKind = "signal"
	JobProbe    JobKind = "probe"
	JobDownload JobKind = "download"
	JobUpload   JobKind = "upload"
	JobList     JobKind = "list"
	JobRenew    JobKind = "renew" // of a certificate
	JobMount    JobKind = "mount"
	JobUnmount  JobKind = "unmount"
	JobMeasure  JobKind = "measure" // of all containers
	JobSweep    JobKind = "sweep"   // of what was set aside
)

// A Job is one call that takes time; Options.Delay receives it.
type Job struct {
	Kind JobKind
	// GUID is the container's; it is empty for JobList, JobMeasure, JobSweep and
	// the probe of a volume driver.
	GUID string
}

// A job is work that may wait. It is done without the Manager's lock, and the
// outcome that it returns is carried out with it.
type job struct {
	Job
	pool      pool
	sharer    string // has the place: the container, or a volume driver
	work      func(context.Context) (outcome func())
	due       time.Time // in virtual time, once it has its place in the pool
	waited    bool      // there was no room for it
	placed    bool
	since     time.Time // when it got its place
	late      bool      // it has given its place up, and goes on
	cancelled bool
	cancel    context.CancelFunc // nil until it is carried out
}

// stop cancels a job. Its outcome comes all the same.
func (j *job) stop(m *Manager) {
	j.cancelled = true
	if j.cancel != nil {
		j.cancel()
	}
	m.wakeUp()
}

// A timer calls f at its time.
type timer struct {
	at       time.Time
	sequence int64
	f        func()
	index    int // in the heap, or -1
}

type timers []*timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if t[i].at.Equal(t[j].at) {
		return t[i].sequence < t[j].sequence
	}
	return t[i].at.Before(t[j].at)
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i]; t[i].index, t[j].index = i, j }
func (t *timers) Push(x any)   { x.(*timer).index = len(*t); *t = append(*t, x.(*timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	last.index = -1
	return last
}

// A share is the part of a pool that a container or a volume driver has.
type share struct {
	pool   pool
	sharer string
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
		return m.loop.late[p] < transfer.LateEach*m.workers(p)
	}
	return true
}

// A loop holds what will happen. Its timers and jobs are guarded by the
// Manager's lock; the inbox has its own, since backends fill it at any time.
type loop struct {
	timers   timers
	sequence int64
	jobs     []*job        // in the order in which they came, but see letOthersPass
	running  [pools][]*job // those with a place, the first one longest
	late     [pools]int    // how many go on without
	shares   map[share]int // how many of both one sharer has

	inboxMu sync.Mutex
	inbox   []func()
	wake    chan struct{}
}

// after calls f, with the lock, when d has passed.
func (m *Manager) after(d time.Duration, f func()) *timer {
	m.loop.sequence++
	t := &timer{at: m.options.Now().Add(d), sequence: m.loop.sequence, f: f}
	heap.Push(&m.loop.timers, t)
	m.wakeUp()
	return t
}

// forget drops a timer, which may be nil or have fired.
func (m *Manager) forget(t *timer) {
	if t != nil && t.index >= 0 {
		heap.Remove(&m.loop.timers, t.index)
	}
}

// submit queues a job of a container.
func (m *Manager) submit(p pool, kind JobKind, guid string, work func(context.Context) func()) *job {
	return m.submitTo(guid, p, kind, guid, work)
}

// submitTo queues a job that takes a place of the sharer.
func (m *Manager) submitTo(sharer string, p pool, kind JobKind, guid string, work func(context.Context) func()) *job {
	j := &job{Job: Job{kind, guid}, pool: p, sharer: sharer, work: work}
	m.loop.jobs = append(m.loop.jobs, j)
	m.wakeUp()
	return j
}

// post has f carried out with the lock, soon. It may be called with and
// without the lock.
func (m *Manager) post(f func()) {
	m.loop.inboxMu.Lock()
	m.loop.inbox = append(m.loop.inbox, f)
	m.loop.inboxMu.Unlock()
	m.wakeUp()
}

func (m *Manager) wakeUp() {
	select {
	case m.loop.wake <- struct{}{}:
	default:
	}
}

// advance carries out outcomes and timers that are due, until there are none.
func (m *Manager) advance() {
	for {
		m.loop.inboxMu.Lock()
		inbox := m.loop.inbox
		m.loop.inbox = nil
		m.loop.inboxMu.Unlock()
		for _, f := range inbox {
			f()
		}
		if len(inbox) > 0 {
			continue
		}
		if len(m.loop.timers) == 0 || m.loop.timers[0].at.After(m.options.Now()) {
			return
		}
		heap.Pop(&m.loop.timers).(*timer).f()
	}
}

func (m *Manager) workers(p pool) int {
	return [pools]int{
		deletePool: m.options.DeleteWorkers, createPool: m.options.CreateWorkers,
		signalPool: m.options.ProcessWorkers, startPool: m.options.ProcessWorkers, probePool: m.options.ProcessWorkers,
		measurePool: 1, sweepPool: 1, downloadPool: m.options.Downloads, uploadPool: m.options.Uploads,
	}[p]
}

// room reports whether a pool has a place for a job. A container gets no more
// than half of them, so that what holds up its own jobs does not hold up those
// of all others. Each volume driver has its own, for the same reason.
func (m *Manager) room(j *job) bool {
	most := 0
	switch j.pool {
	case volumePool:
		most = volumeCalls
	case volumeProbePool:
		most = 1
	default:
		all := m.workers(j.pool)
		if len(m.loop.running[j.pool]) >= all {
			return false // thousands of jobs may be asked about
		}
		most = max(1, all/2)
	}
	return m.loop.shares[share{j.pool, j.sharer}] < most
}

// relief is when the next job of a pool gives its place up, or false if none does.
func (m *Manager) relief(p pool) (time.Time, bool) {
	if turn(p) == 0 || len(m.loop.running[p]) == 0 || !m.mayBeLate(p) {
		return time.Time{}, false
	}
	return m.loop.running[p][0].since.Add(turn(p)), true
}

// relieve takes the places of those that have had their turn.
func (m *Manager) relieve(now time.Time) {
	for p := range pools {
		for {
			at, ok := m.relief(p)
			if !ok || at.After(now) {
				break
			}
			m.loop.running[p][0].late = true
			m.loop.running[p] = slices.Delete(m.loop.running[p], 0, 1)
			m.loop.late[p]++
		}
	}
}

// leave is for a job that is over.
func (m *Manager) leave(j *job) {
	if j.late {
		m.loop.late[j.pool]--
	} else if i := slices.Index(m.loop.running[j.pool], j); i >= 0 {
		m.loop.running[j.pool] = slices.Delete(m.loop.running[j.pool], i, i+1)
	}
	mine := share{j.pool, j.sharer}
	if m.loop.shares[mine]--; m.loop.shares[mine] == 0 {
		delete(m.loop.shares, mine)
	}
}

// letOthersPass puts the jobs of one pool and sharer behind those of all others, because
// j, which is another of them, gets its place. So the sharers take turns. A tenant with
// thousands of jobs, such as checks that get no answer, does not keep others waiting until
// all of his have had their places.
func letOthersPass(j *job, line []*job) {
	var own []*job
	others := 0
	for _, next := range line {
		if next.pool == j.pool && next.sharer == j.sharer {
			own = append(own, next)
			continue
		}
		line[others] = next
		others++
	}
	copy(line[others:], own)
}

// take removes and returns the first job that may be carried out now, or nil.
// A cancelled job needs no place: it ends at once.
func (m *Manager) take(delays bool) *job {
	now := m.options.Now()
	m.relieve(now)
	for i, j := range m.loop.jobs {
		if !j.placed && !j.cancelled && !m.room(j) {
			j.waited = true
		} else if !j.placed {
			if j.waited && !j.cancelled {
				letOthersPass(j, m.loop.jobs[i+1:])
			}
			j.placed, j.since = true, now
			m.loop.running[j.pool] = append(m.loop.running[j.pool], j)
			m.loop.shares[share{j.pool, j.sharer}]++
			if delays && m.options.Delay != nil {
				j.due = now.Add(m.options.Delay(j.Job))
			}
		}
		if j.placed && (j.cancelled || !j.due.After(now)) {
			if i == 0 { // as for each of thousands that are cancelled at once
				m.loop.jobs[0], m.loop.jobs = nil, m.loop.jobs[1:]
			} else {
				m.loop.jobs = slices.Delete(m.loop.jobs, i, i+1)
			}
			return j
		}
	}
	return nil
}

// prepare gives a job its context. It is called with the lock.
func (j *job) prepare(ctx context.Context) context.Context {
	ctx, j.cancel = context.WithCancel(ctx)
	if j.cancelled {
		j.cancel()
	}
	return ctx
}

// carryOut does a job and posts its outcome.
func (m *Manager) carryOut(ctx context.Context, j *job) {
	outcome := j.work(ctx)
	m.post(func() {
		j.cancel()
		m.leave(j)
		if outcome != nil {
			outcome()
		}
	})
}

// Tick carries out everything that is due now, jobs included, in a fixed order
// and in the calling goroutine. It also steps a backend that is an
// [executor.Stepper]. Jobs that Run has begun are left to it.
func (m *Manager) Tick(ctx context.Context) {
	stepper, steps := m.options.Backend.(executor.Stepper)
	for {
		if steps {
			stepper.Step(m.options.Now())
		}
		m.mu.Lock()
		m.advance()
		j := m.take(true)
		var jobCtx context.Context
		if j != nil {
			jobCtx = j.prepare(ctx)
		}
		m.mu.Unlock()
		if j != nil {
			m.carryOut(jobCtx, j)
			continue
		}
		if !m.due() {
			return
		}
	}
}

// due reports whether something has come up for now.
func (m *Manager) due() bool {
	m.loop.inboxMu.Lock()
	waiting := len(m.loop.inbox) > 0
	m.loop.inboxMu.Unlock()
	next, ok := m.Next()
	return waiting || ok && !next.After(m.options.Now())
}

// Next returns when Tick will next have something to do, as far as that is
// known now, or false if it has nothing. A process may end before that.
func (m *Manager) Next() (time.Time, bool) {
	m.mu.Lock()
	var next time.Time
	known := false
	consider := func(t time.Time) {
		if !known || t.Before(next) {
			next, known = t, true
		}
	}
	if len(m.loop.timers) > 0 {
		consider(m.loop.timers[0].at)
	}
	for _, j := range m.loop.jobs {
		if j.placed {
			consider(j.due)
		} else if m.room(j) {
			consider(m.options.Now())
		} else if at, ok := m.relief(j.pool); ok {
			consider(at)
		}
	}
	m.mu.Unlock()
	if stepper, ok := m.options.Backend.(executor.Stepper); ok {
		if t, ok := stepper.Next(); ok {
			consider(t)
		}
	}
	return next, known
}

// jobPatience is how long Run waits for jobs that it has cancelled. A call that
// waits for a file system that hangs, such as a volume, knows no context.
const jobPatience = 15 * time.Second

// await waits for all jobs, of which left go on, up to jobPatience.
func (m *Manager) await(running *sync.WaitGroup, left *atomic.Int64) {
	over := make(chan struct{})
	go func() {
		running.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(jobPatience):
		m.options.Logger.Error("jobs of containers do not end, perhaps because a volume hangs; the manager ends without them", "jobs", left.Load())
	}
}

// Run does what Tick does, with a goroutine per job and timers, until ctx ends.
// Then it cancels the jobs, waits for them for a while and returns. Containers live
// on. After Run has returned, only Clear may be called.
func (m *Manager) Run(ctx context.Context) {
	var running sync.WaitGroup
	var left atomic.Int64 // jobs
	defer m.await(&running, &left)
	if m.fetcher != nil {
		running.Go(func() { m.removeFormerCache(ctx) })
	}
	stepper, steps := m.options.Backend.(executor.Stepper)
	for ctx.Err() == nil {
		if steps {
			stepper.Step(m.options.Now())
		}
		m.mu.Lock()
		m.advance()
		for j := m.take(false); j != nil; j = m.take(false) {
			jobCtx := j.prepare(ctx)
			left.Add(1)
			running.Go(func() {
				defer left.Add(-1)
				m.carryOut(jobCtx, j)
			})
		}
		m.mu.Unlock()

		var alarm <-chan time.Time
		if next, ok := m.Next(); ok {
			alarm = time.After(next.Sub(m.options.Now()))
		}
		select {
		case <-ctx.Done():
		case <-m.loop.wake:
		case <-alarm:
		}
	}
}

// removeFormerCache removes what an earlier daemon has downloaded, while work goes
// on.
func (m *Manager) removeFormerCache(ctx context.Context) {
	if err := m.fetcher.RemoveFormer(ctx); err != nil && ctx.Err() == nil {
		m.options.Logger.Error("downloads of an earlier daemon cannot be removed; the next start tries it again", "error", err)
	}
}
