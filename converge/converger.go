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

// Effects carries out what decisions ask for once they are committed. A Converger
// calls it from one goroutine at a time.
type Effects interface {
	// Carry takes the effects of one pass: all starts are among them, as one
	// batch. It returns soon and has no error: convergence asks again for what
	// is lost.
	Carry(lrps []lrp.Effect, tasks []task.Effect)
}

// ConvergerOptions are what a [Converger] works with. Zero values mean the
// defaults.
type ConvergerOptions struct {
	// Store and Effects are required. Where several processes share a store,
	// its Commit should carry a leader's fence: an error that wraps
	// storage.ErrFenced ends a pass at once.
	Store   storage.Store
	Effects Effects
	LRPs    lrp.Policy
	Tasks   task.Policy
	Guard   Guard
	// Interval is the longest time from the end of a pass to the next one
	// (default 30 s). A pass that finds when something is due before that, such as
	// the restart of a crashed instance, is followed by one at that time.
	Interval time.Duration
	// FullInterval is for how long passes go by the log of events before one
	// looks at everything again (default 5 min; negative means that every pass
	// does). It bounds how long a record that has rotted goes unseen.
	FullInterval time.Duration
	// Concurrency is how many slots or tasks are mended at a time (default
	// 32).
	Concurrency int
	// Now is the clock of decisions (default time.Now). Domains and leases go
	// by the store's.
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

// A Converger compares what should be with what is and mends the difference,
// one [Converger.Pass] at a time. Its methods may be called at the same time;
// passes and plans wait for each other.
type Converger struct {
	o       ConvergerOptions
	trigger chan struct{}
	// turn holds what passes leave behind while none runs.
	turn chan memory
}

// memory is what one pass leaves to the next.
type memory struct {
	guard  GuardState
	agenda agenda
	ended  time.Time // zero before the first pass, and after one that could not look
	// rest is how long after that the next pass is due.
	rest time.Duration
	// doubted are the cells that the log has named last.
	doubted []string
}

// NewConverger fails with a [*executor.ValidationError] if a required option
// is missing, or one is outside its limits.
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
// triggers in between are one.
func (c *Converger) Trigger() {
	select {
	case c.trigger <- struct{}{}:
	default:
	}
}

// Forget makes the next pass the first one: it is due at once, looks at
// everything, and the Guard begins anew. It is for a process that leads again:
// what it knows of the cells is of the time before another one led. It waits for
// a pass that runs.
func (c *Converger) Forget() {
	<-c.turn
	c.turn <- memory{}
}

// Tick makes a pass if one is due: the first ever, after a Trigger, after a pass
// that could not read all of its snapshot, when something is due that the last one
// has foreseen, and when Interval has passed since its end. It is for those who
// have their own loop.
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

// lookAgain is when Run makes another pass after one that could not read all of
// its snapshot: what triggered it has still to be seen.
const lookAgain = time.Second

// rest is how long after a pass the next one is due, if the first of what the pass
// has foreseen is due then; zero if there is nothing. Passes for what is foreseen
// begin a second after the last one at the earliest.
func (c *Converger) rest(now, due time.Time) time.Duration {
	if due.IsZero() {
		return c.o.Interval
	}
	return min(c.o.Interval, max(lookAgain, due.Sub(now)))
}

// Run begins with Forget. It makes a pass at once, then whenever one is due (see
// Tick), until ctx ends, and returns its error. A pass that could not read all of
// its snapshot is followed by another after a second.
func (c *Converger) Run(ctx context.Context) error {
	c.Forget()
	for {
		if _, err := c.Pass(ctx); err != nil && ctx.Err() == nil {
			c.o.Logger.Error("convergence could not mend everything; the next pass tries again", "err", err)
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
