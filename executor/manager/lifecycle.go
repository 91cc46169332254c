package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/rate"
)

// An entry is one container of the registry. Everything in it is guarded by
// the Manager's lock, and its methods are called with it.
type entry struct {
	manager   *Manager
	guid      string
	share     Capacity
	container executor.Container

	expiry   *timer // of the reservation
	grace    time.Duration
	creation *job // while INITIALIZING
	stopping bool // somebody has asked for the end
	made     bool // the host may have something of it
	endpoint executor.Endpoint
	logs     *logs
	flushing bool // a job writes what the logs keep in memory
	// credentials are nil without Options.Identity, and until CREATED.
	credentials *credentials
	recipe      *recipe // from CREATED to COMPLETED
	undo        []func(context.Context) error

	sessions int                                   // that somebody has in it
	copies   map[*context.CancelCauseFunc]struct{} // those of them that a removal ends

	createdAt    time.Time    // when it had used nothing
	measurement  *Measurement // nil before the first
	measureAgain time.Time

	deleting       bool
	deleteAttempts int
	deleteErr      error
}

// set makes next the container and tells subscribers.
func (e *entry) set(next executor.Container) {
	e.container = next
	if event, tell := next.Event(); tell {
		e.manager.publish(event)
	}
}

// there reports whether e is still in the registry. Outcomes ask it, since a
// container may be gone when they come.
func (e *entry) there() bool { return e.manager.entries[e.guid] == e }

func (e *entry) expire() {
	if next, expired := e.container.Expire(e.manager.options.ReservationExpiry, e.manager.options.Now()); expired {
		e.set(next)
	}
}

// create begins to make the container (INITIALIZING).
func (e *entry) create(w executor.Work) {
	m := e.manager
	e.made = true
	e.logs = m.newLogs(e.container)
	p := newPreparation(m, e.container, w, e.logs)
	var h *holding
	if len(w.VolumeMounts) > 0 {
		var err error
		if h, err = m.hold(e.guid, w.VolumeMounts); err != nil {
			m.post(func() { e.created(executor.Endpoint{}, err) })
			return
		}
	}
	e.mount(p, h, 0)
}

// fetch fetches what the container needs from servers, and then makes it. It takes no
// place of createPool, so slow servers do not hold up containers that need nothing of
// them. The places of the downloads bound how much goes on.
func (e *entry) fetch(p *preparation) {
	if !p.fetches() {
		e.make(p)
		return
	}
	m := e.manager
	e.creation = m.submit(fetchPool, JobFetch, e.guid, func(ctx context.Context) func() {
		began := m.options.Now()
		err := ctx.Err()
		if err == nil {
			if err = p.fetchAll(ctx); err != nil {
				m.options.Observer.Created(m.options.Now().Sub(began), err)
			}
		}
		return func() {
			e.creation = nil
			if err != nil || e.stopping {
				e.undo = p.undo
				e.created(executor.Endpoint{}, err)
				return
			}
			e.make(p)
		}
	})
}

// make makes the container, whose volumes are mounted and for which everything is fetched.
func (e *entry) make(p *preparation) {
	e.creation = e.manager.submit(createPool, JobCreate, e.guid, func(ctx context.Context) func() {
		began := e.manager.options.Now()
		var endpoint executor.Endpoint
		err := ctx.Err()
		if err == nil {
			endpoint, err = p.create(ctx)
			e.manager.options.Observer.Created(e.manager.options.Now().Sub(began), err)
		}
		return func() {
			e.creation = nil
			e.undo, e.credentials = p.undo, p.credentials
			e.created(endpoint, err)
		}
	})
}

func (e *entry) created(endpoint executor.Endpoint, err error) {
	switch {
	case e.stopping:
		e.complete(executor.Stopped())
		return
	case err != nil:
		e.complete(executor.NeverBegan(fmt.Sprintf("failed to create the container: %v", err)))
		return
	}
	e.createdAt = e.manager.options.Now()
	next, err := e.container.Create(endpoint.Addresses, e.createdAt)
	if err != nil { // the backend has returned something that is not an address
		e.complete(executor.NeverBegan(fmt.Sprintf("failed to create the container: %v", err)))
		return
	}
	e.endpoint = endpoint
	e.set(next)
	e.recipe = &recipe{entry: e, probing: rate.Rate{Burst: probeBurst, Longest: longestTurn}}
	e.recipe.start()
}

// run says that the container is healthy.
func (e *entry) run() {
	if next, err := e.container.Run(e.manager.options.Now()); err == nil {
		e.set(next)
		e.manager.measureSoon()
	}
}

func (e *entry) setRoutable(routable bool) {
	if next, changed := e.container.SetRoutable(routable); changed {
		e.set(next)
	}
}

// stop ends a live container.
func (e *entry) stop() {
	if e.stopping {
		return
	}
	e.stopping = true
	switch {
	case e.creation != nil:
		e.creation.stop(e.manager)
	case e.recipe != nil:
		e.recipe.end(executor.Stopped())
	}
}

// complete ends the container. A result that contradicts itself cannot come
// from the constructors, so the error of Complete says that it has ended
// before.
func (e *entry) complete(result executor.RunResult) {
	next, err := e.container.Complete(result, e.manager.options.Now())
	if err != nil {
		return
	}
	e.recipe = nil
	e.set(next)
	if e.deleting {
		e.remove()
	}
}

// delete ends the container and then removes it.
func (e *entry) delete() {
	if e.deleting {
		return
	}
	e.deleting = true
	e.manager.forget(e.expiry)
	switch e.container.State {
	case executor.Reserved, executor.Completed:
		e.remove()
	default:
		e.stop()
	}
}

// The pause between attempts to remove a container doubles up to the reap
// interval.
const firstDeletePause = time.Second

// remove takes the container from the host, and then from the registry.
func (e *entry) remove() {
	m := e.manager
	if !e.made {
		e.gone()
		return
	}
	for end := range e.copies { // each holds a directory of the container, and so its disk
		(*end)(errRemoved(e.guid))
	}
	undo := e.undo
	m.submit(deletePool, JobDelete, e.guid, func(ctx context.Context) func() {
		err := m.options.Backend.Delete(ctx, e.guid)
		aside := errors.Is(err, executor.ErrSetAside)
		if aside {
			err = nil // the container is gone
		}
		for err == nil && len(undo) > 0 {
			// The last that was done is the first to be undone.
			if err = undo[len(undo)-1](ctx); err == nil {
				undo = undo[:len(undo)-1]
			}
		}
		if err == nil && e.logs != nil {
			err = e.logs.remove(m.ended)
		}
		return func() {
			e.undo = undo
			if err == nil {
				gone := func() { m.release(e.guid, e.gone) }
				if aside {
					m.sweep(gone) // its room is given back when its files are accounted for
				} else {
					gone()
				}
				return
			}
			e.deleteAttempts++
			e.deleteErr = err
			m.options.Logger.Error("a container could not be removed", "guid", e.guid, "attempts", e.deleteAttempts, "error", err)
			pause := min(firstDeletePause<<min(e.deleteAttempts-1, 20), m.options.ReapInterval)
			m.after(pause, e.remove)
		}
	})
}

// sweep tries again to remove what was set aside, while other work goes on. It calls
// accounted, which may be nil, once the disk of that is no longer given away.
func (m *Manager) sweep(accounted func()) {
	backend, can := m.options.Backend.(executor.Sweeper)
	if accounted != nil {
		m.unaccounted = append(m.unaccounted, accounted)
	}
	if m.sweeping && can {
		m.sweepAgain = true
		return
	}
	calls := m.unaccounted
	m.unaccounted = nil
	account := func(left []executor.Leftover) {
		m.keep(left)
		for _, call := range calls {
			call()
		}
		calls = nil
	}
	if !can {
		account(nil)
		return
	}
	m.sweeping = true
	m.submit(sweepPool, JobSweep, "", func(ctx context.Context) func() {
		if w, can := backend.(executor.Weigher); can {
			if aside, err := w.Aside(ctx); err == nil {
				m.post(func() { account(aside) })
			}
		}
		left, err := backend.Sweep(ctx)
		return func() {
			if err != nil {
				m.options.Logger.Error("what was set aside could not be looked at", "error", err)
				left = m.leftovers
			}
			account(left)
			m.sweeping = false
			if m.sweepAgain {
				m.sweepAgain = false
				m.sweep(nil)
			}
		}
	})
}

// keep remembers what is set aside, whose disk nobody is promised.
func (m *Manager) keep(left []executor.Leftover) {
	for i := range left {
		l := &left[i]
		known := slices.IndexFunc(m.leftovers, func(known executor.Leftover) bool { return known.Path == l.Path })
		switch {
		case l.Err == nil && known >= 0:
			l.Err = m.leftovers[known].Err // of the last attempt
		case l.Err != nil && (known < 0 || m.leftovers[known].Err == nil):
			m.options.Logger.Error("files that cannot be removed were set aside; the disk that they take is not given away",
				"path", l.Path, "bytes", l.Bytes, "error", l.Err)
		}
	}
	m.leftovers = left
}

// gone gives back what the container had.
func (e *entry) gone() {
	if !e.there() {
		return
	}
	delete(e.manager.entries, e.guid)
	e.manager.used = e.manager.used.Minus(e.share)
}

// reap compares the registry with the host: what the host has and nobody knows
// is removed, and what should be there and is not has failed.
func (m *Manager) reap() {
	m.after(m.options.ReapInterval, m.reap)
	m.sweep(nil)
	// The answer of the host may lack containers that are made after it was asked,
	// so only those made before count.
	var expected []*entry
	for _, guid := range slices.Sorted(maps.Keys(m.entries)) {
		if e := m.entries[guid]; e.recipe != nil {
			expected = append(expected, e)
		}
	}
	m.submit(deletePool, JobList, "", func(ctx context.Context) func() {
		guids, err := m.options.Backend.List(ctx)
		return func() {
			if err != nil {
				m.options.Logger.Error("the containers of the host could not be listed", "error", err)
				return
			}
			listed := make(map[string]bool, len(guids))
			for _, guid := range guids {
				listed[guid] = true
				if m.entries[guid] == nil && !m.strays[guid] {
					m.removeStray(guid)
				}
			}
			if m.earlier == nil {
				m.earlier = maps.Clone(m.strays)
				m.noteCleared("")
			}
			for _, guid := range slices.Sorted(maps.Keys(m.holdings)) {
				if m.entries[guid] == nil && !listed[guid] {
					m.release(guid, nil)
				}
			}
			for _, e := range expected {
				if e.there() && e.recipe != nil && !listed[e.guid] {
					e.recipe.end(executor.Failed("the container disappeared from its host"))
				}
			}
		}
	})
}

// strayTimeout bounds an attempt to remove a stray. One whose processes do not die,
// because a volume hangs, must not keep Cleared open.
const strayTimeout = time.Minute

// removeStray removes a container that nobody knows. What fails is found again
// by the next comparison.
func (m *Manager) removeStray(guid string) {
	m.strays[guid] = true
	m.submit(deletePool, JobDelete, guid, func(ctx context.Context) func() {
		attempt, cancel := context.WithTimeout(ctx, strayTimeout)
		defer cancel()
		err := m.options.Backend.Delete(attempt, guid)
		aside := errors.Is(err, executor.ErrSetAside)
		if aside {
			err = nil // the container is gone
		}
		if err != nil && ctx.Err() == nil { // else Clear sees to it
			m.options.Logger.Error("a stray container could not be removed", "guid", guid, "error", err)
		}
		return func() {
			if aside {
				m.sweep(nil)
			}
			delete(m.strays, guid)
			if err == nil {
				m.release(guid, nil)
			}
			m.noteCleared(guid)
		}
	})
}

// noteCleared notes that a stray was removed or could not be.
func (m *Manager) noteCleared(guid string) {
	if len(m.earlier) == 0 && guid != "" {
		return // it came later, and the channel is closed
	}
	delete(m.earlier, guid)
	if len(m.earlier) == 0 {
		close(m.cleared)
	}
}
