package bbs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/reach"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// DutiesOptions are the options of a [Duties]. Zero values mean the defaults.
type DutiesOptions struct {
	// Store holds all state. It is required.
	Store storage.Store
	// Leadership says whether this process leads. It is required.
	Leadership *Leadership
	// Dial makes the client of a present cell. It is required.
	Dial Dial
	// Auctioneer places work. It is required, unless [Duties.Connect] gives a way
	// to place it in this process.
	Auctioneer auction.API
	// LRPs, Tasks and Callbacks are the policies.
	LRPs      lrp.Policy
	Tasks     task.Policy
	Callbacks task.CallbackPolicy
	// CallbackAllow and CallbackDeny are networks that callbacks may and may not
	// reach. Post sends completions (default: JSON over HTTP to what the two let
	// it reach).
	CallbackAllow, CallbackDeny []netip.Prefix
	Post                        Post
	// WatchInterval is how often the list of present cells is checked (default 1
	// s).
	WatchInterval time.Duration
	// InventoryInterval is how often cells are asked which containers they have
	// (default 5 min; negative means never).
	InventoryInterval time.Duration
	// Concurrency is how many cells are asked, and how many callbacks made, at a
	// time. 1 makes everything happen in the caller's goroutine (default: the
	// defaults of the parts).
	Concurrency int
	// StopTimeout is how long a cell may take to answer (default 10 s).
	StopTimeout time.Duration
	// MaxCallbacks is how many callbacks may wait (default 10,000).
	MaxCallbacks int
	// Now is the clock of decisions (default time.Now).
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics auction.Metrics
	Logger  *slog.Logger
}

// Duties are a [BBS] together with the work that only the leading process does:
// to watch cells come and go, follow the commits of others, carry out effects,
// call the roll of the cells, and make callbacks. They implement
// converge.Effects. A standby has them too, and leaves them idle.
//
// [Duties.Run] keeps it going. A test or a simulation calls Look, Act and
// CallBack instead, in its own time and from one goroutine. Carry and the BBS
// may be called at the same time as anything else.
type Duties struct {
	// BBS has the calls.
	BBS *BBS
	// Store commits as the leader, and only while this process leads. All changes
	// of this process go through it.
	Store storage.Store
	// Directory lists the present cells, each with its client.
	Directory auction.Directory

	o         DutiesOptions
	watch     *CellWatch
	outbox    *outbox
	starts    *remoteStarts // nil if this process places work
	callbacks *callbacks
	follower  *follower
	rollCall  *rollCall
}

// Validate reports what is missing or outside its limits, apart from the
// Leadership, which a larger whole makes.
func (o *DutiesOptions) Validate(v *executor.Validator) {
	v.Check(o.Store != nil, "store", "", "not nil")
	v.Check(o.Dial != nil, "dial", "", "not nil")
	o.LRPs.Validate(v.In("lrps"))
	o.Tasks.Validate(v.In("tasks"))
	o.Callbacks.Validate(v.In("callbacks"))
	executor.NotNegative(v.In("callbacks"), "timeout", o.Callbacks.Timeout) // no attempt would succeed
	executor.NotNegative(v, "watch_interval", o.WatchInterval)
	executor.NotNegative(v, "concurrency", o.Concurrency)
	executor.NotNegative(v, "stop_timeout", o.StopTimeout)
	executor.NotNegative(v, "max_callbacks", o.MaxCallbacks)
}

// NewDuties fails with an *executor.ValidationError if a required option is
// missing or one is outside its limits. It starts nothing.
func NewDuties(o DutiesOptions) (*Duties, error) {
	var v executor.Validator
	o.Validate(&v)
	v.Check(o.Leadership != nil, "leadership", "", "not nil")
	if err := v.Err(); err != nil {
		return nil, err
	}
	o.WatchInterval = cmp.Or(o.WatchInterval, time.Second)
	o.InventoryInterval = cmp.Or(o.InventoryInterval, 5*time.Minute)
	o.StopTimeout = cmp.Or(o.StopTimeout, 10*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Metrics = cmp.Or[auction.Metrics](o.Metrics, auction.NoMetrics{})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Post == nil {
		o.Post = postJSON(callbackClient(reach.Policy{Allow: o.CallbackAllow, Deny: o.CallbackDeny}), o.Logger)
	}
	d := &Duties{o: o}
	d.follower = &follower{
		follow: func(ctx context.Context, guid string) error { return d.BBS.follow(ctx, guid) },
		carry:  d.Carry,
		now:    o.Now, logger: o.Logger, due: map[string]time.Time{}, waiting: map[string]time.Time{},
	}
	d.Store = ownStore{
		storage.Passthrough{Store: o.Leadership.Store(measuredStore{storage.Passthrough{Store: o.Store}, o.Metrics})}, d.follower,
	}
	cells := new(roster)
	d.Directory = NewDirectory(func(ctx context.Context) ([]CellPresence, error) { return cells.list(ctx, d.Store) }, o.Dial)
	d.follower.store = d.Store
	d.callbacks = newCallbacks(d.Store, o)
	d.outbox = &outbox{
		store: d.Store, directory: d.Directory,
		rollout:  func(ctx context.Context, guid string) error { return d.BBS.ContinueRollout(ctx, guid) },
		callBack: d.callbacks.add,
		timeout:  o.StopTimeout, concurrency: cmp.Or(o.Concurrency, 256),
		now: o.Now, metrics: o.Metrics, logger: o.Logger, local: newMailbox(), remote: newMailbox(),
	}
	if o.Auctioneer != nil {
		d.starts = &remoteStarts{auctioneer: o.Auctioneer, timeout: o.StopTimeout, lost: d.outbox.lost, wake: make(chan struct{}, 1)}
		d.outbox.start = d.starts.add
	}
	var err error
	if d.BBS, err = New(Options{
		Store: d.Store, Effects: d, LRPs: o.LRPs, Tasks: o.Tasks,
		Now: o.Now, Metrics: o.Metrics, Logger: o.Logger,
	}); err != nil {
		return nil, err
	}
	d.BBS.unfollowed = func(guid string) { d.follower.later(guid, followTick) }
	d.BBS.waits = func(guid string, until time.Time) { d.follower.note(d.follower.waiting, guid, until) }
	d.rollCall = &rollCall{
		bbs: d.BBS, directory: d.Directory, interval: o.InventoryInterval, timeout: o.StopTimeout,
		concurrency: cmp.Or(o.Concurrency, 32), now: o.Now, metrics: o.Metrics, logger: o.Logger,
	}
	d.Connect(nil, nil)
	return d, nil
}

// Connect says how to place work in this process, unless
// DutiesOptions.Auctioneer does, and what to call when cells have come or gone.
// Either may be nil; without place, work is not placed and counts as lost. Call
// Connect before the leader works.
func (d *Duties) Connect(place func(...auction.Item), cellsChanged func()) {
	switch {
	case d.starts != nil:
	case place != nil:
		d.outbox.start = place
	default:
		d.outbox.start = func(items ...auction.Item) {
			d.outbox.lost("nobody places work", lrp.RequestStart.String(), nil, "items", len(items))
		}
	}
	d.watch = NewCellWatch(d.Store, cellsChanged)
}

// Carry implements converge.Effects: it takes effects and carries them out
// later, each at most once.
func (d *Duties) Carry(lrps []lrp.Effect, tasks []task.Effect) { d.outbox.Carry(lrps, tasks) }

// Begin is called when this process begins to lead and does not call Run.
func (d *Duties) Begin() {
	d.follower.begin()
	d.rollCall.begin()
}

// Look looks for cells that have come or gone, and completes commits of others.
func (d *Duties) Look(ctx context.Context) error {
	_, _, err := d.watch.Tick(ctx)
	return errors.Join(err, d.follower.tick(ctx))
}

// Act calls the roll if that is due, and carries out the waiting effects.
func (d *Duties) Act(ctx context.Context) error {
	err := d.rollCall.tick(ctx)
	d.outbox.tickLocal(ctx)
	d.outbox.tickRemote(ctx)
	if d.starts != nil {
		d.starts.tick(ctx)
	}
	return err
}

// CallBack makes the callbacks that are due.
func (d *Duties) CallBack(ctx context.Context) { d.callbacks.tick(ctx) }

// Run does all of this until ctx ends. Call it while this process leads.
func (d *Duties) Run(ctx context.Context) {
	d.follower.begin()
	var wg sync.WaitGroup
	wg.Go(func() { d.follower.run(ctx) })
	wg.Go(func() { d.rollCall.run(ctx) })
	if d.starts != nil {
		wg.Go(func() { whenever(ctx, d.starts.wake, d.starts.tick) })
	}
	wg.Go(func() { d.outbox.run(ctx) })
	wg.Go(func() { d.callbacks.run(ctx) })
	wg.Go(func() { d.watchCells(ctx) })
	wg.Wait()
}

func (d *Duties) watchCells(ctx context.Context) {
	ticker := time.NewTicker(d.o.WatchInterval)
	defer ticker.Stop()
	for {
		d.o.Leadership.publish()
		came, gone, err := d.watch.Tick(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			d.o.Logger.Warn("the present cells could not be listed", "err", err)
		case len(gone) > 0:
			d.o.Logger.Warn("cells are gone", "cells", gone)
		case len(came) > 0:
			d.o.Logger.Info("cells have come", "cells", came)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
