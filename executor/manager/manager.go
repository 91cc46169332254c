package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/rate"
	"github.com/diegosdk/diego/executor/internal/transfer"
)

// A Manager runs the containers of one cell. Its methods may be called
// concurrently. Tick, Run, Clear, ReadFile, Exec, CopyIn and CopyOut wait for the
// backend; no other method waits.
type Manager struct {
	options Options
	host    executor.Host
	fetcher *transfer.Fetcher // nil without Options.Dir
	ended   *ended            // nil without Options.Dir

	mu            sync.Mutex
	entries       map[string]*entry
	used          Capacity
	leftovers     []executor.Leftover
	sweeping      bool
	sweepAgain    bool                // something was set aside since the sweep began
	unaccounted   []func()            // to be called by the next sweep
	drivers       map[string]*driver  // of volumes
	holdings      map[string]*holding // by the guid of the container
	strays        map[string]bool     // guids that the host has and we do not, being removed
	earlier       map[string]bool     // those of them that were there from the start; nil until it is known
	cleared       chan struct{}
	subscriptions map[*Subscription]struct{}
	measuring     bool
	measuringSoon bool // a timer runs for containers that have started
	sessions      int
	sessionsOf    map[string]int // by the name of the caller
	loop          loop

	begins, pieces *rate.Rate // of sessions
}

// New asks the backend what it can do and returns a Manager without containers.
// The first Tick removes those that an earlier daemon left.
func New(ctx context.Context, o Options) (*Manager, error) {
	if o.Backend == nil {
		return nil, errors.New("manager: Options.Backend is not set")
	}
	host, err := o.Backend.Probe(ctx)
	if err != nil {
		return nil, fmt.Errorf("manager: the host cannot run containers: %w", err)
	}
	if err := o.validate(host); err != nil {
		return nil, err
	}
	var ended *ended
	if o.Dir != "" {
		if ended, err = openEnded(&o); err != nil {
			return nil, err
		}
	}
	if err := o.openCredentials(&host); err != nil {
		return nil, err
	}
	fetcher, err := o.fetcher()
	if err != nil {
		return nil, err
	}
	m := &Manager{
		options: o, host: host, fetcher: fetcher, ended: ended,
		sessionsOf: map[string]int{}, begins: &rate.Rate{Every: beginEvery, Burst: beginBurst}, pieces: &rate.Rate{Every: pieceEvery, Burst: pieceBurst},
		entries:       make(map[string]*entry),
		strays:        make(map[string]bool),
		cleared:       make(chan struct{}),
		subscriptions: make(map[*Subscription]struct{}),
		loop:          loop{wake: make(chan struct{}, 1)},
	}
	if err := m.openVolumes(); err != nil {
		return nil, err
	}
	m.after(0, m.reap)
	if o.Identity != nil {
		m.after(o.Identity.CheckInterval(), m.checkCredentials)
	}
	m.probeVolumes()
	if o.UsageInterval > 0 {
		m.after(o.UsageInterval, m.measure)
	}
	return m, nil
}

// Host returns what the backend's host could do when the Manager was made, with
// executor.FeatureIdentity if Options.Identity is set.
func (m *Manager) Host() executor.Host { return m.host }

// RefusedFields returns the fields that the cell refuses in all work, for
// rep.Options. See executor.Demand.
func (m *Manager) RefusedFields() []string { return m.host.RefusedFields() }

// Cleared returns a channel that is closed once the Manager has removed what an
// earlier daemon left on the host, or has tried to and failed, which is logged
// and tried again. Until then processes of that daemon may still run.
func (m *Manager) Cleared() <-chan struct{} { return m.cleared }

// Reserve makes RESERVED containers in the given order, as far as there is
// room. It returns a Refusal for each of the others, in the same order.
func (m *Manager) Reserve(list ...Reservation) []Refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	var refused []Refusal
	for _, r := range list {
		c, err := m.admissible(r, m.remaining())
		if err != nil {
			refused = append(refused, Refusal{GUID: r.GUID, Err: err})
			continue
		}
		m.admit(c)
	}
	return refused
}

// admissible is the container of a reservation if it fits into left.
func (m *Manager) admissible(r Reservation, left Capacity) (executor.Container, error) {
	c, err := executor.Reserve(r.GUID, r.Resources, r.Tags, m.options.Now())
	if err != nil {
		return c, err
	}
	if m.entries[r.GUID] != nil || m.strays[r.GUID] || m.holdings[r.GUID] != nil {
		return c, &GUIDError{r.GUID, ErrExists}
	}
	need := m.share(r.Resources)
	if m.options.Capacity.PIDs == 0 {
		left.PIDs = 0
	}
	if lacks := left.Lacks(need); !lacks.IsZero() {
		return c, &CapacityError{GUID: r.GUID, Lacks: lacks}
	}
	return c, nil
}

func (m *Manager) admit(c executor.Container) {
	e := &entry{manager: m, guid: c.GUID, share: m.share(c.Resources)}
	m.entries[c.GUID] = e
	m.used = m.used.Plus(e.share)
	e.set(c)
	e.expiry = m.after(m.options.ReservationExpiry, e.expire)
}

// Initialize gives a reservation its work and has the container made and run
// (RESERVED → INITIALIZING → …). It returns at once. An error is a *GUIDError,
// an *executor.TransitionError or an *executor.ValidationError, and leaves the
// reservation unchanged.
func (m *Manager) Initialize(guid string, w Work) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[guid]
	if e == nil {
		return &GUIDError{guid, ErrNotFound}
	}
	if e.deleting {
		return &GUIDError{guid, ErrNotFound}
	}
	next, err := e.container.Initialize(w.RunInfo, w.Tags, m.options.Now())
	if err != nil {
		return err
	}
	// The work brings the files to the backend. They may be a MiB of secrets, and
	// nobody needs them later.
	info := *next.RunInfo
	info.VolumeMountedFiles = nil
	next.RunInfo = &info
	m.forget(e.expiry)
	e.grace = w.Grace
	orDefault(&e.grace, m.options.Grace)
	e.set(next)
	e.create(w)
	return nil
}

// Stop ends what runs in a container: it sends TERM, then KILL after its grace.
// The container becomes COMPLETED with the result executor.Stopped, even if it
// is still being made. Stop returns at once. For a container that has COMPLETED
// or is being stopped it does nothing. A reservation can only be deleted;
// stopping one is an *executor.TransitionError.
func (m *Manager) Stop(guid string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[guid]
	switch {
	case e == nil:
		return &GUIDError{guid, ErrNotFound}
	case e.container.State == executor.Reserved:
		return &executor.TransitionError{GUID: guid, Transition: executor.Transition{From: executor.Reserved, To: executor.Completed}}
	}
	e.stop()
	return nil
}

// Delete removes a container in any state, and first stops a live one as Stop
// does. It returns at once. The container is listed and keeps its resources
// until nothing of it is left on the host. A removal that fails is retried: see
// Deletions. For a container that does not exist or is being deleted, Delete
// does nothing.
func (m *Manager) Delete(guid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[guid]; e != nil {
		e.delete()
	}
}

// Get returns a container, or false if there is none. Its RunInfo has no
// VolumeMountedFiles.
func (m *Manager) Get(guid string) (executor.Container, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[guid]
	if e == nil {
		return executor.Container{}, false
	}
	return e.container, true
}

// List returns all containers, sorted by guid. Their RunInfos have no
// VolumeMountedFiles.
func (m *Manager) List() []executor.Container {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]executor.Container, 0, len(m.entries))
	for _, guid := range slices.Sorted(maps.Keys(m.entries)) {
		list = append(list, m.entries[guid].container)
	}
	return list
}

// A Deletion is a container that is being deleted.
type Deletion struct {
	GUID string
	// Attempts counts those that failed. Err says why the last one did.
	Attempts int
	Err      error
}

// Deletions returns all containers that are being deleted, sorted by guid.
func (m *Manager) Deletions() []Deletion {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Deletion
	for _, guid := range slices.Sorted(maps.Keys(m.entries)) {
		if e := m.entries[guid]; e.deleting {
			list = append(list, Deletion{guid, e.deleteAttempts, e.deleteErr})
		}
	}
	return list
}

// Total returns the capacity of the cell.
func (m *Manager) Total() Capacity { return m.options.Capacity }

// Leftovers returns files of deleted containers that are still being removed,
// or that cannot be removed, for example because an administrator has made them
// immutable. The backend has set them aside, and the Manager has it try again
// every ReapInterval.
func (m *Manager) Leftovers() []executor.Leftover {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.leftovers)
}

// Remaining returns what no container has taken: Total less the sum over List,
// and less the disk that Leftovers take.
func (m *Manager) Remaining() Capacity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remaining()
}

func (m *Manager) remaining() Capacity {
	var bytes int64
	for _, l := range m.leftovers {
		bytes += l.Bytes
	}
	const mib = 1 << 20
	left := m.options.Capacity.Minus(m.used)
	left.DiskMB = max(left.DiskMB-(bytes+mib-1)/mib, 0)
	return left
}

// A LeftError says what Clear could not remove from the host.
type LeftError struct {
	Containers int
	// VolumesOf counts the containers that are gone, but whose volumes could not
	// be unmounted.
	VolumesOf int
	// Err is why the first of them, by guid, is still there.
	Err error
}

func (e *LeftError) Error() string {
	if e.Containers == 0 {
		return fmt.Sprintf("containers whose volumes could not be unmounted: %d; the next start in the same directory tries it again; one of them: %v", e.VolumesOf, e.Err)
	}
	return fmt.Sprintf("containers that could not be removed: %d; processes in them may still run; the first: %v", e.Containers, e.Err)
}

func (e *LeftError) Unwrap() error { return e.Err }

// clearTimeout bounds how long Clear takes for a container.
const clearTimeout = 25 * time.Second

// Clear deletes every container that the backend lists, including those that the
// Manager does not know, and those that the Manager has made, which the backend does not
// list if its directory is gone. It deletes Options.DeleteWorkers at a time, and unmounts
// the volumes of all containers that are gone. A daemon calls it at its end, after Run has
// returned. An error wraps a *LeftError, or the backend's if it could not list its
// containers; then those that the Manager has not made may still run, and keep their
// volumes. A container whose files were set aside counts as deleted; the log says so. One
// that takes 25 s is left, so that those that do not die hold up no others.
func (m *Manager) Clear(ctx context.Context) error {
	guids, unlisted := m.options.Backend.List(ctx)
	m.mu.Lock()
	for guid, e := range m.entries {
		if e.made {
			guids = append(guids, guid)
		}
	}
	m.mu.Unlock()
	slices.Sort(guids)
	guids = slices.Compact(guids)
	failures := make([]error, len(guids))
	var deleting errgroup.Group
	deleting.SetLimit(m.options.DeleteWorkers)
	for i, guid := range guids {
		deleting.Go(func() error {
			attempt, cancel := context.WithTimeout(ctx, clearTimeout)
			defer cancel()
			err := m.options.Backend.Delete(attempt, guid)
			if errors.Is(err, executor.ErrSetAside) {
				m.options.Logger.Warn("nothing of a container runs any more, but some of its files are left", "guid", guid, "error", err)
				err = nil
			}
			failures[i] = err
			return nil
		})
	}
	_ = deleting.Wait() // one failure must not hide how many there are
	var left LeftError
	var err error
	stuck := map[string]bool{} // they still use their volumes
	for i, err := range failures {
		if err != nil {
			stuck[guids[i]] = true
			left.Containers, left.Err = left.Containers+1, cmp.Or(left.Err, err)
		}
	}
	if unlisted != nil {
		m.mu.Lock()
		for guid, h := range m.holdings {
			if _, deleted := slices.BinarySearch(guids, guid); !deleted && !h.releasing {
				stuck[guid] = true // its container may still run
			}
		}
		m.mu.Unlock()
	}
	left.VolumesOf, err = m.clearVolumes(ctx, stuck)
	if left.Err = cmp.Or(left.Err, err); left.Err == nil {
		return unlisted
	}
	return errors.Join(unlisted, &left)
}
