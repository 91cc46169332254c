package bbs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// Options are the options of a [BBS]. Zero values mean the defaults.
type Options struct {
	// Store is required. If several processes share one, it should be
	// [Leadership.Store], or wrap that in a storage.Passthrough.
	Store storage.Store
	// Effects carries out the effects of the decisions. Nil leaves that to the
	// leading control plane, which finds in the log of events what consumers have
	// committed here, and carries out its effects within a second. So a BBS
	// without Effects is for consumers: over a transaction of their own, or in a
	// process that never leads.
	Effects converge.Effects
	// LRPs and Tasks are the policies of all decisions.
	LRPs  lrp.Policy
	Tasks task.Policy
	// BatchSize is how many instances are made or stopped in one commit (default
	// 500).
	BatchSize int
	// EventTail is how many of the newest events stay in memory for subscribers
	// that keep up (default 10,000). Up to twice as many may stay, and fewer if they
	// take more than 64 MiB.
	EventTail int
	// Now is the clock of decisions (default time.Now). Domains, leases and events
	// use the store's clock.
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics auction.Metrics
	Logger  *slog.Logger
}

// A BBS is the interface to the desired and the actual state. Consumers say
// what they want; cells and the auctioneer report what they did.
//
// Every call that changes something follows the same path: it validates, loads
// the slot or task, lets lrp.Step or task.Step decide, commits, and hands on
// the effects. Errors are those of the packages lrp, task, executor and
// storage; errors.Is says what went wrong. After any other error it is unknown
// whether the call was carried out, and [WithRequestID] makes it safe to repeat
// it.
//
// All methods may be called at the same time. Reads are those of the store and
// need no leadership.
type BBS struct {
	o    Options
	tail *tail
	// paged counts the bytes of the pages that subscribers have read from the store.
	paged atomic.Int64
	// reading and large are the places of subscribers over a network, those to read
	// from the store and those to hold a large event.
	reading, large queue
	back           wentBack
	// unfollowed takes a process whose instances could not be brought up to date
	// with its deployment.
	unfollowed func(processGUID string)
	// waits takes a process whose rollout has its next step at a time, unless
	// something changes before.
	waits func(processGUID string, until time.Time)
}

// New makes a BBS. It fails with an *executor.ValidationError if a required option
// is missing, or one is outside its limits.
func New(o Options) (*BBS, error) {
	var v executor.Validator
	v.Check(o.Store != nil, "store", "", "not nil")
	o.LRPs.Validate(v.In("lrps"))
	o.Tasks.Validate(v.In("tasks"))
	executor.NotNegative(&v, "batch_size", o.BatchSize)
	executor.NotNegative(&v, "event_tail", o.EventTail)
	o.BatchSize = cmp.Or(o.BatchSize, 500)
	o.EventTail = cmp.Or(o.EventTail, 10_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Now = executor.UTC(o.Now)
	o.Metrics = cmp.Or[auction.Metrics](o.Metrics, auction.NoMetrics{})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &BBS{o: o, tail: &tail{store: o.Store, size: o.EventTail}, unfollowed: func(string) {}, waits: func(string, time.Time) {}}, v.Err()
}

// stepSlot applies a command to one slot, for the method of that name. After a
// repeated call the decision is empty.
func (b *BBS) stepSlot(ctx context.Context, method, processGUID string, index int, c lrp.Command) (lrp.Decision, error) {
	return b.decideSlot(ctx, method, processGUID, index, func(s lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		return lrp.Step(s, d, c, b.o.Now(), b.o.LRPs)
	})
}

// checkIndex refuses an index that no process has.
func checkIndex(index int) error {
	var v executor.Validator
	executor.NotNegative(&v, "index", index)
	return v.Err()
}

func (b *BBS) decideSlot(ctx context.Context, method, processGUID string, index int,
	decide func(lrp.Slot, *lrp.Deployment) (lrp.Decision, error),
) (lrp.Decision, error) {
	if err := checkIndex(index); err != nil {
		return lrp.Decision{}, b.answer(method, err)
	}
	d, committed, err := storage.ApplySlot(ctx, b.o.Store, processGUID, index, b.once(ctx, method), decide)
	if repeated, err := b.outcome(ctx, method, committed, err); repeated || err != nil {
		return lrp.Decision{}, b.answer(method, err)
	}
	b.carry(d.Effects, nil)
	return d, nil
}

// stepTask applies a command to one task, for the method of that name. After a
// repeated call the decision is empty.
func (b *BBS) stepTask(ctx context.Context, method, guid string, c task.Command) (d task.Decision, repeated bool, err error) {
	return b.decideTask(ctx, method, guid, func(t *task.Task) (task.Decision, error) {
		return task.Step(t, c, b.o.Now(), b.o.Tasks)
	})
}

func (b *BBS) decideTask(ctx context.Context, method, guid string,
	decide func(*task.Task) (task.Decision, error),
) (d task.Decision, repeated bool, err error) {
	d, committed, err := storage.ApplyTask(ctx, b.o.Store, guid, b.once(ctx, method), decide)
	if repeated, err = b.outcome(ctx, method, committed, err); repeated || err != nil {
		return task.Decision{}, repeated, b.answer(method, err)
	}
	b.carry(nil, d.Effects)
	return d, false, nil
}

// carry hands on committed effects, unless the leader will find them.
func (b *BBS) carry(lrps []lrp.Effect, tasks []task.Effect) {
	if b.o.Effects != nil {
		b.o.Effects.Carry(lrps, tasks)
	}
}

// once makes sure that the commit of a call of a method is carried out once.
func (b *BBS) once(ctx context.Context, method string) *storage.Options {
	return &storage.Options{RequestID: requestID(ctx, method)}
}

// answer counts a call of a method that failed.
func (b *BBS) answer(method string, err error) error {
	if err == nil {
		return nil
	}
	kind := "failed"
	switch {
	case errors.Is(err, ErrNotLeader), errors.Is(err, storage.ErrFenced):
		kind = "not the leader"
	case isRefusal(err):
		kind = "refused"
	}
	b.o.Metrics.Count("bbs_errors_total", 1, auction.Label{Name: "call", Value: method}, auction.Label{Name: "kind", Value: kind})
	return err
}

// isRefusal reports whether err says that the call was wrong or came at the
// wrong moment, rather than that something is broken.
func isRefusal(err error) bool {
	var l *lrp.TransitionError
	var t *task.TransitionError
	return errors.As(err, &l) || errors.As(err, &t) || errors.Is(err, executor.ErrInvalid) ||
		errors.Is(err, lrp.ErrRefused) || errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrNotFound)
}

func isCorrupt(err error) bool { return errors.Is(err, storage.ErrCorrupt) }
