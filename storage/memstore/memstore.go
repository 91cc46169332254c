// Package memstore is a storage.Store in memory: for tests, simulations in
// virtual time and small programs. It keeps nothing beyond Close.
//
// Lists and views work on snapshots. A snapshot costs the same however much the
// store holds, and commits go on while somebody reads it. What the methods
// return is shared with the store: callers may keep it and must not change what
// it points to.
//
// # Concurrent use
//
// The methods of [Store] may be called concurrently. Options are plain values:
// any number of goroutines may use one while none changes it.
package memstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// Options of [New]. Nil means the zero value, which has the documented
// defaults.
type Options struct {
	// Now is the store's clock (default time.Now). It is called with the
	// store locked and must not use it.
	Now func() time.Time
	// Events is the number of the newest events that the log holds (default
	// 100,000). Up to twice as many stay in memory.
	Events int
	// EventBytes is how many bytes the log may take: events beyond it are dropped
	// as those beyond Events are, but never the newest. What counts is the encoding
	// of each event, which costs each commit its time (default: no limit).
	EventBytes int64
	// Requests is how long request ids are remembered, at least (default 1 h,
	// which is also the minimum).
	Requests time.Duration
}

const (
	defaultEvents   = 100_000
	defaultRequests = time.Hour
	// sweepEvery is the time between sweeps.
	sweepEvery = time.Minute
)

var (
	errOver   = errors.New("the View is over")
	errClosed = errors.New("the store is closed")
)

// A Store implements storage.Store, storage.Waiter, storage.Recaller and
// storage.Restorer. All methods may be called concurrently. They return the
// errors of the contract and those of their context, and fail after Close. Make
// a Store with [New]; the zero value is not usable.
type Store struct {
	reader
	core *core
}

// A core is what a Store's methods work on.
type core struct {
	clock   func() time.Time
	options Options

	mu     sync.RWMutex
	state  state
	closed bool
	// shared is true while state.owner's nodes are in a snapshot, and leasesShared
	// while those of state.leaseOwner are. Leases are renewed far more often than
	// anybody lists them.
	shared, leasesShared bool

	requests map[string]storage.Cursor
	// remembered lists the requests in order of time.
	remembered []request
	swept      time.Time // when sweep last looked
	// floor is at least the greatest epoch of all leases that were swept or may
	// have been lost.
	floor int64
	aside []storage.Quarantine
	// sizes are those of the newest events, the last of the log's last, and bytes
	// is their sum, if the options limit it.
	sizes []int64
	bytes int64
	// wake is closed when there are new events; nil if nobody waits.
	wake    chan struct{}
	runlock func()
}

type request struct {
	id string
	at time.Time
}

var (
	_ storage.Store    = (*Store)(nil)
	_ storage.Waiter   = (*Store)(nil)
	_ storage.Recaller = (*Store)(nil)
	_ storage.Restorer = (*Store)(nil)
)

// New makes an empty store. Values of o that are negative or below their
// minimum count as the default.
func New(o *Options) *Store {
	c := &core{clock: time.Now, state: newState(), requests: make(map[string]storage.Cursor)}
	if o != nil {
		c.options = *o
	}
	if c.options.Now != nil {
		c.clock = c.options.Now
	}
	if c.options.Events <= 0 {
		c.options.Events = defaultEvents
	}
	c.options.Requests = max(c.options.Requests, defaultRequests)
	c.runlock = c.mu.RUnlock
	return &Store{reader: reader{c}, core: c}
}

func (c *core) now() time.Time { return c.clock().Round(0).UTC() }

// usable returns why the store cannot be used with ctx, or nil. It is called
// with the store locked.
func (c *core) usable(ctx context.Context) error {
	if c.closed {
		return errClosed
	}
	return ctx.Err()
}

func (c *core) time(ctx context.Context) (time.Time, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.now(), c.usable(ctx)
}

func (c *core) hold(ctx context.Context) (*state, func(), error) {
	c.mu.RLock()
	if err := c.usable(ctx); err != nil {
		c.mu.RUnlock()
		return nil, nil, err
	}
	return &c.state, c.runlock, nil
}

func (c *core) still(ctx context.Context, leases bool) (*state, time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(ctx); err != nil {
		return nil, time.Time{}, err
	}
	s := c.state
	c.shared, c.leasesShared = true, c.leasesShared || leases
	return &s, c.now(), nil
}

// View implements storage.Store. f reads a snapshot, so it may take its time
// and may commit to s.
func (s *Store) View(ctx context.Context, f func(storage.Reader) error) error {
	st, now, err := s.core.still(ctx, true)
	if err != nil {
		return err
	}
	v := &view{state: st, now: now}
	defer func() { v.over = true }()
	return f(reader{v})
}

// Commit implements storage.Store. On any error, nothing was written.
func (s *Store) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	if err := b.Check(); err != nil {
		return 0, err
	}
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(ctx); err != nil {
		return 0, err
	}
	now := c.now()
	if err := c.admit(&b, now); err != nil {
		return 0, err
	}
	c.write(&b, now)
	c.sweep(now)
	var last storage.Cursor
	if len(b.Events) > 0 {
		c.append(b.Events, now)
		last = c.state.newest
	}
	if b.RequestID != "" {
		c.requests[b.RequestID] = last
		c.remembered = append(c.remembered, request{b.RequestID, now})
	}
	return last, nil
}

// Remembers implements storage.Store.
func (s *Store) Remembers(ctx context.Context, requestID string) (bool, error) {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(ctx); err != nil {
		return false, err
	}
	c.forget(c.now())
	_, known := c.requests[requestID]
	return known, nil
}

// admit returns the reason not to commit b, or nil.
func (c *core) admit(b *storage.Batch, now time.Time) error {
	c.forget(now)
	if b.RequestID != "" {
		if cursor, known := c.requests[b.RequestID]; known {
			return &storage.DuplicateError{RequestID: b.RequestID, Cursor: cursor}
		}
	}
	if b.Fence != (storage.Fence{}) {
		l, _ := c.state.leases.get(leaseKey{b.Fence.Kind, b.Fence.Name})
		if !l.good(b.Fence.Epoch) {
			return &storage.FencedError{Fence: b.Fence, Epoch: l.Epoch}
		}
	}
	if b.Origin != nil {
		if err := c.state.compare(b.Origin); err != nil {
			return err
		}
	}
	for i := range b.ActualLRPs {
		w := &b.ActualLRPs[i]
		var want lrp.ModificationTag
		r := w.After
		if w.Before != nil {
			r, want = w.Before, w.Before.ModificationTag
		}
		var have lrp.ModificationTag
		got, found := c.state.lrps.get(keyOf(r))
		if found {
			have = got.ModificationTag
		}
		if err := compare(want, have, w.Before != nil, found); err != nil {
			return &storage.ConflictError{Key: storage.ActualLRPKey(r), Err: err}
		}
	}
	for i := range b.Deployments {
		w := &b.Deployments[i]
		key := w.Key()
		var want, have lrp.ModificationTag
		if w.Before != nil {
			want = w.Before.ModificationTag
		}
		got, found := c.state.deployments.get(key.GUID)
		if found {
			have = got.bare.ModificationTag
		}
		if err := compare(want, have, w.Before != nil, found); err != nil {
			return &storage.ConflictError{Key: key, Err: err}
		}
	}
	for i := range b.Tasks {
		w := &b.Tasks[i]
		key := storage.TaskWriteKey(w)
		var want, have task.ModificationTag
		if w.Before != nil {
			want = w.Before.ModificationTag
		}
		got, found := c.state.tasks.get(key.GUID)
		if found {
			have = got.ModificationTag
		}
		if err := compare(want, have, w.Before != nil, found); err != nil {
			return &storage.ConflictError{Key: key, Err: err}
		}
	}
	for i := range b.Quarantine {
		key := b.Quarantine[i].Key
		if c.state.corrupt[key] == nil {
			err := storage.ErrNotFound
			if c.has(key) {
				err = storage.ErrConflict
			}
			return &storage.ConflictError{Key: key, Err: err}
		}
	}
	return nil
}

// compare returns why a write that wants one tag conflicts with the record, or
// nil.
func compare(want, have lrp.ModificationTag, wanted, found bool) error {
	switch {
	case wanted && !found:
		return storage.ErrNotFound
	case !wanted && found:
		return storage.ErrExists
	case want != have:
		return storage.ErrConflict
	}
	return nil
}

// write carries out an admitted batch.
func (c *core) write(b *storage.Batch, now time.Time) {
	c.own()
	st := &c.state
	for i := range b.ActualLRPs {
		switch w := &b.ActualLRPs[i]; {
		case storage.IsCheck(w):
		case w.After == nil:
			c.removeLRP(keyOf(w.Before))
		default:
			// The copy lets the decision's memory go.
			r := new(lrp.ActualLRP)
			*r = *w.After
			c.putLRP(r)
		}
	}
	for i := range b.Deployments {
		switch w := &b.Deployments[i]; {
		case w.IsCheck():
		case w.After == nil:
			st.deployments.remove(st.owner, w.Before.ProcessGUID)
			c.mend(w.Key())
		default:
			st.deployments.put(st.owner, w.After.ProcessGUID, newDeployed(w.After))
			c.mend(w.Key())
		}
	}
	for i := range b.Tasks {
		w := &b.Tasks[i]
		key := storage.TaskWriteKey(w)
		if w.After == nil {
			st.tasks.remove(st.owner, key.GUID)
		} else {
			st.tasks.put(st.owner, key.GUID, w.After)
		}
		c.mend(key)
	}
	for i := range b.Domains {
		d := &b.Domains[i]
		st.domains.put(st.owner, d.Name, lrp.NewDomain(d.Name, d.TTL, now))
	}
	for i := range b.Quarantine {
		c.quarantine(b.Quarantine[i])
	}
}

// own makes sure that no snapshot shares the state, before anything but a lease is
// changed.
func (c *core) own() {
	if c.shared {
		c.state.owner, c.shared = new(owner), false
	}
}

// ownLeases is own for the leases.
func (c *core) ownLeases() {
	if c.leasesShared {
		c.state.leaseOwner, c.leasesShared = new(owner), false
	}
}

func (c *core) putLRP(r *lrp.ActualLRP) {
	st, key := &c.state, keyOf(r)
	before := st.lrps.put(st.owner, key, r)
	if before == nil || before.CellID != r.CellID {
		if before != nil && before.CellID != "" {
			st.onCells.remove(st.owner, cellKey{before.CellID, key})
		}
		if r.CellID != "" {
			st.onCells.put(st.owner, cellKey{r.CellID, key}, struct{}{})
		}
	}
	c.mend(storage.ActualLRPKey(r))
}

func (c *core) removeLRP(key lrpKey) {
	st := &c.state
	r, _ := st.lrps.get(key)
	st.lrps.remove(st.owner, key)
	if r.CellID != "" {
		st.onCells.remove(st.owner, cellKey{r.CellID, key})
	}
	c.mend(storage.ActualLRPKey(r))
}

// append adds events to the log and moves its beginning along. When the log
// holds twice the wanted number, the wanted ones are copied; snapshots keep the
// old log.
func (c *core) append(events []storage.Event, now time.Time) {
	st := &c.state
	for _, e := range events {
		st.newest++
		e.Sequence, e.At = st.newest, now
		st.log = append(st.log, e)
	}
	st.oldest = st.extent().Keep(c.options.Events, st.gaps)
	if c.options.EventBytes > 0 {
		c.keepBytes(events)
	}
	if len(st.log) > 2*c.options.Events {
		st.log = slices.Clone(st.log[len(st.log)-c.options.Events:])
	}
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

// keepBytes moves the beginning of the log along until its events, the newest of
// which were added just now, have no more bytes than they may.
func (c *core) keepBytes(added []storage.Event) {
	st := &c.state
	for i := range added {
		data, _ := storage.EncodeEvent(&added[i]) // what has no encoding takes no room in it
		c.sizes = append(c.sizes, int64(len(data)))
		c.bytes += int64(len(data))
	}
	for len(c.sizes) > 1 && (c.bytes > c.options.EventBytes || len(c.sizes) > len(st.log)) {
		c.bytes -= c.sizes[0]
		c.sizes = c.sizes[1:]
	}
	if first := len(st.log) - len(c.sizes); first >= 0 {
		st.oldest = max(st.oldest, st.log[first].Sequence)
		if first > len(c.sizes) { // snapshots keep the old log
			st.log = slices.Clone(st.log[first:])
		}
	}
}

// forget drops requests that were remembered for long enough.
func (c *core) forget(now time.Time) {
	n := 0
	for n < len(c.remembered) && now.Sub(c.remembered[n].at) > c.options.Requests {
		delete(c.requests, c.remembered[n].id)
		n++
	}
	c.remembered = c.remembered[n:]
}

// sweep deletes, now and then, what ended more than storage.KeepFor ago.
func (c *core) sweep(now time.Time) {
	if age := now.Sub(c.swept); age >= 0 && age <= sweepEvery {
		return
	}
	c.swept = now
	c.own()
	c.ownLeases()
	st, ended := &c.state, now.Add(-storage.KeepFor)
	var domains []string
	st.domains.ascend("", func(name string, d lrp.Domain) bool {
		if !d.Fresh(ended) {
			domains = append(domains, name)
		}
		return true
	})
	for _, name := range domains {
		st.domains.remove(st.owner, name)
	}
	var leases []leaseKey
	st.leases.ascend(leaseKey{}, func(k leaseKey, l lease) bool {
		if l.ExpiresAt.Before(ended) {
			leases = append(leases, k)
			c.floor = max(c.floor, l.Epoch)
		}
		return true
	})
	for _, k := range leases {
		st.leases.remove(st.leaseOwner, k)
	}
}

// Wait implements storage.Waiter. It also returns when the store is closed.
func (s *Store) Wait(ctx context.Context, after storage.Cursor) error {
	c := s.core
	c.mu.Lock()
	if err := c.usable(ctx); err != nil || c.state.newest != after {
		c.mu.Unlock()
		return err
	}
	if c.wake == nil {
		c.wake = make(chan struct{})
	}
	wake := c.wake
	c.mu.Unlock()
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements storage.Store. It drops all records. The error is always
// nil.
func (s *Store) Close() error {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.state = newState()
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
	return nil
}

// Acquire implements storage.Leaser.
func (s *Store) Acquire(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	return s.core.lease(ctx, l, ttl, func(held lease, now time.Time) (string, int64, error) {
		if !held.free(now) && held.Owner != l.Owner {
			return "", 0, &storage.HeldError{Lease: held.Lease}
		}
		return l.Owner, max(held.Epoch, s.core.floor) + 1, nil
	})
}

// Renew implements storage.Leaser.
func (s *Store) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	return s.core.lease(ctx, l, ttl, func(held lease, _ time.Time) (string, int64, error) {
		if !held.good(l.Epoch) {
			return "", 0, &storage.FencedError{Fence: l.Fence(), Epoch: held.Epoch}
		}
		return held.Owner, held.Epoch, nil
	})
}

// lease writes l with the owner and the epoch that decide returns for the
// present lease.
func (c *core) lease(ctx context.Context, l storage.Lease, ttl time.Duration,
	decide func(held lease, now time.Time) (owner string, epoch int64, err error),
) (storage.Lease, error) {
	if err := storage.CheckLease(&l, ttl); err != nil {
		return storage.Lease{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.usable(ctx)
	if err != nil {
		return storage.Lease{}, err
	}
	now := c.now()
	key := leaseKey{l.Kind, l.Name}
	held, _ := c.state.leases.get(key)
	if l.Owner, l.Epoch, err = decide(held, now); err != nil {
		return storage.Lease{}, err
	}
	if l.ExpiresAt = now.Add(ttl); bytes.Equal(l.Value, held.Value) {
		l.Value = held.Value
	} else {
		l.Value = slices.Clone(l.Value)
	}
	c.putLease(key, l)
	c.sweep(now)
	return l, nil
}

func (c *core) putLease(key leaseKey, l storage.Lease) {
	c.ownLeases()
	c.state.leases.put(c.state.leaseOwner, key, lease{l})
}

// Release implements storage.Leaser.
func (s *Store) Release(ctx context.Context, l storage.Lease) error {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(ctx); err != nil {
		return err
	}
	key := leaseKey{l.Kind, l.Name}
	held, _ := c.state.leases.get(key)
	if held.Epoch != l.Epoch || l.Epoch == 0 {
		return &storage.FencedError{Fence: l.Fence(), Epoch: held.Epoch}
	}
	now := c.now()
	if held.Owner != "" {
		c.putLease(key, storage.Lease{Kind: l.Kind, Name: l.Name, Epoch: l.Epoch, ExpiresAt: now})
	}
	c.sweep(now)
	return nil
}
