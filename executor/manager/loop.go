package manager

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/diegosdk/diego/executor"
)

// A JobKind says what a job does.
type JobKind string

// The kinds of jobs.
const (
	JobFetch    JobKind = "fetch" // what a container needs before it is made
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
	JobLog      JobKind = "log"     // writes messages of recipes to the log of a container
)

// A Job is one call that takes time; Options.Delay receives it.
type Job struct {
	Kind JobKind
	// GUID is the container's; it is empty for JobList, JobMeasure, JobSweep and
	// the probe of a volume driver.
	GUID string
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

// A loop holds what will happen. Its timers and jobs are guarded by the
// Manager's lock; the inbox has its own, since backends fill it at any time.
type loop struct {
	timers    timers
	sequence  int64
	places    [pools]places
	delayed   []*job // those with a place that begin later, for Options.Delay
	cancelled []*job // those that were cancelled before they had a place

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
	for _, j := range m.loop.delayed {
		consider(j.due)
	}
	for p := range pools {
		pl := &m.loop.places[p]
		if pl.line.Len() > 0 && m.free(p) {
			consider(m.options.Now())
		} else if _, at, ok := m.relief(p); ok && pl.ready > 0 {
			consider(at)
		}
	}
	if len(m.loop.cancelled) > 0 {
		consider(m.options.Now())
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
