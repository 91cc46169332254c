package auction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/deadline"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// An API has the calls of an auctioneer, in this process or over HTTP. Its
// methods may be called at the same time.
type API interface {
	// Request adds work to the next batch. It fails on a process that does not
	// lead.
	Request(ctx context.Context, items ...Item) error
	// Plan says where work would go if it were requested now. It asks the cells
	// for their states and sends them no work.
	Plan(ctx context.Context, items ...Item) (Result, error)
}

// RunnerOptions are the options of a [Runner]. Zero values mean the defaults. A
// negative number or duration is refused unless its comment says what it means.
type RunnerOptions struct {
	// Directory and Reporter are required.
	Directory Directory
	Reporter  Reporter
	Policy    Policy
	// StateTimeout is how long a cell may take to report its state before the
	// round goes on without it (default 2 s).
	StateTimeout time.Duration
	// SilentPause is how long at most a cell that has missed a deadline is not asked
	// again while there are others: StateTimeout after the first miss, and twice as
	// long after each further one (default 30 s; negative means that every round asks
	// and waits).
	SilentPause time.Duration
	// PerformTimeout is how long a cell may take to answer for its work
	// (default 10 s).
	PerformTimeout time.Duration
	// FailureHalfLife is the time after which a failed hand-over counts half,
	// after twice that time a quarter, and so on. A hand-over fails if the cell
	// did not answer or took nothing. A cell gets no work while its failures since
	// its last success add up to more than one, unless that concerns more than
	// half of the cells. So the second failure in a row pauses it for almost this
	// long (default 2 min; negative means that failures pause no cell).
	FailureHalfLife time.Duration
	// DirectoryTimeout and ReportTimeout are how long the Directory may take to
	// list the cells and the Reporter to take one report. After a late report the
	// round makes no more reports (default 10 s each).
	DirectoryTimeout, ReportTimeout time.Duration
	// Concurrency is how many cells are asked, and reports made, at a time. 1
	// makes every call in the caller's goroutine, where a call that ignores its
	// context delays the round; otherwise such calls are abandoned at their
	// deadline (default 256).
	Concurrency int
	// MinBackoff and MaxBackoff bound the wait before refused work is tried again,
	// which doubles with every attempt (default 5 s and 30 s). MinBackoff must not
	// be above MaxBackoff.
	MinBackoff, MaxBackoff time.Duration
	// MaxAttempts is how often a request for work is tried (default 5).
	// Convergence repeats requests that are still needed.
	MaxAttempts int
	// MaxWaiting is how much work may wait (default 1,000,000). Further work is
	// dropped and counted; convergence requests it again.
	MaxWaiting int
	// Placed, if it is set, receives the decision about each batch, with reasons,
	// before the cells get their work. It must not block.
	Placed func(Result)
	// Now is the clock (default time.Now).
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics Metrics
	Logger  *slog.Logger
}

// ValidateAsPart refuses the options that a larger whole sets for all its
// parts: Directory, Reporter, Now, Metrics and Logger.
func (o *RunnerOptions) ValidateAsPart(v *executor.Validator) {
	const limit = "not set: it is that of the whole"
	v.Check(o.Directory == nil, "directory", "", limit)
	v.Check(o.Reporter == nil, "reporter", "", limit)
	v.Check(o.Now == nil, "now", "", limit)
	v.Check(o.Metrics == nil, "metrics", "", limit)
	v.Check(o.Logger == nil, "logger", "", limit)
}

func (o RunnerOptions) withDefaults() (RunnerOptions, error) {
	var v executor.Validator
	v.Check(o.Directory != nil, "directory", "", "not nil")
	v.Check(o.Reporter != nil, "reporter", "", "not nil")
	o.Policy.Validate(v.In("policy"))
	executor.NotNegative(&v, "state_timeout", o.StateTimeout)
	executor.NotNegative(&v, "perform_timeout", o.PerformTimeout)
	executor.NotNegative(&v, "directory_timeout", o.DirectoryTimeout)
	executor.NotNegative(&v, "report_timeout", o.ReportTimeout)
	executor.NotNegative(&v, "concurrency", o.Concurrency)
	executor.NotNegative(&v, "min_backoff", o.MinBackoff)
	executor.NotNegative(&v, "max_backoff", o.MaxBackoff)
	executor.NotNegative(&v, "max_attempts", o.MaxAttempts)
	executor.NotNegative(&v, "max_waiting", o.MaxWaiting)
	o.StateTimeout = cmp.Or(o.StateTimeout, 2*time.Second)
	o.SilentPause = cmp.Or(o.SilentPause, 30*time.Second)
	o.PerformTimeout = cmp.Or(o.PerformTimeout, 10*time.Second)
	o.FailureHalfLife = cmp.Or(o.FailureHalfLife, 2*time.Minute)
	o.DirectoryTimeout = cmp.Or(o.DirectoryTimeout, 10*time.Second)
	o.ReportTimeout = cmp.Or(o.ReportTimeout, 10*time.Second)
	o.Concurrency = cmp.Or(o.Concurrency, 256)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 30*time.Second)
	o.MinBackoff = cmp.Or(o.MinBackoff, min(5*time.Second, o.MaxBackoff))
	executor.AtMost(&v, "min_backoff", o.MinBackoff, "max_backoff", o.MaxBackoff)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 5)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 1_000_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = NoMetrics{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, v.Err()
}

// A Runner is the auctioneer: it collects work into batches, places each batch
// on the cells that answer, hands it to them and reports failures (000
// §Auction). It keeps its work in memory; convergence requests lost work again.
// Its methods may be called at the same time; rounds wait for each other.
type Runner struct {
	o    RunnerOptions
	wake chan struct{}
	// turn holds a token while no round runs.
	turn chan struct{}

	// directory and reporter carry the calls to those two.
	directory, reporter *deadline.Line

	mu      sync.Mutex
	waiting waitlist
	// cells are the cells that were present last, or for which calls still wait.
	cells map[string]*remembered
}

// remembered is what a Runner keeps about a cell between rounds.
type remembered struct {
	line     *deadline.Line
	standing standing // guarded by Runner.mu
}

// ErrBusy is the error of a call that was not made because too many earlier
// calls to the same cell, Directory or Reporter were abandoned at their deadline
// and have not returned yet.
var ErrBusy = deadline.ErrBusy

// maxAbandoned limits the calls to one cell, or to the Directory, that have
// missed their deadline and still run. At the limit no more calls are made.
const maxAbandoned = 4

// NewRunner makes a runner and starts nothing. The error is an
// [*executor.ValidationError] if a required option is missing, one is outside
// its limits, or the policy is invalid.
func NewRunner(o RunnerOptions) (*Runner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Runner{
		o: o, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		waiting: newWaitlist(), cells: map[string]*remembered{},
	}
	r.directory, r.reporter = r.newLine(maxAbandoned), r.newLine(o.Concurrency)
	r.turn <- struct{}{}
	return r, nil
}

// newLine makes a line with at most limit abandoned calls.
func (r *Runner) newLine(limit int) *deadline.Line {
	if r.o.Concurrency == 1 {
		limit = 0
	}
	return deadline.NewLine(limit)
}

// Request adds work to the next batch. Waiting work is not added twice: the
// later request replaces the earlier one, and is due at once.
func (r *Runner) Request(items ...Item) {
	r.mu.Lock()
	dropped := 0
	for _, item := range items {
		if r.waiting.work[item.Key] == nil && len(r.waiting.work) >= r.o.MaxWaiting {
			dropped++
			continue
		}
		r.waiting.add(&waiting{item: item})
	}
	n := len(r.waiting.work)
	r.mu.Unlock()
	r.o.Metrics.Gauge("auction_waiting", float64(n))
	if dropped > 0 {
		r.o.Metrics.Count("auction_dropped_total", int64(dropped))
		r.o.Logger.Warn("too much work waits for a cell; some is dropped until convergence requests it again", "dropped", dropped, "limit", r.o.MaxWaiting)
	}
	r.signal()
}

func (r *Runner) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Waiting returns how much work waits for a round, and when the earliest of it
// is due. The zero time means at once.
func (r *Runner) Waiting() (n int, due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting.work), r.waiting.nextDue()
}

// A Round reports the result of a batch.
type Round struct {
	// Cells is the number of cells that reported their state.
	Cells int
	// Silent lists, by id, the cells that got no work because they did not answer
	// or are left out for a while.
	Silent []SilentCell
	// Performed lists the work that cells have taken.
	Performed []Placement
	// Refused lists the work for which no cell has room, or which its cell refused
	// with lrp.RejectedByCell. What is left to report in the next round is not in it,
	// and neither is work that took part before it was due.
	Refused []Refusal
	// Unknown lists the work that may or may not have been taken, because the cell
	// did not answer. It is neither reported nor carried over; convergence finds
	// out.
	Unknown []Placement
	// CarriedOver is how much of the refused work waits for another round.
	CarriedOver int
}

// A SilentCell is a cell that is left out of a round.
type SilentCell struct {
	CellID string
	// Err says why. It is a [*PausedError] for a cell that was not asked.
	Err error
}

// leftOut counts the cells of a round that have no state.
func leftOut(cells []SilentCell) (n reasonCounts) {
	for _, c := range cells {
		reason := Silent
		if paused := (*PausedError)(nil); errors.As(c.Err, &paused) {
			reason = paused.Reason
		}
		n.add(reason)
	}
	return n
}

// Round runs one batch of the work that is due: it asks the cells for their
// states, places, hands over, reports and carries over. If no work is due, it
// does nothing. Rounds do not overlap: a second call waits.
//
// Some of the work that was refused for lack of room takes part before it is due;
// see the package's documentation. If it finds no room again, that is not reported,
// counts as no attempt, and does not change when it is due.
//
// An error means either that the batch was not begun, and its work still waits,
// or that ctx ended, and the work in the batch is lost.
func (r *Runner) Round(ctx context.Context) (Round, error) {
	if err := r.enter(ctx); err != nil {
		return Round{}, err
	}
	defer r.leave()
	if !r.anyDue() {
		return Round{}, nil
	}
	started := r.o.Now()
	fleet, err := r.gather(ctx)
	if err != nil {
		return Round{}, err
	}
	// The batch is taken only now, so it includes what came in meanwhile.
	batch, early, items := r.take()
	result, err := place(fleet.states, leftOut(fleet.silent), items, r.o.Policy)
	if err != nil {
		r.Request(items[:len(batch)]...)
		return Round{}, err
	}
	if r.o.Placed != nil {
		r.o.Placed(result)
	}
	round := Round{Cells: len(fleet.states), Silent: fleet.silent}
	r.perform(ctx, fleet.parties, result.Placements, &round)
	round.Refused = append(round.Refused, result.Refusals...)
	r.settle(early, &round)
	round.Refused, round.CarriedOver = r.report(ctx, round.Refused, batch)
	r.measure(&round, r.o.Now().Sub(started))
	return round, ctx.Err()
}

// Plan says where the given work would go if it were requested now, together
// with the waiting work that would take part. It asks the cells for their states
// and sends them no work. Refusals of work that is not due are left out. It fails
// if the Directory does.
func (r *Runner) Plan(ctx context.Context, items ...Item) (Result, error) {
	fleet, err := r.gather(ctx)
	if err != nil {
		return Result{}, err
	}
	now := r.o.Now()
	r.mu.Lock()
	due := r.waiting.due(now)
	asked := make(map[Key]bool, len(items)) // a request for one of these takes the place of what waits
	for _, item := range items {
		asked[item.Key] = true
		due = append(due, &waiting{item: item})
	}
	_, early := r.waiting.early(now, due)
	early = slices.DeleteFunc(early, func(w *waiting) bool { return asked[w.item.Key] })
	work := make([]Item, 0, len(due)+len(early))
	for _, w := range slices.Concat(due, early) {
		work = append(work, w.item)
	}
	r.mu.Unlock()
	result, err := place(fleet.states, leftOut(fleet.silent), work, r.o.Policy)
	notDue := make(map[*Item]bool, len(early))
	for i := len(due); i < len(work); i++ {
		notDue[&work[i]] = true
	}
	result.Refusals = slices.DeleteFunc(result.Refusals, func(r Refusal) bool { return notDue[r.Item] })
	return result, err
}

// Run runs a round when work is due, until ctx ends, and returns ctx's error.
func (r *Runner) Run(ctx context.Context) error {
	const afterFailure = time.Second
	for {
		timer := time.NewTimer(r.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-r.wake:
			timer.Stop()
		case <-timer.C:
		}
		if _, err := r.Round(ctx); err != nil && ctx.Err() == nil {
			r.o.Logger.Error("an auction round was not begun; its work waits", "err", err)
			r.o.Metrics.Count("auction_errors_total", 1)
			if err := sleep(ctx, afterFailure); err != nil {
				return err
			}
			r.signal()
		}
	}
}

// pause is the time until something is due.
func (r *Runner) pause() time.Duration {
	n, due := r.Waiting()
	if n == 0 {
		return time.Hour
	}
	return max(0, due.Sub(r.o.Now()))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (r *Runner) enter(ctx context.Context) error {
	select {
	case <-r.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Runner) leave() { r.turn <- struct{}{} }

func (r *Runner) anyDue() bool {
	n, due := r.Waiting()
	return n > 0 && !r.o.Now().Before(due)
}

// take removes the work that is due, and chooses what takes part early. That stays
// in the waiting work. The items are of both, in this order.
func (r *Runner) take() (batch, early map[Key]*waiting, items []Item) {
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	due := r.waiting.due(now)
	batch, items = make(map[Key]*waiting, len(due)), make([]Item, 0, len(due)+maxEarly)
	for _, w := range due {
		r.waiting.remove(w)
		batch[w.item.Key] = w
		items = append(items, w.item)
	}
	looked, in := r.waiting.early(now, due)
	r.waiting.seen(looked)
	early = make(map[Key]*waiting, len(in))
	for _, w := range in {
		early[w.item.Key] = w
		items = append(items, w.item)
	}
	return batch, early, items
}

// settle removes early work from the waiting work that was handed over, and from the
// refusals of the round: it is reported when it was due. Its cell does not get it
// again before that if the cell has refused it.
func (r *Runner) settle(early map[Key]*waiting, round *Round) {
	if len(early) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	waits := func(key Key) *waiting {
		if w := early[key]; w != nil && r.waiting.holds(w) {
			return w
		}
		return nil // or requested again meanwhile
	}
	for _, p := range slices.Concat(round.Performed, round.Unknown) {
		r.waiting.remove(waits(p.Item.Key))
	}
	round.Refused = slices.DeleteFunc(round.Refused, func(refused Refusal) bool {
		key := refused.Item.Key
		if w := waits(key); w != nil && refused.Error.Reason == lrp.RejectedByCell {
			r.waiting.hold(w)
		}
		return early[key] != nil
	})
}

// gathered is the fleet as far as it has answered.
type gathered struct {
	states  []CellState
	parties map[string]party
	silent  []SilentCell
}

// A party is a cell that gets calls.
type party struct {
	Cell
	*remembered
	takesReasons bool
}

// gather asks all cells for their states, except those that are left out.
func (r *Runner) gather(ctx context.Context) (gathered, error) {
	cells, err := deadline.Call(ctx, r.directory, r.o.DirectoryTimeout, r.o.Directory.Cells)
	if err != nil {
		return gathered{}, fmt.Errorf("listing the cells: %w", err)
	}
	asked, silent := r.choose(cells)
	g := gathered{parties: make(map[string]party, len(asked)), silent: silent}
	states, errs := make([]CellState, len(asked)), make([]error, len(asked))
	parallel.Each(len(asked), r.o.Concurrency, func(i int) {
		states[i], errs[i] = deadline.Call(ctx, asked[i].line, r.o.StateTimeout, asked[i].Client.State)
		if errs[i] == nil && states[i].ID != asked[i].ID {
			errs[i] = fmt.Errorf("it says that it is cell %q", states[i].ID)
		}
	})
	if err := ctx.Err(); err != nil {
		return gathered{}, err
	}
	for i, p := range asked {
		if errs[i] != nil {
			g.silent = append(g.silent, SilentCell{p.ID, errs[i]})
			r.missed(p, errs[i])
			continue
		}
		g.states = append(g.states, states[i])
		p.takesReasons = states[i].TakesReasons
		g.parties[p.ID] = p
	}
	r.answered(g.parties)
	slices.SortFunc(g.silent, func(a, b SilentCell) int { return strings.Compare(a.CellID, b.CellID) })
	return g, nil
}

// choose decides which of the cells are asked. It forgets all others, except
// those for which calls still wait: when such a cell comes back, it is not a
// new one.
func (r *Runner) choose(cells []Cell) (asked []party, silent []SilentCell) {
	r.mu.Lock()
	defer r.mu.Unlock()
	present := make(map[string]*remembered, len(cells))
	standings := make([]standing, len(cells))
	for i, c := range cells {
		known := r.cells[c.ID]
		if known == nil {
			known = &remembered{line: r.newLine(maxAbandoned)}
		}
		present[c.ID], standings[i] = known, known.standing
	}
	for id, known := range r.cells {
		if present[id] == nil && known.line.Busy() {
			present[id] = known
		}
	}
	r.cells = present
	for i, why := range choose(standings, r.o.Now(), r.o.FailureHalfLife) {
		if why != nil {
			silent = append(silent, SilentCell{cells[i].ID, why})
		} else {
			asked = append(asked, party{Cell: cells[i], remembered: present[cells[i].ID]})
		}
	}
	return asked, silent
}

// missed notes a cell that has missed a deadline. A cell that fails at once
// delays nobody.
func (r *Runner) missed(p party, err error) {
	if r.o.SilentPause < 0 || !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.standing = p.standing.missed(r.o.Now(), r.o.StateTimeout, r.o.SilentPause)
	r.o.Logger.Warn("a cell has missed a deadline and is left out for a while, unless all are", "cell", p.ID, "until", p.standing.silentUntil, "err", err)
}

// answered notes the cells that have reported their states.
func (r *Runner) answered(parties map[string]party) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parties {
		p.standing = p.standing.answered()
	}
}

// judge notes the result of a hand-over: how says why it failed, and is empty
// if the cell has taken something.
func (r *Runner) judge(p party, how string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if how == "" {
		p.standing = p.standing.took()
		return
	}
	now := r.o.Now()
	p.standing = p.standing.failed(now, r.o.FailureHalfLife, how)
	if paused := p.standing.paused(now, r.o.FailureHalfLife); paused != nil && paused.Reason == Failing {
		r.o.Logger.Warn("a cell fails all the work that it is given and is left out for a while; its own log says why",
			"cell", p.ID, "failures", paused.Failures, "until", paused.Until, "last", how)
	}
}

// perform hands the placed work to its cells.
func (r *Runner) perform(ctx context.Context, parties map[string]party, placed []Placement, round *Round) {
	var ids []string
	byCell := make(map[string][]Placement, len(parties))
	for _, p := range placed {
		if byCell[p.CellID] == nil {
			ids = append(ids, p.CellID)
		}
		byCell[p.CellID] = append(byCell[p.CellID], p)
	}
	rejections, errs := make([][]Rejection, len(ids)), make([]error, len(ids))
	parallel.Each(len(ids), r.o.Concurrency, func(i int) {
		id := ids[i]
		p := parties[id]
		w := Work{CellID: id, Items: make([]Item, 0, len(byCell[id]))}
		for _, placement := range byCell[id] {
			item := *placement.Item
			item.Fields = nil // only placement reads them, and cells of 0.1 refuse members that they do not know
			w.Items = append(w.Items, item)
			if p.takesReasons {
				w.Reasons = append(w.Reasons, placement.reason())
			}
		}
		rejections[i], errs[i] = deadline.Call(ctx, p.line, r.o.PerformTimeout, func(ctx context.Context) ([]Rejection, error) {
			return p.Client.Perform(ctx, w)
		})
	})
	for i, id := range ids {
		if errs[i] != nil {
			if ctx.Err() == nil {
				r.missed(parties[id], errs[i])
				r.judge(parties[id], errs[i].Error())
			}
			r.o.Logger.Warn("a cell did not answer for its work; convergence finds out what became of it", "cell", id, "items", len(byCell[id]), "err", errs[i])
			round.Unknown = append(round.Unknown, byCell[id]...)
			continue
		}
		reasons := make(map[Key]string, len(rejections[i]))
		for _, rejection := range rejections[i] {
			reasons[rejection.Key] = rejection.Reason
		}
		how, taken := "", 0
		for _, p := range byCell[id] {
			reason, rejected := reasons[p.Item.Key]
			if !rejected {
				round.Performed = append(round.Performed, p)
				taken++
				continue
			}
			how = cmp.Or(reason, "no reason given")
			round.Refused = append(round.Refused, Refusal{Item: p.Item, Error: lrp.PlacementError{
				Reason: lrp.RejectedByCell, Detail: id + ": " + how,
			}})
		}
		if taken > 0 {
			how = ""
		}
		r.judge(parties[id], how)
	}
}

// reportTime is how long a round makes reports. Each is a write of the control plane, so
// those of 50,000 instances that fit nowhere take 2 s on a free machine and half a minute
// on a busy one, and what fits would wait.
const reportTime = 2 * time.Second

// report reports refusals, and keeps the work that is worth another attempt. It returns
// the refusals without those that the next round reports, and how much work is kept.
// Work that was not reported is due again at once, and comes before what was reported; the
// attempt does not count. After a report that missed its deadline, report makes no more of
// them.
func (r *Runner) report(ctx context.Context, refused []Refusal, batch map[Key]*waiting) (told []Refusal, carried int) {
	slices.SortStableFunc(refused, func(a, b Refusal) int {
		return cmp.Compare(batch[a.Item.Key].attempts, batch[b.Item.Key].attempts)
	})
	until := r.o.Now().Add(reportTime)
	keep, putOff := make([]*Item, len(refused)), make([]bool, len(refused))
	var late atomic.Bool
	var skipped atomic.Int64
	parallel.Each(len(refused), r.o.Concurrency, func(i int) {
		if !late.Load() {
			if putOff[i] = !r.o.Now().Before(until); putOff[i] {
				keep[i] = refused[i].Item
				return
			}
			var err error
			keep[i], err = r.reportOne(ctx, &refused[i])
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrBusy) {
				late.Store(true)
			}
			return
		}
		skipped.Add(1)
		if refused[i].Invalid == nil {
			item := *refused[i].Item
			keep[i] = &item
		}
	})
	if n := skipped.Load(); n > 0 {
		r.o.Logger.Warn("failed placements were not reported because an earlier report was late", "items", n, "timeout", r.o.ReportTimeout)
		r.o.Metrics.Count("auction_reports_failed_total", n)
	}
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, item := range keep {
		if !putOff[i] {
			told = append(told, refused[i])
		}
		if item == nil {
			continue
		}
		w := batch[item.Key]
		if !putOff[i] {
			w.item = *item
			w.attempts++
		}
		again := r.waiting.work[item.Key] != nil // requested meanwhile
		switch {
		case w.attempts >= r.o.MaxAttempts || again || len(r.waiting.work) >= r.o.MaxWaiting:
			continue
		case putOff[i]:
			r.waiting.add(w)
		default:
			r.waiting.addRefused(w, now, r.backoff(w.attempts), lacksRoom(&refused[i]))
		}
		carried++
	}
	return told, carried
}

// reportOne returns the item to try again, or nil, and the error of the report.
func (r *Runner) reportOne(ctx context.Context, refusal *Refusal) (*Item, error) {
	item := *refusal.Item
	again, err := r.tell(ctx, refusal, &item)
	var lrpMoved *lrp.TransitionError
	var taskMoved *task.TransitionError
	switch {
	case errors.As(err, &lrpMoved), errors.As(err, &taskMoved):
		return nil, err
	case err != nil:
		r.o.Logger.Warn("a failed placement could not be reported", "work", item.Key.String(), "err", err)
		r.o.Metrics.Count("auction_reports_failed_total", 1)
	}
	if !again || refusal.Invalid != nil {
		return nil, err
	}
	return &item, err
}

// tell makes one report and sets the item's next attempt. It returns false for a
// task without retries.
func (r *Runner) tell(ctx context.Context, refusal *Refusal, item *Item) (again bool, err error) {
	type verdict struct {
		next  task.Attempt
		again bool
	}
	v, err := deadline.Call(ctx, r.reporter, r.o.ReportTimeout, func(ctx context.Context) (verdict, error) {
		if refusal.Item.Kind != Task {
			return verdict{again: true}, r.o.Reporter.FailActualLRP(ctx, refusal.Item.Key.LRP(), refusal.Error)
		}
		next, again, err := r.o.Reporter.RejectTask(ctx, refusal.Item.GUID, refusal.Item.Attempt, refusal.Error.String())
		return verdict{next, again}, err
	})
	if err != nil {
		return true, err
	}
	if item.Kind == Task {
		item.Attempt = v.next
	}
	return v.again, nil
}

// backoff is the wait after that many failed attempts.
func (r *Runner) backoff(attempts int) time.Duration {
	wait := r.o.MinBackoff
	for range attempts - 1 {
		if wait >= r.o.MaxBackoff {
			break
		}
		wait *= 2
	}
	return min(wait, r.o.MaxBackoff)
}

func (r *Runner) measure(round *Round, took time.Duration) {
	m := r.o.Metrics
	m.Count("auction_rounds_total", 1)
	m.Observe("auction_round_seconds", took.Seconds())
	m.Count("auction_performed_total", int64(len(round.Performed)))
	m.Count("auction_unknown_total", int64(len(round.Unknown)))
	for i := range round.Refused {
		m.Count("auction_refused_total", 1, Label{"reason", round.Refused[i].Error.Reason.String()})
	}
	m.Gauge("auction_silent_cells", float64(len(round.Silent)))
	m.Gauge("auction_failing_cells", float64(leftOut(round.Silent).of(Failing)))
	n, _ := r.Waiting()
	m.Gauge("auction_waiting", float64(n))
}
