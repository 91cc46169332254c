package diego

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/reach"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// Options of [New]. Zero values mean the defaults.
type Options struct {
	// Store holds all state. It is required, and the caller's to close.
	Store storage.Store
	// Dial makes the client of a present cell. It is required.
	Dial Dial
	// Owner names this process among those that may lead, and is unique; see
	// LeadershipOptions. It is required.
	Owner string
	// Address is where others ask it; see LeadershipOptions.
	Address string
	// Auctioneer places work in another process, such as an
	// [AuctioneerClient]. Nil means that this process places it.
	Auctioneer AuctioneerAPI

	// LRPs, Tasks, Guard and Callbacks are the policies.
	LRPs      lrp.Policy
	Tasks     task.Policy
	Guard     converge.Guard
	Callbacks task.CallbackPolicy
	// Auction has the knobs of the auctioneer, its Policy among them. Its
	// Directory, Reporter, Now, Metrics and Logger are set by New, and refused
	// here.
	Auction auction.RunnerOptions

	// LeaderTTL is how long a leader that is not heard of stays the leader
	// (default 15 s).
	LeaderTTL time.Duration
	// MaxClockSkew is how far Now and the store's clock may be apart for this
	// process to begin to lead (default 1 min; negative means any). See
	// LeadershipOptions.
	MaxClockSkew time.Duration
	// WatchInterval is how often the list of present cells is looked at
	// (default 1 s).
	WatchInterval time.Duration
	// ConvergenceInterval is the longest time from the end of a pass to the next one
	// (default 30 s).
	ConvergenceInterval time.Duration
	// FullConvergenceInterval is for how long passes go by the log of events
	// before one looks at everything again (default 5 min; negative means that
	// every pass does).
	FullConvergenceInterval time.Duration
	// InventoryInterval is how often cells are asked which containers they have,
	// so that what is recorded on a cell and has none is given up (default
	// 5 min; negative means never).
	InventoryInterval time.Duration
	// Concurrency is how much is done at a time: cells that are asked, slots
	// that are mended, callbacks that are made. 1 makes everything happen in
	// the caller's goroutine (default: the defaults of the parts).
	Concurrency int
	// StopTimeout is how long a cell may take to answer that it will stop an
	// instance or cancel a task, or which containers it has, and an auctioneer in another process that it
	// will place work (default 10 s).
	StopTimeout time.Duration
	// MaxCallbacks is how many callbacks may wait (default 10,000). Convergence
	// asks again for what is beyond.
	MaxCallbacks int
	// CallbackAllow and CallbackDeny are networks that callbacks may and may not
	// reach. What is in an allowed one may be reached; of the rest, what is in a
	// denied one may not, nor the host's loopback, link-local and unspecified
	// addresses, metadata services and multicast. It is the address that is
	// dialled that counts, for redirects too, and proxies are not asked.
	CallbackAllow, CallbackDeny []netip.Prefix
	// Post sends completions (default: JSON over HTTP to what CallbackAllow and
	// CallbackDeny let it reach). One of your own reaches what it likes.
	Post Post
	// Now is the clock of decisions (default time.Now). The store has its own,
	// which must agree with it; see MaxClockSkew.
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics Metrics
	Logger  *slog.Logger
}

// A ControlPlane is all of Diego but its cells: a BBS, an auctioneer,
// convergence, callbacks, and the leadership that lets one of several act.
//
// The auctioneer may be a process of its own, an [Auctioneer]. [NewHandler]
// serves both over HTTP.
//
// [ControlPlane.Run] keeps it going; [ControlPlane.WaitReady] says when it can
// be asked. A test or a simulation calls
// [ControlPlane.Tick] instead, in its own time.
type ControlPlane struct {
	// BBS is the API. Its reads work on every process, its other calls fail
	// with a *[NotLeaderError] on one that does not lead.
	BBS *BBS
	// Auctioneer places work; its Plan says where work would go. It is nil if
	// another process does, by Options.Auctioneer.
	Auctioneer *auction.Runner
	// Converger repairs; its Trigger begins a pass at once.
	Converger *converge.Converger
	// Leadership says who leads.
	Leadership *Leadership

	o         Options
	watch     *CellWatch
	outbox    *outbox
	starts    *remoteStarts // nil if this process places work
	callbacks *callbacks
	follower  *follower
	rollCall  *rollCall
	epoch     int64 // of the leadership at the last Tick; 0 without one
}

// New fails with an *executor.ValidationError if a required option is missing,
// one is outside its limits, or a policy is invalid. It starts nothing.
func New(o Options) (*ControlPlane, error) {
	var v executor.Validator
	v.Check(o.Store != nil, "store", "", "not nil")
	v.Check(o.Dial != nil, "dial", "", "not nil")
	v.Check(o.Owner != "", "owner", "", "not empty")
	o.LRPs.Validate(v.In("lrps"))
	o.Tasks.Validate(v.In("tasks"))
	o.Callbacks.Validate(v.In("callbacks"))
	checkAuction(v.In("auction"), &o.Auction)
	checkLeaderTTL(&v, "leader_ttl", o.LeaderTTL)
	executor.NotNegative(&v, "watch_interval", o.WatchInterval)
	executor.NotNegative(&v, "convergence_interval", o.ConvergenceInterval)
	executor.NotNegative(&v, "concurrency", o.Concurrency)
	executor.NotNegative(&v, "stop_timeout", o.StopTimeout)
	executor.NotNegative(&v, "max_callbacks", o.MaxCallbacks)
	if err := v.Err(); err != nil {
		return nil, err
	}
	o.WatchInterval = cmp.Or(o.WatchInterval, time.Second)
	o.InventoryInterval = cmp.Or(o.InventoryInterval, 5*time.Minute)
	o.StopTimeout = cmp.Or(o.StopTimeout, 10*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = auction.NoMetrics{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Post == nil {
		o.Post = postJSON(reach.Policy{Allow: o.CallbackAllow, Deny: o.CallbackDeny}.Client(0), o.Logger)
	}

	p := &ControlPlane{o: o}
	var err error
	p.Leadership, err = NewLeadership(LeadershipOptions{Store: o.Store, Owner: o.Owner, Address: o.Address, TTL: o.LeaderTTL, MaxClockSkew: o.MaxClockSkew, Now: o.Now, Metrics: o.Metrics, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	p.follower = &follower{
		follow: func(ctx context.Context, guid string) error { return p.BBS.follow(ctx, guid) },
		carry:  func(lrps []lrp.Effect, tasks []task.Effect) { p.outbox.Carry(lrps, tasks) },
		now:    o.Now, logger: o.Logger, due: map[string]time.Time{},
	}
	store := storage.Store(ownStore{p.Leadership.Store(measuredStore{o.Store, o.Metrics}), p.follower})
	p.follower.store = store
	p.callbacks = &callbacks{
		store: store, post: o.Post, policy: o.Callbacks.WithDefaults(), tasks: o.Tasks,
		concurrency: cmp.Or(o.Concurrency, 50), limit: cmp.Or(o.MaxCallbacks, 10_000),
		now: o.Now, metrics: o.Metrics, logger: o.Logger,
		wake: make(chan struct{}, 1), jobs: map[callbackKey]*callbackJob{},
	}
	p.outbox = &outbox{
		store: store, directory: NewDirectory(func(ctx context.Context) ([]CellPresence, error) { return presences(ctx, store) }, o.Dial),
		rollout:  func(ctx context.Context, guid string) error { return p.BBS.ContinueRollout(ctx, guid) },
		callBack: p.callbacks.add,
		stopLost: func(guid string) { p.follower.later(guid, followAgain) },
		timeout:  o.StopTimeout, concurrency: cmp.Or(o.Concurrency, 256),
		now: o.Now, metrics: o.Metrics, logger: o.Logger, local: newMailbox(), remote: newMailbox(),
	}
	if p.BBS, err = NewBBS(BBSOptions{
		Store: store, Effects: p.outbox, LRPs: o.LRPs, Tasks: o.Tasks,
		Now: o.Now, Metrics: o.Metrics, Logger: o.Logger,
	}); err != nil {
		return nil, err
	}
	p.rollCall = &rollCall{
		bbs: p.BBS, directory: p.outbox.directory, interval: o.InventoryInterval, timeout: o.StopTimeout,
		concurrency: cmp.Or(o.Concurrency, 32), now: o.Now, metrics: o.Metrics, logger: o.Logger,
	}
	p.BBS.unfollowed = func(guid string) { p.follower.later(guid, followTick) }
	if err := p.placeWork(); err != nil {
		return nil, err
	}
	if p.Converger, err = converge.NewConverger(converge.ConvergerOptions{
		Store: store, Effects: p.outbox, LRPs: o.LRPs, Tasks: o.Tasks, Guard: o.Guard,
		Interval: o.ConvergenceInterval, FullInterval: o.FullConvergenceInterval, Concurrency: o.Concurrency, Now: o.Now, Metrics: o.Metrics, Logger: o.Logger,
	}); err != nil {
		return nil, err
	}
	p.watch = NewCellWatch(store, p.Converger.Trigger)
	return p, nil
}

// checkAuction refuses what would be overwritten.
func checkAuction(v *executor.Validator, a *auction.RunnerOptions) {
	const limit = "not set: it is that of the whole"
	v.Check(a.Directory == nil, "directory", "", limit)
	v.Check(a.Reporter == nil, "reporter", "", limit)
	v.Check(a.Now == nil, "now", "", limit)
	v.Check(a.Metrics == nil, "metrics", "", limit)
	v.Check(a.Logger == nil, "logger", "", limit)
}

// placeWork sets up who places work.
func (p *ControlPlane) placeWork() (err error) {
	o := &p.o
	if o.Auctioneer != nil {
		p.starts = &remoteStarts{auctioneer: o.Auctioneer, timeout: o.StopTimeout, lost: p.outbox.lost, wake: make(chan struct{}, 1)}
		p.outbox.start = p.starts.add
		return nil
	}
	a := o.Auction
	a.Directory, a.Reporter, a.Now, a.Metrics, a.Logger = p.outbox.directory, p.BBS, o.Now, o.Metrics, o.Logger
	a.Concurrency = cmp.Or(a.Concurrency, o.Concurrency)
	if p.Auctioneer, err = auction.NewRunner(a); err == nil {
		p.outbox.start = p.Auctioneer.Request
	}
	return err
}

// Request implements [AuctioneerAPI].
func (p *ControlPlane) Request(ctx context.Context, items ...auction.Item) error {
	if _, err := p.Leadership.Fence(); err != nil {
		return err
	}
	if p.Auctioneer == nil {
		return p.o.Auctioneer.Request(ctx, items...)
	}
	p.Auctioneer.Request(items...)
	return nil
}

// Plan implements [AuctioneerAPI].
func (p *ControlPlane) Plan(ctx context.Context, items ...auction.Item) (auction.Result, error) {
	if p.Auctioneer == nil {
		return p.o.Auctioneer.Plan(ctx, items...)
	}
	if _, err := p.Leadership.Fence(); err != nil {
		return auction.Result{}, err
	}
	return p.Auctioneer.Plan(ctx, items...)
}

// Converge begins a pass of convergence at once. The error is a
// *[NotLeaderError] if this process does not lead.
func (p *ControlPlane) Converge(context.Context) error {
	if _, err := p.Leadership.Fence(); err != nil {
		return err
	}
	p.Converger.Trigger()
	return nil
}

// Ready is for HandlerOptions: a control plane is ready once its store answers
// and somebody leads, be it as a standby. It is not while its clock keeps it
// from leading.
func (p *ControlPlane) Ready(ctx context.Context) Readiness {
	r := p.Leadership.readiness()
	if _, err := p.o.Store.Log(ctx); err != nil {
		r.Ready, r.Why = false, "the store does not answer: "+err.Error()
	}
	return r
}

// WaitReady returns nil once the control plane is ready: soon after Run has
// begun, or after another process's LeaderTTL if that led and was killed. Until
// then calls fail with a *[NotLeaderError]. The error wraps ctx's and says what
// is missing.
func (p *ControlPlane) WaitReady(ctx context.Context) error {
	for {
		next := p.Leadership.nextAnswer()
		ready := p.Ready(ctx)
		if ready.Ready {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			// What Ready says after the end of ctx may be about that.
			return fmt.Errorf("%w: %s", ctx.Err(), cmp.Or(p.Leadership.readiness().Why, ready.Why))
		}
	}
}

// Tick does once whatever is due: it asks for the leadership and, having it,
// looks for cells that came or went, follows what others have committed,
// converges, carries out effects, runs an
// auction and makes callbacks, in this order and in this goroutine as far as
// Concurrency allows. What fails is tried again by a later Tick; the error
// joins what did.
func (p *ControlPlane) Tick(ctx context.Context) error {
	err := p.Leadership.Tick(ctx)
	led := p.epoch
	fence, notLeading := p.Leadership.Fence()
	p.epoch = fence.Epoch
	if led != 0 && p.epoch != led {
		forgetLeading(p.o.Metrics)
	}
	if notLeading != nil {
		return err
	}
	if p.epoch != led {
		p.Converger.Forget()
		p.follower.begin()
		p.rollCall.begin()
	}
	_, _, watchErr := p.watch.Tick(ctx)
	followErr := p.follower.tick(ctx)
	_, _, passErr := p.Converger.Tick(ctx)
	callErr := p.rollCall.tick(ctx)
	p.outbox.tickLocal(ctx)
	p.outbox.tickRemote(ctx)
	var roundErr error
	if p.Auctioneer != nil {
		_, roundErr = p.Auctioneer.Round(ctx)
	} else {
		p.starts.tick(ctx)
	}
	p.callbacks.tick(ctx)
	return errors.Join(err, watchErr, followErr, passErr, callErr, roundErr)
}

// Run works until ctx ends, whenever this process leads, and returns ctx's
// error.
func (p *ControlPlane) Run(ctx context.Context) error {
	return p.Leadership.Run(ctx, func(ctx context.Context) {
		p.o.Logger.Info("leading")
		p.follower.begin()
		var wg sync.WaitGroup
		wg.Go(func() { p.follower.run(ctx) })
		wg.Go(func() { _ = p.Converger.Run(ctx) })
		wg.Go(func() { p.rollCall.run(ctx) })
		if p.Auctioneer != nil {
			wg.Go(func() { _ = p.Auctioneer.Run(ctx) })
		} else {
			wg.Go(func() { whenever(ctx, p.starts.wake, p.starts.tick) })
		}
		wg.Go(func() { p.outbox.run(ctx) })
		wg.Go(func() { p.callbacks.run(ctx) })
		wg.Go(func() { p.watchCells(ctx) })
		wg.Wait()
		forgetLeading(p.o.Metrics)
		p.o.Logger.Info("not leading any more")
	})
}

func (p *ControlPlane) watchCells(ctx context.Context) {
	ticker := time.NewTicker(p.o.WatchInterval)
	defer ticker.Stop()
	for {
		p.Leadership.publish()
		came, gone, err := p.watch.Tick(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			p.o.Logger.Warn("the present cells could not be listed", "err", err)
		case len(gone) > 0:
			p.o.Logger.Warn("cells are gone", "cells", gone)
		case len(came) > 0:
			p.o.Logger.Info("cells have come", "cells", came)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// A measuredStore counts commits and how long they take.
type measuredStore struct {
	storage.Store
	metrics Metrics
}

// Commit implements [storage.Store].
func (s measuredStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	began := time.Now()
	cursor, err := s.Store.Commit(ctx, b)
	s.metrics.Observe("commit_seconds", time.Since(began).Seconds())
	if errors.Is(err, storage.ErrConflict) {
		s.metrics.Count("commit_conflicts_total", 1)
	}
	return cursor, err
}

// Recall implements [storage.Recaller].
func (s measuredStore) Recall(processGUID string, index int) (storage.Recollection, bool) {
	return storage.Recall(s.Store, processGUID, index)
}

// Restored implements [storage.Restorer].
func (s measuredStore) Restored(ctx context.Context) error { return storage.Restored(ctx, s.Store) }

// Wait implements [storage.Waiter].
func (s measuredStore) Wait(ctx context.Context, after storage.Cursor) error {
	return storage.Wait(ctx, s.Store, after, 0)
}
