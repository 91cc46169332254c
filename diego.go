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
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/metrics"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// Options of [New]. Zero values mean the defaults. A negative number or
// duration is refused unless its comment says what it means.
type Options struct {
	// Store holds all state. It is required, and the caller's to close.
	Store storage.Store
	// Dial makes the client of a present cell. It is required.
	Dial bbs.Dial
	// Owner names this process among those that may lead, and is unique; see
	// [bbs.LeadershipOptions]. It is required.
	Owner string
	// Address is where others reach it; see [bbs.LeadershipOptions].
	Address string
	// Auctioneer places work in another process, for example an
	// httpapi.RemoteAuctioneer. Nil means that this process places it.
	Auctioneer auction.API

	// LRPs, Tasks, Guard and Callbacks are the policies.
	LRPs      lrp.Policy
	Tasks     task.Policy
	Guard     converge.Guard
	Callbacks task.CallbackPolicy
	// Auction has the knobs of the auctioneer, including its Policy. New sets its
	// Directory, Reporter, Now, Metrics and Logger, and refuses them here.
	Auction auction.RunnerOptions

	// LeaderTTL is how long a leader stays the leader without renewing its lease
	// (default 15 s; at least 3 ms).
	LeaderTTL time.Duration
	// MaxClockSkew is how far Now and the store's clock may differ for this
	// process to begin to lead (default 1 min; negative means any difference). See
	// [bbs.LeadershipOptions].
	MaxClockSkew time.Duration
	// WatchInterval is how often the list of present cells is checked (default 1
	// s).
	WatchInterval time.Duration
	// ConvergenceInterval is the longest time from the end of a pass to the next one
	// (default 30 s).
	ConvergenceInterval time.Duration
	// FullConvergenceInterval is how long passes rely on the log of events before
	// one looks at everything again (default 5 min; negative means that every pass
	// looks at everything).
	FullConvergenceInterval time.Duration
	// InventoryInterval is how often cells are asked which containers they have; a
	// record on a cell without a container is given up (default 5 min; negative
	// means never).
	InventoryInterval time.Duration
	// Concurrency is how much is done at a time: cells that are asked, slots that
	// are repaired, callbacks that are made. 1 makes everything happen in the
	// caller's goroutine (default: the defaults of the parts).
	Concurrency int
	// StopTimeout is how long a cell may take to list its containers, or to confirm
	// that it will stop an instance or cancel a task (default 10 s). An auctioneer
	// in another process has the same time to confirm that it will place work.
	StopTimeout time.Duration
	// MaxCallbacks is how many callbacks may wait (default 10,000). Convergence
	// requests the rest again.
	MaxCallbacks int
	// CallbackAllow and CallbackDeny are networks that callbacks may and may not
	// reach. An address in an allowed network may always be reached. Otherwise
	// denied networks may not be reached, nor the host's loopback, link-local and
	// unspecified addresses, those of containers, metadata services and multicast.
	// The address that is dialled counts, for redirects too, and proxies are not
	// used.
	CallbackAllow, CallbackDeny []netip.Prefix
	// Post sends completions (default: JSON over HTTP to what CallbackAllow and
	// CallbackDeny let it reach). A Post of your own decides for itself what it
	// reaches.
	Post bbs.Post
	// Now is the clock of decisions (default time.Now). The store has a clock of
	// its own, which must agree with it; see MaxClockSkew.
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics auction.Metrics
	Logger  *slog.Logger
}

// A ControlPlane is all of Diego except its cells: a BBS, an auctioneer,
// convergence, callbacks, and the leadership that lets one of several control
// planes act.
//
// The auctioneer may run in a process of its own, as an auctioneer.Auctioneer.
// httpapi.NewHandler serves either over HTTP.
//
// [ControlPlane.Run] keeps it going; [ControlPlane.WaitReady] waits until it
// can be called. A test or a simulation calls [ControlPlane.Tick] instead, in
// its own time.
//
// All methods may be called at the same time, except Tick, which is for one
// goroutine and not beside Run.
type ControlPlane struct {
	// BBS has the calls. Its reads work on every process; its other calls fail
	// with a *[bbs.NotLeaderError] on a process that does not lead.
	BBS *bbs.BBS
	// Auctioneer places work; its Plan says where work would go. It is nil if
	// another process places work, by Options.Auctioneer.
	Auctioneer *auction.Runner
	// Converger repairs; its Trigger begins a pass at once.
	Converger *converge.Converger
	// Leadership says who leads.
	Leadership *bbs.Leadership

	o      Options
	duties *bbs.Duties
	epoch  int64 // of the leadership at the last Tick; 0 without one
}

// New makes a control plane and starts nothing. The error is an
// *executor.ValidationError if a required option is missing, one is outside its
// limits, or a policy is invalid.
func New(o Options) (*ControlPlane, error) {
	duties := bbs.DutiesOptions{
		Store: o.Store, Dial: o.Dial, Auctioneer: o.Auctioneer,
		LRPs: o.LRPs, Tasks: o.Tasks, Callbacks: o.Callbacks,
		CallbackAllow: o.CallbackAllow, CallbackDeny: o.CallbackDeny, Post: o.Post,
		WatchInterval: o.WatchInterval, InventoryInterval: o.InventoryInterval, Concurrency: o.Concurrency,
		StopTimeout: o.StopTimeout, MaxCallbacks: o.MaxCallbacks, Now: o.Now, Metrics: o.Metrics, Logger: o.Logger,
	}
	var v executor.Validator
	duties.Validate(&v)
	v.Check(o.Owner != "", "owner", "", "not empty")
	o.Auction.ValidateAsPart(v.In("auction"))
	bbs.CheckLeaderTTL(&v, "leader_ttl", o.LeaderTTL)
	executor.NotNegative(&v, "convergence_interval", o.ConvergenceInterval)
	if err := v.Err(); err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	p := &ControlPlane{o: o}
	var err error
	p.Leadership, err = bbs.NewLeadership(bbs.LeadershipOptions{Store: o.Store, Owner: o.Owner, Address: o.Address, TTL: o.LeaderTTL, MaxClockSkew: o.MaxClockSkew, Now: o.Now, Metrics: o.Metrics, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	duties.Leadership = p.Leadership
	if p.duties, err = bbs.NewDuties(duties); err != nil {
		return nil, err
	}
	p.BBS = p.duties.BBS
	var place func(...auction.Item)
	if o.Auctioneer == nil {
		a := o.Auction
		a.Directory, a.Reporter, a.Now, a.Metrics, a.Logger = p.duties.Directory, p.BBS, o.Now, o.Metrics, o.Logger
		a.Concurrency = cmp.Or(a.Concurrency, o.Concurrency)
		if p.Auctioneer, err = auction.NewRunner(a); err != nil {
			return nil, err
		}
		place = p.Auctioneer.Request
	}
	if p.Converger, err = converge.NewConverger(converge.ConvergerOptions{
		Store: p.duties.Store, Effects: p.duties, LRPs: o.LRPs, Tasks: o.Tasks, Guard: o.Guard,
		Interval: o.ConvergenceInterval, FullInterval: o.FullConvergenceInterval, Concurrency: o.Concurrency, Now: o.Now, Metrics: o.Metrics, Logger: o.Logger,
	}); err != nil {
		return nil, err
	}
	p.duties.Connect(place, p.Converger.Trigger)
	return p, nil
}

// Request implements [auction.API]: it adds work to the next batch, here or in
// Options.Auctioneer. The error is a *[bbs.NotLeaderError] if this process does
// not lead.
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

// Plan implements [auction.API]: it says where work would go, and sends none.
// The error is a *[bbs.NotLeaderError] if this process places work and does not
// lead.
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
// *[bbs.NotLeaderError] if this process does not lead.
func (p *ControlPlane) Converge(context.Context) error {
	if _, err := p.Leadership.Fence(); err != nil {
		return err
	}
	p.Converger.Trigger()
	return nil
}

// Ready reports whether the control plane can do its work, for a probe such as
// /readyz (httpapi.HandlerOptions.Ready). It is ready, also as a standby, once
// its store answers and somebody leads. It is not ready while its clock keeps
// it from leading.
func (p *ControlPlane) Ready(ctx context.Context) bbs.Readiness {
	r := p.Leadership.Readiness()
	if _, err := p.o.Store.Log(ctx); err != nil {
		r.Ready, r.Why = false, "the store does not answer: "+err.Error()
	}
	return r
}

// WaitReady returns nil once the control plane is ready: soon after Run has
// begun, or after the LeaderTTL of another process that led and was killed.
// Until then calls fail with a *[bbs.NotLeaderError]. If ctx ends first, the
// error wraps ctx's and says what is missing.
func (p *ControlPlane) WaitReady(ctx context.Context) error {
	for {
		next := p.Leadership.Answered()
		ready := p.Ready(ctx)
		if ready.Ready {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			// After the end of ctx, Ready's answer may be about that.
			return fmt.Errorf("%w: %s", ctx.Err(), cmp.Or(p.Leadership.Readiness().Why, ready.Why))
		}
	}
}

// Tick does everything that is due, once. It asks for the leadership. If this
// process leads, Tick looks for cells that came or went, follows the commits of
// others, converges, carries out effects, runs an auction and makes callbacks,
// in this order. With an Options.Concurrency of 1, all of that happens in the
// caller's goroutine. A later Tick tries failed parts again; the error joins
// their errors.
func (p *ControlPlane) Tick(ctx context.Context) error {
	err := p.Leadership.Tick(ctx)
	led := p.epoch
	fence, notLeading := p.Leadership.Fence()
	p.epoch = fence.Epoch
	if led != 0 && p.epoch != led {
		metrics.ForgetLeading(p.o.Metrics)
	}
	if notLeading != nil {
		return err
	}
	if p.epoch != led {
		p.Converger.Forget()
		p.duties.Begin()
	}
	lookErr := p.duties.Look(ctx)
	_, _, passErr := p.Converger.Tick(ctx)
	actErr := p.duties.Act(ctx)
	var roundErr error
	if p.Auctioneer != nil {
		_, roundErr = p.Auctioneer.Round(ctx)
	}
	p.duties.CallBack(ctx)
	return errors.Join(err, lookErr, passErr, actErr, roundErr)
}

// Run keeps the control plane going until ctx ends, and returns ctx's error. It
// asks for the leadership again and again, and acts while this process leads.
// At the end it gives the leadership up, so that another process can lead at
// once.
func (p *ControlPlane) Run(ctx context.Context) error {
	return p.Leadership.Run(ctx, func(ctx context.Context) {
		p.o.Logger.Info("leading")
		var wg sync.WaitGroup
		wg.Go(func() { p.duties.Run(ctx) })
		wg.Go(func() { _ = p.Converger.Run(ctx) })
		if p.Auctioneer != nil {
			wg.Go(func() { _ = p.Auctioneer.Run(ctx) })
		}
		wg.Wait()
		metrics.ForgetLeading(p.o.Metrics)
		p.o.Logger.Info("not leading any more")
	})
}

var (
	_ bbs.ConvergenceAPI = (*ControlPlane)(nil)
	_ auction.API        = (*ControlPlane)(nil)
)
