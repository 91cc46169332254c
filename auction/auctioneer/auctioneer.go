// Package auctioneer places work in a process of its own, apart from the
// control plane. Its rules are those of package auction. A control plane that
// is not given one places work itself.
//
// # Concurrent use
//
// [Auctioneer] says which of its methods may be called concurrently. Options
// are plain values: any number of goroutines may use one while none changes it.
package auctioneer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/metrics"
)

// auctioneerRole is the role in which one auctioneer leads.
const auctioneerRole = "auctioneer"

// A BBS has the calls of a BBS that an auctioneer needs. Its methods may be
// called concurrently.
type BBS interface {
	// Cells lists the cells that are present.
	Cells(context.Context) ([]bbs.CellPresence, error)
	auction.Reporter
}

// Options are the options of an [Auctioneer]. Zero values mean the defaults.
type Options struct {
	// Store keeps the leadership. It is required.
	Store bbs.LeaderStore
	// Owner names this process among those that may lead, and is unique. It is
	// required.
	Owner string
	// Address is where others reach it; see [bbs.LeadershipOptions].
	Address string
	// BBS lists the cells and takes reports: a [bbs.BBS] or an httpapi.RemoteBBS.
	// It is required.
	BBS BBS
	// Dial makes the client of a present cell. It is required.
	Dial bbs.Dial
	// Auction has the knobs of the runner. New sets its Directory, Reporter, Now,
	// Metrics and Logger, and refuses them here.
	Auction auction.RunnerOptions
	// LeaderTTL is how long a leader stays the leader without renewing its lease
	// (default 15 s; at least 3 ms).
	LeaderTTL time.Duration
	// MaxClockSkew is how far Now and the store's clock may differ for this
	// process to begin to lead (default 1 min; negative means any difference). See
	// [bbs.LeadershipOptions].
	MaxClockSkew time.Duration
	// Now is the clock (default time.Now).
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics auction.Metrics
	Logger  *slog.Logger
}

// An Auctioneer places work in a process of its own. Several processes may have
// one; only one of them leads and places work. Control planes reach it through
// an httpapi.RemoteAuctioneer, their Options.Auctioneer. It reaches the BBS
// through an httpapi.RemoteBBS.
//
// All methods may be called at the same time, except Tick, which is for one
// goroutine and not beside Run.
type Auctioneer struct {
	// Runner does the work.
	Runner *auction.Runner
	// Leadership says who leads.
	Leadership *bbs.Leadership

	o   Options
	led bool // at the last Tick
}

// New makes an auctioneer and starts nothing. The error is an
// *executor.ValidationError if a required option is missing, one is outside its
// limits, or the policy is invalid.
func New(o Options) (*Auctioneer, error) {
	var v executor.Validator
	v.Check(o.Store != nil, "store", "", "not nil")
	v.Check(o.BBS != nil, "bbs", "", "not nil")
	v.Check(o.Dial != nil, "dial", "", "not nil")
	v.Check(o.Owner != "", "owner", "", "not empty")
	o.Auction.ValidateAsPart(v.In("auction"))
	bbs.CheckLeaderTTL(&v, "leader_ttl", o.LeaderTTL)
	if err := v.Err(); err != nil {
		return nil, err
	}
	o.Metrics = cmp.Or[auction.Metrics](o.Metrics, auction.NoMetrics{})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	a := &Auctioneer{o: o}
	var err error
	if a.Leadership, err = bbs.NewLeadership(bbs.LeadershipOptions{
		Store: o.Store, Owner: o.Owner, Address: o.Address, Role: auctioneerRole, TTL: o.LeaderTTL, MaxClockSkew: o.MaxClockSkew, Now: o.Now, Metrics: o.Metrics, Logger: o.Logger,
	}); err != nil {
		return nil, err
	}
	r := o.Auction
	r.Directory, r.Reporter, r.Now, r.Metrics, r.Logger = bbs.NewDirectory(o.BBS.Cells, o.Dial), o.BBS, o.Now, o.Metrics, o.Logger
	a.Runner, err = auction.NewRunner(r)
	return a, err
}

// Tick asks for the leadership and, if this process leads, runs one batch of
// the work that is due. The error joins those of the two.
func (a *Auctioneer) Tick(ctx context.Context) error {
	err := a.Leadership.Tick(ctx)
	leading, _ := a.Leadership.Leading()
	if a.led && !leading {
		metrics.ForgetLeading(a.o.Metrics)
	}
	if a.led = leading; !leading {
		return err
	}
	_, roundErr := a.Runner.Round(ctx)
	return errors.Join(err, roundErr)
}

// Run keeps the auctioneer going until ctx ends, and returns ctx's error. It
// asks for the leadership again and again, and places work while this process
// leads. At the end it gives the leadership up.
func (a *Auctioneer) Run(ctx context.Context) error {
	return a.Leadership.Run(ctx, func(ctx context.Context) {
		a.o.Logger.Info("leading")
		_ = a.Runner.Run(ctx)
		metrics.ForgetLeading(a.o.Metrics)
		a.o.Logger.Info("not leading any more")
	})
}

// Request implements [auction.API]. It keeps work in memory; convergence
// requests lost work again. The error is a *[bbs.NotLeaderError] if this
// process does not lead.
func (a *Auctioneer) Request(_ context.Context, items ...auction.Item) error {
	if _, err := a.Leadership.Fence(); err != nil {
		return err
	}
	a.Runner.Request(items...)
	return nil
}

// Plan implements [auction.API]. The error is a *[bbs.NotLeaderError] if this
// process does not lead, because it does not know the waiting work.
func (a *Auctioneer) Plan(ctx context.Context, items ...auction.Item) (auction.Result, error) {
	if _, err := a.Leadership.Fence(); err != nil {
		return auction.Result{}, err
	}
	return a.Runner.Plan(ctx, items...)
}

// Ready reports whether the auctioneer can do its work, for a probe such as
// /readyz (httpapi.HandlerOptions.Ready). It is ready, also as a standby, once
// somebody leads. It is not ready while its clock keeps it from leading.
func (a *Auctioneer) Ready(context.Context) bbs.Readiness { return a.Leadership.Readiness() }

var _ auction.API = (*Auctioneer)(nil)
