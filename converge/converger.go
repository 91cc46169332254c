package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// Effects carries out what decisions ask for once they are committed.
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
	// Interval is the time from the end of a pass to the next one that nothing
	// triggers (default 30 s).
	Interval time.Duration
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
	o.Interval = cmp.Or(o.Interval, 30*time.Second)
	o.Concurrency = cmp.Or(max(o.Concurrency, 0), 32)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = auction.NoMetrics{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, v.Err()
}

// A Converger compares what should be with what is and mends the difference,
// one [Converger.Pass] at a time.
type Converger struct {
	o       ConvergerOptions
	trigger chan struct{}
	// turn holds what passes leave behind while none runs.
	turn chan memory
}

// memory is what one pass leaves to the next.
type memory struct {
	guard GuardState
	ended time.Time // zero before the first pass
}

// NewConverger fails with a [*executor.ValidationError] if a required option
// is missing.
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

// Tick makes a pass if one is due: the first ever, after a Trigger, and when
// Interval has passed since the end of the last one. It is for those who have
// their own loop.
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
		if !triggered && !m.ended.IsZero() && c.o.Now().Sub(m.ended) < c.o.Interval {
			return Pass{}, false, nil
		}
	case <-ctx.Done():
		return Pass{}, false, ctx.Err()
	}
	p, err = c.Pass(ctx)
	return p, true, err
}

// Run makes a pass at once, then every Interval and on every Trigger, until ctx
// ends, and returns its error.
func (c *Converger) Run(ctx context.Context) error {
	for {
		if _, err := c.Pass(ctx); err != nil && ctx.Err() == nil {
			c.o.Logger.Error("convergence could not mend everything; the next pass tries again", "err", err)
		}
		timer := time.NewTimer(c.o.Interval)
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

// A Pass says what a pass found and did.
type Pass struct {
	// Cells are present. Unless Trusted, no cell was taken for missing.
	Cells   int
	Trusted bool
	// Actions counts what was planned, in the order of the reasons.
	Actions []ReasonCount
	// Starts is how many of the effects ask for a start.
	Starts int
	// Quarantined records could not be decoded and were moved away.
	Quarantined []storage.RecordKey
	// Failed is how many actions and reads failed. The error of the pass wraps
	// the first of their errors.
	Failed int
}

// A ReasonCount is the number of actions planned for one reason.
type ReasonCount struct {
	Reason Reason
	Count  int
}

// Pass looks at one snapshot of everything and mends what is not as it should
// be (000 §Convergence): every action is decided anew on the records as they
// are by then, and what fails for one slot or task does not keep the others
// from being mended. The effects of all decisions are carried out last, as one
// batch. Passes do not overlap: a second call waits.
//
// The error joins what went wrong; it may be long, but not beyond measure.
func (c *Converger) Pass(ctx context.Context) (Pass, error) {
	select {
	case m := <-c.turn:
		p := &pass{c: c, guard: m.guard, reasons: make(map[Reason]int)}
		err := p.run(ctx)
		c.turn <- memory{guard: p.guard, ended: c.o.Now()}
		return p.report, err
	case <-ctx.Done():
		return Pass{}, ctx.Err()
	}
}

// A pass is one call of Pass.
type pass struct {
	c      *Converger
	guard  GuardState
	cancel context.CancelCauseFunc

	// jobs are what was planned. They take memory for what is to be mended, not
	// for what there is.
	jobs    []job
	reasons map[Reason]int

	mu          sync.Mutex
	report      Pass
	errs        []error
	lrpEffects  []lrp.Effect
	taskEffects []task.Effect
}

// job is what to do about one slot, process or task, in order.
type job func(context.Context)

func (p *pass) run(ctx context.Context) error {
	started := p.c.o.Now()
	ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(nil)

	if err := p.c.o.Store.View(ctx, func(r storage.Reader) error { return p.plan(ctx, r) }); err != nil {
		p.fail(err)
	}
	p.mend(ctx)
	p.c.o.Effects.Carry(p.lrpEffects, p.taskEffects)
	p.finish(p.c.o.Now().Sub(started))
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errors.Join(p.errs...)
}

// mend does the jobs, some at a time.
func (p *pass) mend(ctx context.Context) {
	if p.c.o.Concurrency == 1 {
		for _, j := range p.jobs {
			j(ctx)
		}
		return
	}
	jobs := make(chan job)
	var wg sync.WaitGroup
	for range min(p.c.o.Concurrency, len(p.jobs)) {
		wg.Go(func() {
			for j := range jobs {
				j(ctx)
			}
		})
	}
	for _, j := range p.jobs {
		jobs <- j
	}
	close(jobs)
	wg.Wait()
}

// plan reads the snapshot and notes what is to be done. Nothing is mended while
// a view is open, as that may need a connection which the view waits for.
func (p *pass) plan(ctx context.Context, r storage.Reader) error {
	p.jobs = nil
	clear(p.reasons)
	now, err := r.Now(ctx)
	if err != nil {
		return err
	}
	cells, err := p.cells(ctx, r, now)
	if err != nil {
		return err
	}
	in := LRPs{
		Deployments: r.Deployments(ctx, storage.DeploymentFilter{Bare: true}),
		Cells:       cells,
	}
	for d, err := range r.Domains(ctx) {
		if err != nil {
			return err
		}
		in.Domains = append(in.Domains, d)
	}
	states := census{}
	in.ActualLRPs = states.countLRPs(r.ActualLRPs(ctx, storage.ActualLRPFilter{}))
	p.planLRPs(ctx, in, now)
	p.planTasks(ctx, states.countTasks(r.Tasks(ctx, storage.TaskFilter{})), cells, now)
	states.publish(p.c.o.Metrics, in.Domains, now)
	return nil
}

// cells asks the guard how far the list of present cells is believed.
func (p *pass) cells(ctx context.Context, r storage.Reader, now time.Time) (Cells, error) {
	var present []string
	for lease, err := range r.Leases(ctx, storage.CellLease) {
		if err != nil {
			return Cells{}, err
		}
		present = append(present, lease.Name)
	}
	var cells Cells
	cells, p.guard = p.c.o.Guard.Observe(p.guard, present, now)
	p.report.Cells, p.report.Trusted = len(present), cells.Trusted()
	return cells, nil
}

func (p *pass) later(j job) { p.jobs = append(p.jobs, j) }

// planLRPs makes one job of all that concerns one slot.
func (p *pass) planLRPs(ctx context.Context, in LRPs, now time.Time) {
	var slot []LRPAction
	flush := func() {
		if len(slot) == 0 {
			return
		}
		actions := slot
		slot = nil
		p.later(func(ctx context.Context) {
			for i := range actions {
				p.applyLRP(ctx, &actions[i])
			}
		})
	}
	for a, err := range PlanLRPs(in, now, p.c.o.LRPs) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			flush()
			p.later(func(ctx context.Context) { p.unreadable(ctx, err) })
			continue
		}
		p.reasons[a.Reason]++
		if len(slot) > 0 && (slot[0].ProcessGUID != a.ProcessGUID || slot[0].Index != a.Index) {
			flush()
		}
		slot = append(slot, a)
	}
	flush()
}

func (p *pass) planTasks(ctx context.Context, tasks iter.Seq2[*task.Task, error], cells Cells, now time.Time) {
	for a, err := range PlanTasks(tasks, cells, now, p.c.o.Tasks) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			p.later(func(ctx context.Context) { p.unreadable(ctx, err) })
			continue
		}
		p.reasons[a.Reason]++
		p.later(func(ctx context.Context) { p.applyTask(ctx, a) })
	}
}

func (p *pass) applyLRP(ctx context.Context, a *LRPAction) {
	o := &p.c.o
	switch {
	case ctx.Err() != nil:
	case a.Command != nil:
		d, _, err := storage.ApplySlot(ctx, o.Store, a.ProcessGUID, a.Index, nil, func(s lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
			return lrp.Step(s, d, a.Command, o.Now(), o.LRPs)
		})
		if err != nil {
			p.fail(fmt.Errorf("%s/%d: %s: %w", a.ProcessGUID, a.Index, a.Command.Name(), err))
			return
		}
		p.carry(d.Effects, nil)
	case a.Start != nil:
		p.carry([]lrp.Effect{{Kind: lrp.RequestStart, Key: *a.Start}}, nil)
	default:
		if err := p.pruneDefinitions(ctx, a.ProcessGUID); err != nil {
			p.fail(fmt.Errorf("%s: pruning its definitions: %w", a.ProcessGUID, err))
		}
	}
}

// pruneDefinitions looks again which definitions have records.
func (p *pass) pruneDefinitions(ctx context.Context, guid string) error {
	_, err := storage.Apply(ctx, p.c.o.Store, nil, func(ctx context.Context, r storage.Reader) (b storage.Batch, err error) {
		d, err := r.Deployment(ctx, guid)
		if errors.Is(err, storage.ErrNotFound) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		inUse := map[string]bool{}
		for record, err := range r.ActualLRPs(ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}) {
			if err != nil {
				return b, err
			}
			inUse[record.DefinitionID] = true
		}
		b.AddChange(d.PruneDefinitions(func(id string) bool { return inUse[id] }))
		return b, nil
	})
	return err
}

func (p *pass) applyTask(ctx context.Context, a TaskAction) {
	o := &p.c.o
	if ctx.Err() != nil {
		return
	}
	d, _, err := storage.ApplyTask(ctx, o.Store, a.GUID, nil, func(t *task.Task) (task.Decision, error) {
		return task.Step(t, a.Command, o.Now(), o.Tasks)
	})
	if err != nil {
		p.fail(fmt.Errorf("task %s: %s: %w", a.GUID, a.Command.Name(), err))
		return
	}
	p.carry(nil, d.Effects)
}

// unreadable puts a record that cannot be decoded into quarantine (000
// §Pruning Corrupt/Invalid Data), and only counts any other error.
//
// Without its deployment a process is not desired. That is nothing its consumer
// has said, so the domains of its instances are no longer fresh: they run on
// until the consumer has desired it anew.
func (p *pass) unreadable(ctx context.Context, cause error) {
	var corrupt *storage.CorruptError
	if !errors.As(cause, &corrupt) {
		p.fail(cause)
		return
	}
	_, err := storage.Apply(ctx, p.c.o.Store, &storage.Options{Attempts: 1}, func(ctx context.Context, r storage.Reader) (b storage.Batch, err error) {
		b.AddQuarantine(corrupt)
		if corrupt.Key.Kind != storage.DeploymentRecord {
			return b, nil
		}
		var domains []string
		for record, err := range r.ActualLRPs(ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{corrupt.Key.GUID}}) {
			if err == nil && !slices.Contains(domains, record.Domain) {
				domains = append(domains, record.Domain)
				b.AddDomain(record.Domain, time.Nanosecond)
			}
		}
		return b, nil
	})
	switch {
	case errors.Is(err, storage.ErrConflict): // it was mended or removed meanwhile
	case err != nil:
		p.fail(fmt.Errorf("quarantine: %w", err))
	default:
		p.c.o.Logger.Error("a record could not be decoded and is in quarantine", "record", corrupt.Key.String(), "err", corrupt.Err)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.report.Quarantined = append(p.report.Quarantined, corrupt.Key)
	}
}

func (p *pass) carry(lrps []lrp.Effect, tasks []task.Effect) {
	if len(lrps)+len(tasks) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lrpEffects = append(p.lrpEffects, lrps...)
	p.taskEffects = append(p.taskEffects, tasks...)
}

// maxErrors is how many errors a pass keeps; it counts the others.
const maxErrors = 100

// fail notes an error. A leader that was replaced has nothing to mend.
func (p *pass) fail(err error) {
	if errors.Is(err, storage.ErrFenced) {
		p.cancel(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Failed++
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, err)
	}
}

func (p *pass) finish(took time.Duration) {
	for reason, n := range p.reasons {
		p.report.Actions = append(p.report.Actions, ReasonCount{reason, n})
	}
	slices.SortFunc(p.report.Actions, func(a, b ReasonCount) int { return cmp.Compare(a.Reason, b.Reason) })
	for _, e := range p.lrpEffects {
		if e.Kind == lrp.RequestStart {
			p.report.Starts++
		}
	}
	for _, e := range p.taskEffects {
		if e.Kind == task.RequestStart {
			p.report.Starts++
		}
	}
	m := p.c.o.Metrics
	m.Count("convergence_passes_total", 1)
	m.Observe("convergence_pass_seconds", took.Seconds())
	m.Count("convergence_errors_total", int64(p.report.Failed))
	m.Count("convergence_quarantined_total", int64(len(p.report.Quarantined)))
	m.Count("convergence_starts_total", int64(p.report.Starts))
	m.Gauge("cells_present", float64(p.report.Cells))
	m.Gauge("cells_trusted", truth(p.report.Trusted))
	for _, a := range p.report.Actions {
		m.Count("convergence_actions_total", int64(a.Count), auction.Label{Name: "reason", Value: a.Reason.String()})
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// A census counts records by state as they are read.
type census struct {
	lrps  [lrp.Crashed + 1][lrp.Suspect + 1]int
	tasks [task.Resolving + 1]int
}

func (c *census) countLRPs(list iter.Seq2[lrp.ActualLRP, error]) iter.Seq2[lrp.ActualLRP, error] {
	return func(yield func(lrp.ActualLRP, error) bool) {
		for r, err := range list {
			if err == nil {
				c.lrps[r.State][r.Presence]++
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func (c *census) countTasks(list iter.Seq2[*task.Task, error]) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		for t, err := range list {
			if err == nil {
				c.tasks[t.State]++
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

func (c *census) publish(m auction.Metrics, domains []lrp.Domain, now time.Time) {
	for state := lrp.Unclaimed; state <= lrp.Crashed; state++ {
		for presence := lrp.Ordinary; presence <= lrp.Suspect; presence++ {
			m.Gauge("lrps", float64(c.lrps[state][presence]),
				auction.Label{Name: "state", Value: state.String()}, auction.Label{Name: "presence", Value: presence.String()})
		}
	}
	for state := task.Pending; state <= task.Resolving; state++ {
		m.Gauge("tasks", float64(c.tasks[state]), auction.Label{Name: "state", Value: state.String()})
	}
	for _, d := range domains {
		m.Gauge("domain_fresh", truth(d.Fresh(now)), auction.Label{Name: "domain", Value: d.Name})
	}
}
