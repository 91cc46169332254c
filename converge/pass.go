package converge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A Pass reports what a pass found and did.
type Pass struct {
	// Full is true if the pass looked at everything, and false if it went by the
	// log of events and by what was due.
	Full bool
	// Cells is the number of present cells. Trusted is true if every absent cell
	// counted as missing. If it is false, either none did, or all except the
	// Doubted ones, whose loss is not believed yet (see Guard).
	Cells   int
	Trusted bool
	Doubted []string
	// Actions counts the planned actions, in the order of the reasons.
	Actions []ReasonCount
	// Starts is the number of effects that request a start.
	Starts int
	// Quarantined are the records that could not be decoded and were moved away.
	Quarantined []storage.RecordKey
	// Failed is the number of actions and reads that failed. The error of the pass
	// wraps the first of their errors.
	Failed int
}

// A ReasonCount is the number of actions planned for one reason.
type ReasonCount struct {
	Reason Reason
	Count  int
}

// Pass looks at one snapshot and repairs what is not as it should be (000
// §Convergence). Each action is decided again on the current records. A failure
// in one slot or task does not keep the others from being repaired. The effects
// of all decisions are carried out last, as one batch. Passes do not overlap: a
// second call waits.
//
// The first pass looks at everything, and so does one in each FullInterval. The
// others look only at what may need something by now; their plan is the same.
//
// The error joins the errors of the pass, up to a limit.
func (c *Converger) Pass(ctx context.Context) (Pass, error) {
	select {
	case m := <-c.turn:
		p := &pass{c: c, memory: m}
		err := p.run(ctx)
		if p.memory.ended = (time.Time{}); p.looked {
			p.memory.ended, p.memory.rest = c.o.Now(), c.rest(p.now, p.memory.agenda.next(p.now))
		}
		c.turn <- p.memory
		return p.report, err
	case <-ctx.Done():
		return Pass{}, ctx.Err()
	}
}

// A Plan is what a pass would do.
type Plan struct {
	// Full is as in a Pass.
	Full  bool
	LRPs  []LRPAction
	Tasks []TaskAction
	// Unreadable are the errors of records that could not be read. A pass would
	// move away those that cannot be decoded.
	Unreadable []error
}

// Plan says what a pass would do now, without doing it. If full, it plans for a
// pass that looks at everything.
func (c *Converger) Plan(ctx context.Context, full bool) (Plan, error) {
	select {
	case m := <-c.turn:
		p := &pass{c: c, memory: m, full: full}
		err := p.look(ctx)
		c.turn <- m
		return p.planned, err
	case <-ctx.Done():
		return Plan{}, ctx.Err()
	}
}

// A pass is one call of Pass or Plan.
type pass struct {
	c      *Converger
	memory memory // at first the memory of the last pass, then this one's
	full   bool   // look at everything, even if the agenda would do
	cancel context.CancelCauseFunc

	// planned grows with what needs repair, not with the number of records.
	planned Plan
	domains []lrp.Domain
	now     time.Time // by the store's clock
	looked  bool      // the look was completed

	mu          sync.Mutex
	report      Pass
	errs        []error
	lrpEffects  []lrp.Effect
	taskEffects []task.Effect
}

func (p *pass) run(ctx context.Context) error {
	started := p.c.o.Now()
	ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(nil)

	if err := p.look(ctx); err != nil {
		p.fail(err)
	}
	p.warn()
	p.mend(ctx)
	p.c.o.Effects.Carry(p.lrpEffects, p.taskEffects)
	p.finish(started, p.c.o.Now())
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errors.Join(p.errs...)
}

// warn logs cells whose loss is not believed, each time others join them.
func (p *pass) warn() {
	doubted := p.report.Doubted
	joined := func(id string) bool { _, named := slices.BinarySearch(p.memory.doubted, id); return !named }
	if slices.ContainsFunc(doubted, joined) {
		p.c.o.Logger.Warn("so many cells were lost within a short time that the loss is not believed yet: their instances are not replaced",
			"lost", len(doubted), "present", p.report.Cells, "cells", doubted)
	}
	p.memory.doubted = doubted
}

// look plans from one snapshot. Nothing is repaired while a view is open,
// because a repair may need a connection for which the view waits. After an
// error the plan made so far is right, but may be incomplete: the next pass
// looks at everything.
func (p *pass) look(ctx context.Context) error {
	last := p.memory
	err := p.c.o.Store.View(ctx, func(r storage.Reader) error {
		p.memory, p.planned, p.domains = last, Plan{}, nil
		p.memory.agenda = last.agenda.clone()
		return p.plan(ctx, r)
	})
	if err == nil {
		err = ctx.Err()
	}
	p.looked = err == nil
	if !p.looked || len(p.planned.Unreadable) > 0 {
		p.memory.agenda.looked = time.Time{}
	}
	return err
}

// plan reads the snapshot and notes what to do.
func (p *pass) plan(ctx context.Context, r storage.Reader) (err error) {
	if p.now, err = r.Now(ctx); err != nil {
		return err
	}
	log, err := r.Log(ctx)
	if err != nil {
		return err
	}
	cells, err := p.cells(ctx, r)
	if err != nil {
		return err
	}
	for d, err := range r.Domains(ctx) {
		if err != nil {
			return err
		}
		p.domains = append(p.domains, d)
	}
	a := &p.memory.agenda
	if !p.full && a.holds(p.now, log, p.c.o.FullInterval) {
		partial, err := p.follow(ctx, r, log, cells)
		if err != nil {
			return err
		}
		if processes, tasks, few := a.due(p.now); partial && few {
			a.cells = cells
			p.planSome(ctx, r, processes, tasks)
			return nil
		}
	}
	a.begin(p.now, log, cells)
	p.planned.Full = true
	p.planLRPs(a.census.countDeployments(r.Deployments(ctx, storage.DeploymentFilter{Bare: true})),
		a.census.countLRPs(r.ActualLRPs(ctx, storage.ActualLRPFilter{})))
	// Not bare ones: whether a callback is due depends on its URL, which is part of the definition.
	p.planTasks(a.census.countTasks(r.Tasks(ctx, storage.TaskFilter{})))
	return nil
}

// cells asks the guard how far to believe the list of present cells.
func (p *pass) cells(ctx context.Context, r storage.Reader) (cells Cells, err error) {
	var present []string
	for lease, err := range r.Leases(ctx, storage.CellLease) {
		if err != nil {
			return cells, err
		}
		present = append(present, lease.Name)
	}
	cells, p.memory.guard = p.c.o.Guard.Observe(p.memory.guard, present, p.now)
	p.report.Cells, p.report.Trusted, p.report.Doubted = len(present), cells.Trusted(), cells.Doubted()
	return cells, nil
}

// follow brings the agenda up to date with the events since the last pass and
// with the cells that changed. ok is false if it cannot.
func (p *pass) follow(ctx context.Context, r storage.Reader, log storage.Extent, cells Cells) (ok bool, err error) {
	a := &p.memory.agenda
	if a.cursor < log.Newest {
		followed := 0
		for e, err := range r.Events(ctx, a.cursor, storage.EventFilter{}) {
			if errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrGone) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			if e.Sequence > log.Newest {
				break
			}
			if followed++; followed > maxFollowed {
				return false, nil
			}
			a.follow(&e)
		}
	}
	moved, ok := a.moved(cells)
	if !ok {
		return false, nil
	}
	for _, id := range moved {
		for record, err := range r.ActualLRPs(ctx, storage.ActualLRPFilter{CellIDs: []string{id}}) {
			if err != nil {
				return false, ignoreCorrupt(err)
			}
			a.processes[record.ProcessGUID] = time.Time{}
		}
		for t, err := range r.Tasks(ctx, storage.TaskFilter{CellIDs: []string{id}, Bare: true}) {
			if err != nil {
				return false, ignoreCorrupt(err)
			}
			a.tasks[t.GUID] = time.Time{}
		}
	}
	return true, nil
}

// ignoreCorrupt leaves a record that cannot be decoded to a full pass.
func ignoreCorrupt(err error) error {
	if errors.Is(err, storage.ErrCorrupt) {
		return nil
	}
	return err
}

// planSome plans for some processes and tasks.
func (p *pass) planSome(ctx context.Context, r storage.Reader, processes, tasks []string) {
	for _, guid := range processes {
		delete(p.memory.agenda.census.troubled, guid) // it may be gone
	}
	if len(processes) > 0 {
		p.planLRPs(r.Deployments(ctx, storage.DeploymentFilter{ProcessGUIDs: processes, Bare: true}),
			r.ActualLRPs(ctx, storage.ActualLRPFilter{ProcessGUIDs: processes}))
	}
	p.planTasks(func(yield func(*task.Task, error) bool) {
		for _, guid := range tasks {
			t, err := r.Task(ctx, guid)
			if errors.Is(err, storage.ErrNotFound) {
				continue
			}
			if !yield(t, err) {
				return
			}
		}
	})
}

func (p *pass) planLRPs(deployments iter.Seq2[*lrp.Deployment, error], records iter.Seq2[lrp.ActualLRP, error]) {
	a := &p.memory.agenda
	for action, err := range PlanLRPs(LRPs{
		Deployments: deployments, ActualLRPs: records, Domains: p.domains, Cells: a.cells,
		Again:   func(guid string, at time.Time) { a.processes[guid] = at },
		Ahead:   a.foresee,
		Visited: a.census.visit,
	}, p.now, p.c.o.LRPs) {
		if err != nil {
			p.planned.Unreadable = append(p.planned.Unreadable, err)
			continue
		}
		p.planned.LRPs = append(p.planned.LRPs, action)
	}
}

func (p *pass) planTasks(tasks iter.Seq2[*task.Task, error]) {
	a := &p.memory.agenda
	noted := func(yield func(*task.Task, error) bool) {
		for t, err := range tasks {
			if err == nil {
				if next := nextLook(t, a.cells, p.now, p.c.o.Tasks); !next.IsZero() {
					a.tasks[t.GUID] = next
				}
			}
			if !yield(t, err) {
				return
			}
		}
	}
	for action, err := range PlanTasks(noted, a.cells, p.now, p.c.o.Tasks) {
		if err != nil {
			p.planned.Unreadable = append(p.planned.Unreadable, err)
			continue
		}
		a.tasks[action.GUID] = p.now
		p.planned.Tasks = append(p.planned.Tasks, action)
	}
}

// mend carries out the plan, several slots at a time; the actions on one slot
// run in order.
func (p *pass) mend(ctx context.Context) {
	var jobs []func()
	for _, err := range p.planned.Unreadable {
		jobs = append(jobs, func() { p.unreadable(ctx, err) })
	}
	sameSlot := func(a, b LRPAction) bool { return a.ProcessGUID == b.ProcessGUID && a.Index == b.Index }
	for rest := p.planned.LRPs; len(rest) > 0; {
		n := 1
		for n < len(rest) && sameSlot(rest[0], rest[n]) {
			n++
		}
		slot := rest[:n]
		rest = rest[n:]
		jobs = append(jobs, func() {
			for i := range slot {
				p.applyLRP(ctx, &slot[i])
			}
		})
	}
	for _, a := range p.planned.Tasks {
		jobs = append(jobs, func() { p.applyTask(ctx, a) })
	}
	parallel.Each(len(jobs), p.c.o.Concurrency, func(i int) { jobs[i]() })
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
		switch err := p.tidy(ctx, a.ProcessGUID); {
		case errors.Is(err, storage.ErrConflict): // a tenant may change a process all the time
			o.Logger.Debug("the definitions that nothing uses were not dropped, because the process changes all the time; the next pass tries again",
				"process", a.ProcessGUID, "err", err)
		case err != nil:
			p.fail(fmt.Errorf("%s: dropping the definitions that nothing uses: %w", a.ProcessGUID, err))
		}
	}
}

// tidy checks again which definitions have records and whether the rollout is
// complete, and drops the others and ends it.
func (p *pass) tidy(ctx context.Context, guid string) error {
	_, err := storage.Apply(ctx, p.c.o.Store, nil, func(ctx context.Context, r storage.Reader) (b storage.Batch, err error) {
		d, err := r.Deployment(ctx, guid)
		if errors.Is(err, storage.ErrNotFound) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		inUse := map[string]bool{}
		rollout := lrp.NewRollout(d, p.c.o.Now(), p.c.o.LRPs)
		for slot, err := range storage.SlotsOf(r.ActualLRPs(ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{guid}})) {
			if err != nil {
				return b, err
			}
			for i := range slot.Records {
				inUse[slot.Records[i].DefinitionID] = true
			}
			rollout.Visit(slot)
		}
		change, _ := Tidy(d, rollout, func(id string) bool { return inUse[id] })
		b.AddChange(change)
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

// unreadable puts a record that cannot be decoded into quarantine (000 §Pruning
// Corrupt/Invalid Data). It only counts any other error. A record that a newer
// release has written stays where it is, because that release reads it.
//
// Without its deployment a process seems not to be desired, but its consumer
// has not said so. Therefore the domains of its instances stop being fresh, and
// the instances run until the consumer desires the process again.
func (p *pass) unreadable(ctx context.Context, cause error) {
	var corrupt *storage.CorruptError
	if !errors.As(cause, &corrupt) || errors.Is(cause, storage.ErrNewer) {
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
			if errors.Is(err, storage.ErrCorrupt) {
				continue
			}
			if err != nil {
				return b, err // otherwise instances in domains that were not seen would be stopped
			}
			if !slices.Contains(domains, record.Domain) {
				domains = append(domains, record.Domain)
				b.AddDomain(record.Domain, time.Nanosecond)
			}
		}
		return b, nil
	})
	switch {
	case errors.Is(err, storage.ErrConflict): // another process repaired or removed it meanwhile
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

// maxErrors is the number of errors that a pass keeps; it only counts the rest.
const maxErrors = 100

// fail notes an error. A leader that was replaced has nothing to repair.
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

func (p *pass) finish(started, ended time.Time) {
	p.report.Full = p.planned.Full
	p.report.Actions = p.planned.count()
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
	if p.report.Full {
		m.Count("convergence_full_passes_total", 1)
	}
	if p.looked {
		p.memory.agenda.census.publish(m, p.domains, p.now)
	}
	m.Observe("convergence_pass_seconds", ended.Sub(started).Seconds())
	m.Gauge("convergence_passed_at_seconds", float64(ended.UnixMilli())/1000)
	m.Count("convergence_errors_total", int64(p.report.Failed))
	m.Count("convergence_quarantined_total", int64(len(p.report.Quarantined)))
	m.Count("convergence_starts_total", int64(p.report.Starts))
	m.Gauge("cells_present", float64(p.report.Cells))
	m.Gauge("cells_trusted", truth(p.report.Trusted))
	m.Gauge("cells_doubted", float64(len(p.report.Doubted)))
	for _, a := range p.report.Actions {
		m.Count("convergence_actions_total", int64(a.Count), auction.Label{Name: "reason", Value: a.Reason.String()})
	}
}

// count counts the actions by reason.
func (p *Plan) count() (counts []ReasonCount) {
	n := make([]int, len(reasonTexts))
	for i := range p.LRPs {
		n[p.LRPs[i].Reason]++
	}
	for i := range p.Tasks {
		n[p.Tasks[i].Reason]++
	}
	for reason, count := range n {
		if count > 0 {
			counts = append(counts, ReasonCount{Reason(reason), count})
		}
	}
	return counts
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
