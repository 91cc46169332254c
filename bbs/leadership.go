package bbs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/storage"
)

// A LeaderStore keeps leases and has the clock by which they expire. Every
// [storage.Store] is one. Its methods may be called at the same time.
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
	// minute. So does one that was paused for longer than its lease, if nobody
	// else has led meanwhile.
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
	// answer; nil if nobody waits for one.
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
	return &Leadership{o: o}, v.Err()
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
		if err == nil && renewed.ExpiresAt.Add(-l.o.TTL).After(lease.ExpiresAt) {
			// It did not lead for a moment, of which it may know nothing: it was paused. A new
			// epoch makes it forget what it remembers of the cells.
			renewed, err = l.acquire(ctx)
		}
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
	acquired, err := l.acquire(ctx)
	return l.took(acquired, now, err)
}

// acquire asks for the lease with a new epoch.
func (l *Leadership) acquire(ctx context.Context) (storage.Lease, error) {
	return l.o.Store.Acquire(ctx, storage.Lease{Kind: storage.LeaderLease, Name: l.o.Role, Owner: l.o.Owner, Value: []byte(l.o.Address)}, l.o.TTL)
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
	if l.asked != nil {
		close(l.asked)
		l.asked = nil
	}
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
	if l.asked == nil {
		l.asked = make(chan struct{})
	}
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
