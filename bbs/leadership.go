package bbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/storage"
)

// ErrNotLeader is wrapped by every [NotLeaderError].
var ErrNotLeader = errors.New("not the leader")

// A NotLeaderError says that this process may not write. It also wraps
// storage.ErrFenced.
type NotLeaderError struct {
	// Role is the role that has one leader, for example "bbs".
	Role string
	// Leader is the owner that was last seen to lead, or empty.
	Leader string
	// Address is where the leader can be reached, if it has given one.
	Address string
	// Why is the reason why this process cannot lead, if its store fails and
	// nobody else is known to lead.
	Why string
}

func (e *NotLeaderError) Error() string {
	switch {
	case e.Leader == "" && e.Why != "":
		return fmt.Sprintf("%v of %q, because its store fails: %s; nobody else is known to lead, so repair the store and try again", ErrNotLeader, e.Role, e.Why)
	case e.Leader == "":
		return fmt.Sprintf("%v of %q; nobody is known to be, so try again soon", ErrNotLeader, e.Role)
	}
	if e.Address == "" {
		return fmt.Sprintf("%v of %q; ask %q", ErrNotLeader, e.Role, e.Leader)
	}
	return fmt.Sprintf("%v of %q; ask %q at %s", ErrNotLeader, e.Role, e.Leader, e.Address)
}

// Unwrap makes errors.Is work with ErrNotLeader and storage.ErrFenced.
func (e *NotLeaderError) Unwrap() []error { return []error{ErrNotLeader, storage.ErrFenced} }

// ErrClockSkew is wrapped by every [ClockSkewError].
var ErrClockSkew = errors.New("the clocks are too far apart")

// A ClockSkewError says that this process does not begin to lead, because its
// clock and the store's differ by more than MaxClockSkew. Its own clock would
// stamp records, while convergence, leases and domains use the store's.
type ClockSkewError struct {
	// Role is the role in which this process would lead, for example "bbs".
	Role string
	// Store and Process are the readings of the two clocks at one moment.
	Store, Process time.Time
	// Max is the allowed difference.
	Max time.Duration
}

func (e *ClockSkewError) Error() string {
	const layout = "2006-01-02T15:04:05.000Z07:00"
	return fmt.Sprintf("%v to lead as %q: the store's says %s and this process's %s, a difference of %v where %v is allowed; "+
		"synchronize both hosts (NTP), or give the store and this process the same Now",
		ErrClockSkew, e.Role, e.Store.UTC().Format(layout), e.Process.UTC().Format(layout), e.Store.Sub(e.Process).Abs(), e.Max)
}

// Unwrap makes errors.Is(err, ErrClockSkew) true.
func (e *ClockSkewError) Unwrap() error { return ErrClockSkew }

// A LeaderStore keeps leases and has the clock by which they expire. Every
// [storage.Store] is one.
// Its methods may be called at the same time.
type LeaderStore interface {
	storage.Leaser
	// Now is the Store's clock.
	Now(context.Context) (time.Time, error)
}

// LeadershipOptions are the options of a [Leadership]. Zero values mean the
// defaults.
type LeadershipOptions struct {
	// Store keeps the lease. It is required.
	Store LeaderStore
	// Owner names this process, for example by its address, and is unique: two
	// processes with one name take the leadership from each other again and again.
	// A process that starts again under its name leads at once. It is required.
	Owner string
	// Address is the base URL at which others reach this process while it leads,
	// for example "https://bbs-1.example:8889". It may be empty.
	Address string
	// Role is the role that has one leader (default "bbs").
	Role string
	// TTL is how long a leader stays the leader without renewing its lease
	// (default 15 s). It renews three times in that time.
	TTL time.Duration
	// MaxClockSkew is how far Now and the store's clock may differ for this
	// process to begin to lead (default 1 min; negative means any difference). A
	// process that already leads goes on in any case, with a warning once a
	// minute.
	MaxClockSkew time.Duration
	// Now is this process's clock (default time.Now).
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics auction.Metrics
	Logger  *slog.Logger
}

// A Leadership is held by one process at a time, by a lease in the store.
//
// A leader that was paused may still believe that it leads. It does no harm:
// its commits carry the epoch of its lease, and the store refuses them once the
// lease has a newer one. Its own clock matters only for how soon it notices.
//
// All methods may be called at the same time, but only one of Tick and Run is
// in use.
type Leadership struct {
	o LeadershipOptions

	mu      sync.Mutex
	lease   storage.Lease // its Epoch is 0 while we do not lead
	until   time.Time     // when the lease ends if it is not renewed
	leader  string        // the last known leader
	address string        // and its address
	// firstFailed and lastFailed are the times of the first and the last failed
	// commit since one succeeded; zero if none failed.
	firstFailed, lastFailed time.Time
	// after is when a leader that has resigned may lead again.
	after time.Time
	// failed is why the last request for the leadership failed, and commitFailed
	// why the last commit failed.
	failed, commitFailed error
	// warned is when this process last warned that its clock differs from the
	// store's.
	warned time.Time
	// asked is closed after a request for the leadership, with or without an
	// answer.
	asked chan struct{}
}

// NewLeadership fails with an *executor.ValidationError if a required option
// is missing or the TTL is too short. Nobody leads before the first Tick.
func NewLeadership(o LeadershipOptions) (*Leadership, error) {
	var v executor.Validator
	v.Check(o.Store != nil, "store", "", "not nil")
	v.Check(o.Owner != "", "owner", "", "not empty")
	CheckLeaderTTL(&v, "ttl", o.TTL)
	o.Role = cmp.Or(o.Role, "bbs")
	o.TTL = cmp.Or(o.TTL, 15*time.Second)
	o.MaxClockSkew = cmp.Or(o.MaxClockSkew, time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Metrics = cmp.Or[auction.Metrics](o.Metrics, auction.NoMetrics{})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Leadership{o: o, asked: make(chan struct{})}, v.Err()
}

// minRenewedTTL is the shortest TTL of a lease that is renewed three times as
// often.
const minRenewedTTL = 3 * time.Millisecond

// CheckLeaderTTL refuses a TTL that is too short to be renewed in time; 0 means
// the default.
func CheckLeaderTTL(v *executor.Validator, field string, ttl time.Duration) {
	v.Check(ttl == 0 || ttl >= minRenewedTTL, field, ttl, "at least 3ms")
}

// Tick takes or renews the lease, or gives it up: a leader whose commits have
// failed for two thirds of the TTL, and not only once, resigns and lets others
// try for one TTL. If another process leads, that is not an error. The error is
// a *[ClockSkewError] if this process does not ask for the lease because of its
// clock.
func (l *Leadership) Tick(ctx context.Context) error {
	defer l.publish()
	l.mu.Lock()
	lease, now := l.lease, l.o.Now()
	stuck := !l.firstFailed.IsZero() && now.Sub(l.firstFailed) >= l.o.TTL*2/3 &&
		l.lastFailed.Sub(l.firstFailed) >= l.o.TTL/3
	waits := now.Before(l.after)
	l.mu.Unlock()
	switch {
	case lease.Epoch != 0 && stuck:
		return l.Resign(ctx)
	case lease.Epoch != 0:
		renewed, err := l.o.Store.Renew(ctx, lease, l.o.TTL)
		if err == nil {
			// A leader goes on, however the store's clock jumps: stopping it would help nobody.
			l.warn(l.compareClocks(renewed.ExpiresAt.Add(-l.o.TTL), now))
		}
		return l.took(renewed, now, err)
	case waits:
		return nil
	}
	if err := l.checkClocks(ctx); err != nil {
		return l.took(storage.Lease{}, now, err)
	}
	acquired, err := l.o.Store.Acquire(ctx, storage.Lease{Kind: storage.LeaderLease, Name: l.o.Role, Owner: l.o.Owner, Value: []byte(l.o.Address)}, l.o.TTL)
	return l.took(acquired, now, err)
}

// checkClocks fails with a *ClockSkewError if this process should not begin to
// lead. It runs before the lease is taken: when the store's clock jumps ahead,
// the lease of a working leader seems free, and must stay with the leader.
func (l *Leadership) checkClocks(ctx context.Context) error {
	if l.o.MaxClockSkew < 0 {
		return nil
	}
	before := l.o.Now()
	store, err := l.o.Store.Now(ctx)
	if err != nil {
		return err
	}
	return l.compareClocks(store, before)
}

// compareClocks publishes the skew of a reading of the store's clock that was
// requested at before and has just come. It fails with a *ClockSkewError if the
// skew is too large.
func (l *Leadership) compareClocks(store, before time.Time) error {
	skew := skewOf(store, before, l.o.Now())
	l.o.Metrics.Gauge("store_clock_skew_seconds", skew.Seconds())
	if l.o.MaxClockSkew < 0 || skew.Abs() <= l.o.MaxClockSkew {
		return nil
	}
	return &ClockSkewError{Role: l.o.Role, Store: store, Process: store.Add(-skew), Max: l.o.MaxClockSkew}
}

// skewOf is how far the store's clock is ahead of this process's, which was
// read before and after it; negative if it is behind. A pause between the
// readings does not count as skew.
func skewOf(store, before, after time.Time) time.Duration {
	switch {
	case store.Before(before):
		return store.Sub(before)
	case store.After(after):
		return store.Sub(after)
	}
	return 0
}

// warn logs that the clocks of a leader and its store differ, at most once a
// minute.
func (l *Leadership) warn(skew error) {
	now := l.o.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if skew != nil && now.Sub(l.warned).Abs() >= time.Minute {
		l.warned = now
		l.o.Logger.Warn("this process leads on by another clock than its store's", "role", l.o.Role, "err", skew)
	}
}

// publish reports whether this process leads, how long that lasts without a
// renewal, and since when it was not renewed.
func (l *Leadership) publish() {
	leading, until := l.Leading()
	var lead float64
	var left, age time.Duration
	if leading {
		lead, left = 1, until.Sub(l.o.Now())
		age = max(0, l.o.TTL-left)
	}
	l.o.Metrics.Gauge("leader", lead)
	l.o.Metrics.Gauge("leader_lease_seconds", left.Seconds())
	l.o.Metrics.Gauge("leader_lease_age_seconds", age.Seconds())
}

// took notes the result of a request for the lease that was made at began.
func (l *Leadership) took(lease storage.Lease, began time.Time, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.asked)
	l.asked = make(chan struct{})
	var held *storage.HeldError
	refused := errors.As(err, &held) || errors.Is(err, storage.ErrFenced)
	l.tell(err, refused)
	switch {
	case err == nil:
		l.lease, l.until = lease, began.Add(l.o.TTL)
		l.leader, l.address = l.o.Owner, l.o.Address
	case held != nil:
		l.lose()
		l.leader, l.address = held.Lease.Owner, string(held.Lease.Value)
		return nil
	case refused:
		l.suspectNamesake()
		l.lose()
		return nil
	}
	return err
}

// suspectNamesake warns a leader whose lease another process has taken. Before
// the lease ends, only a process of the same name can take it.
func (l *Leadership) suspectNamesake() {
	if l.lease.Epoch != 0 && l.o.Now().Before(l.until) {
		l.o.Logger.Warn("the leadership was taken while it was held, so another process has the same name; give each an Owner of its own", "role", l.o.Role, "owner", l.o.Owner)
	}
}

// Answered returns a channel that is closed after the next request for the
// leadership.
func (l *Leadership) Answered() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// tell notes whether the request for the leadership succeeded. It logs a
// change, and a refusal that is newly due to clocks.
func (l *Leadership) tell(err error, refused bool) {
	before := l.failed
	if l.failed = err; refused {
		l.failed = nil
	}
	switch {
	case l.failed != nil && (before == nil || errors.Is(before, ErrClockSkew) != errors.Is(l.failed, ErrClockSkew)):
		l.o.Logger.Warn("the leadership could not be asked for; it tries again", "role", l.o.Role, "err", err)
	case before != nil && l.failed == nil:
		l.o.Logger.Info("the leadership can be asked for again", "role", l.o.Role)
	}
}

func (l *Leadership) lose() {
	l.lease, l.until = storage.Lease{}, time.Time{}
	l.firstFailed, l.lastFailed = time.Time{}, time.Time{}
	if l.leader == l.o.Owner {
		l.leader, l.address = "", ""
	}
}

// Resign gives the lease up at once, so that another process can lead. This
// process does not ask for it again for one TTL. It stops being the leader even
// if the store does not answer.
func (l *Leadership) Resign(ctx context.Context) error {
	l.mu.Lock()
	lease := l.lease
	l.lose()
	l.after = l.o.Now().Add(l.o.TTL)
	l.mu.Unlock()
	if lease.Epoch == 0 {
		return nil
	}
	if err := l.o.Store.Release(ctx, lease); err != nil && !errors.Is(err, storage.ErrFenced) {
		return err
	}
	return nil
}

// Leading reports whether this process leads, as far as it knows, and when its
// lease ends unless it is renewed.
func (l *Leadership) Leading() (leading bool, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease.Epoch != 0 && l.o.Now().Before(l.until), l.until
}

// Fence proves the leadership for a commit. The error is a *[NotLeaderError].
func (l *Leadership) Fence() (storage.Fence, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease.Epoch == 0 || !l.o.Now().Before(l.until) {
		return storage.Fence{}, l.notLeader()
	}
	return l.lease.Fence(), nil
}

// notLeader returns why this process may not commit. It is called with the
// lock.
func (l *Leadership) notLeader() error {
	e := &NotLeaderError{Role: l.o.Role}
	if l.leader != l.o.Owner { // its own lease has run out
		e.Leader, e.Address = l.leader, l.address
	}
	if err := cmp.Or(l.failed, l.commitFailed); e.Leader == "" && err != nil {
		e.Why = err.Error()
	}
	return e
}

// Readiness reports whether somebody leads.
func (l *Leadership) Readiness() Readiness {
	leading, _ := l.Leading()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Readiness{Ready: true, Role: "standby", Leader: l.leader, Address: l.address}
	switch {
	case leading:
		r.Role = "leader"
	case l.failed != nil:
		r.Ready, r.Why = false, "the leadership could not be asked for: "+l.failed.Error()
	case l.leader == "":
		r.Ready, r.Why = false, "nobody is known to lead"
	}
	return r
}

// A Readiness reports whether a process can do its work, and in which role.
type Readiness struct {
	Ready bool `json:"ready"`
	// Role is "leader", "standby" or "cell".
	Role string `json:"role"`
	// Leader is the last known owner of the leadership, and Address its address.
	Leader  string `json:"leader,omitempty"`
	Address string `json:"address,omitempty"`
	// Why says what is missing, if the process is not ready.
	Why string `json:"why,omitempty"`
}

// FindLeader is for httpapi.ClientOptions.Find: it finds the process that leads in a
// role, "bbs" or "auctioneer", for clients with access to the store.
func FindLeader(store storage.Reader, role string) func(context.Context) (address string, err error) {
	return func(ctx context.Context) (string, error) {
		for lease, err := range store.Leases(ctx, storage.LeaderLease) {
			if err != nil {
				return "", err
			}
			if lease.Name == role {
				return string(lease.Value), nil
			}
		}
		return "", nil
	}
}

// Run keeps asking for the lease until ctx ends. While it holds the lease it
// runs lead, with a context that ends when the lease is lost, even for a
// moment. It waits for lead to return, and at the end gives the lease up. It
// returns ctx's error.
func (l *Leadership) Run(ctx context.Context, lead func(context.Context)) error {
	var stop func()
	var epoch int64 // for which lead was called
	defer func() {
		if stop != nil {
			stop()
		}
		// After the end there is one thing left to do: to make way at once.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.o.TTL/3)
		defer cancel()
		_ = l.Resign(ctx)
		l.publish()
	}()
	ticker := time.NewTicker(l.o.TTL / 3)
	defer ticker.Stop()
	for {
		l.tickWithin(ctx)
		fence, _ := l.Fence() // of epoch 0 while it does not lead
		if stop != nil && fence.Epoch != epoch {
			stop()
			stop = nil
		}
		if stop == nil && fence.Epoch != 0 {
			epoch, stop = fence.Epoch, parallel.During(ctx, lead)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// tickWithin makes one Tick, which ends when the next is due. Leading shows a
// failure once the lease has ended.
func (l *Leadership) tickWithin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.o.TTL/3)
	defer cancel()
	_ = l.Tick(ctx)
}

// Store returns s with every commit fenced by this leadership: without the
// leadership commits fail with a *[NotLeaderError], and a leader that was
// replaced commits nothing. It also notes whether commits succeed.
func (l *Leadership) Store(s storage.Store) storage.Store { return &fencedStore{Store: s, leader: l} }

// A fencedStore commits only for a leader.
type fencedStore struct {
	storage.Store
	leader *Leadership
}

// Commit implements [storage.Store].
func (s *fencedStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	fence, err := s.leader.Fence()
	if err != nil {
		return 0, err
	}
	b.Fence = fence
	cursor, err := s.Store.Commit(ctx, b)
	s.leader.observe(fence, err)
	return cursor, err
}

// Recall implements [storage.Recaller].
func (s *fencedStore) Recall(processGUID string, index int) (storage.Recollection, bool) {
	return storage.Recall(s.Store, processGUID, index)
}

// Restored implements [storage.Restorer]. It changes no record, so it needs no
// leader.
func (s *fencedStore) Restored(ctx context.Context) error { return storage.Restored(ctx, s.Store) }

// Wait implements [storage.Waiter].
func (s *fencedStore) Wait(ctx context.Context, after storage.Cursor) error {
	return storage.Wait(ctx, s.Store, after, 0)
}

// observe learns from the result of a commit. Errors that concern only the
// batch show that the store works.
func (l *Leadership) observe(fence storage.Fence, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lease.Epoch != fence.Epoch:
	case errors.Is(err, storage.ErrFenced):
		l.suspectNamesake()
		l.lose()
	case err == nil, errors.Is(err, storage.ErrConflict), errors.Is(err, storage.ErrDuplicate), errors.Is(err, executor.ErrInvalid):
		l.firstFailed, l.lastFailed, l.commitFailed = time.Time{}, time.Time{}, nil
	case errors.Is(err, context.Canceled): // the caller gave up
	default:
		l.lastFailed, l.commitFailed = l.o.Now(), err
		if l.firstFailed.IsZero() {
			l.firstFailed = l.lastFailed
		}
	}
}
