package converge

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// Effects carries out the effects of decisions after their commit. A Converger
// calls it from one goroutine at a time.
type Effects interface {
	// Carry takes the effects of one pass, with all its starts as one batch. It
	// returns soon and has no error: convergence requests lost effects again.
	Carry(lrps []lrp.Effect, tasks []task.Effect)
}

// ConvergerOptions are the options of a [Converger]. Zero values mean the
// defaults. A negative Interval or Concurrency is refused.
type ConvergerOptions struct {
	// Store and Effects are required. If several processes share a store, its
	// Commit should carry a leader's fence: an error that wraps storage.ErrFenced
	// ends a pass at once.
	Store   storage.Store
	Effects Effects
	LRPs    lrp.Policy
	Tasks   task.Policy
	Guard   Guard
	// Interval is the longest time from the end of a pass to the next one (default
	// 30 s). If a pass finds that something is due earlier, for example the
	// restart of a crashed instance, the next pass begins then.
	Interval time.Duration
	// FullInterval is how long passes rely on the log of events before one looks
	// at everything again (default 5 min; negative means that every pass looks at
	// everything). It limits how long a damaged record can go unnoticed.
	FullInterval time.Duration
	// Concurrency is how many slots or tasks are repaired at a time (default 32).
	Concurrency int
	// Now is the clock of decisions (default time.Now). Domains and leases use the
	// store's clock.
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics auction.Metrics
	Logger  *slog.Logger
}

func (o ConvergerOptions) withDefaults() (ConvergerOptions, error) {
	var v executor.Validator
	v.Check(o.Store != nil, "store", "", "not nil")
	v.Check(o.Effects != nil, "effects", "", "not nil")
	o.LRPs.Validate(v.In("lrps"))
	o.Tasks.Validate(v.In("tasks"))
	executor.NotNegative(&v, "interval", o.Interval)
	executor.NotNegative(&v, "concurrency", o.Concurrency)
	o.Interval = cmp.Or(o.Interval, 30*time.Second)
	o.FullInterval = cmp.Or(o.FullInterval, 5*time.Minute)
	o.Concurrency = cmp.Or(o.Concurrency, 32)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Now = executor.UTC(o.Now)
	if o.Metrics == nil {
		o.Metrics = auction.NoMetrics{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, v.Err()
}

// A Converger compares what should run with what runs and repairs the
// difference, one [Converger.Pass] at a time. Its methods may be called
// at the same time; passes and plans wait for each other.
type Converger struct {
	o       ConvergerOptions
	trigger chan struct{}
	// turn holds the memory while no pass runs.
	turn chan memory
}

// memory is what a pass leaves for the next one.
type memory struct {
	guard  GuardState
	agenda agenda
	ended  time.Time // zero before the first pass, and after one that could not look
	// rest is the time from ended until the next pass is due.
	rest time.Duration
	// doubted are the cells that the log named last.
	doubted []string
}

// NewConverger makes a converger and starts nothing. The error is an
// [*executor.ValidationError] if a required option is missing, one is outside
// its limits, or a policy is invalid.
func NewConverger(o ConvergerOptions) (*Converger, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Converger{o: o, trigger: make(chan struct{}, 1), turn: make(chan memory, 1)}
	c.turn <- memory{}
	return c, nil
}

// Trigger makes Run begin a pass at once, or after the one that runs. Several
// triggers in between cause one pass.
func (c *Converger) Trigger() {
	select {
	case c.trigger <- struct{}{}:
	default:
	}
}

// Forget makes the next pass like the first: it is due at once, looks at
// everything, and the Guard starts anew. Call it when a process leads again,
// because its knowledge of the cells is older than the leader in between. It
// waits for a pass that runs.
func (c *Converger) Forget() {
	<-c.turn
	c.turn <- memory{}
}

// Tick makes a pass if one is due: the first pass, one after a Trigger, one
// after a pass that could not read all of its snapshot, one for something that
// the last pass has foreseen, or one after Interval. It is for callers with a
// loop of their own.
func (c *Converger) Tick(ctx context.Context) (p Pass, ran bool, err error) {
	triggered := false
	select {
	case <-c.trigger:
		triggered = true
	default:
	}
	select {
	case m := <-c.turn:
		c.turn <- m
		if !triggered && !m.ended.IsZero() && c.o.Now().Sub(m.ended) < m.rest {
			return Pass{}, false, nil
		}
	case <-ctx.Done():
		return Pass{}, false, ctx.Err()
	}
	p, err = c.Pass(ctx)
	return p, true, err
}

// lookAgain is the time until the pass after one that could not read all of its
// snapshot, because the cause of that pass has still to be seen.
const lookAgain = time.Second

// rest is the time until the next pass, if the earliest event that this pass
// has foreseen is due at due; zero means that it has foreseen none. A pass for
// a foreseen event begins at least a second after the last pass.
func (c *Converger) rest(now, due time.Time) time.Duration {
	if due.IsZero() {
		return c.o.Interval
	}
	return min(c.o.Interval, max(lookAgain, due.Sub(now)))
}

// Run calls Forget, makes a pass at once, and then another whenever one is due
// (see Tick). When ctx ends, it returns ctx's error. A pass that could not read
// all of its snapshot is followed by another after a second. Run logs the
// errors of passes.
func (c *Converger) Run(ctx context.Context) error {
	c.Forget()
	for {
		if _, err := c.Pass(ctx); err != nil && ctx.Err() == nil {
			c.o.Logger.Error("convergence could not repair everything; the next pass tries again", "err", err)
		}
		m := <-c.turn
		c.turn <- m
		wait := m.rest
		if m.ended.IsZero() {
			wait = min(c.o.Interval, lookAgain)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-c.trigger:
			timer.Stop()
		case <-timer.C:
		}
	}
}
