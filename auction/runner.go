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
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// RunnerOptions are what a [Runner] works with. Zero values mean the defaults.
type RunnerOptions struct {
	// Directory and Reporter are required.
	Directory Directory
	Reporter  Reporter
	Policy    Policy
	// StateTimeout is how long a cell may take to tell its state before the
	// round goes on without it (default 2 s).
	StateTimeout time.Duration
	// SilentPause is for how long a cell that has missed a deadline is not
	// asked again, while there are others (default 30 s; negative means that
	// every round asks and waits).
	SilentPause time.Duration
	// PerformTimeout is how long a cell may take to answer for its work
	// (default 10 s).
	PerformTimeout time.Duration
	// Concurrency is how many cells are asked, and reports made, at a time
	// (default 256).
	Concurrency int
	// MinBackoff and MaxBackoff bound the wait before refused work is tried
	// again, which doubles with every attempt (default 5 s and 30 s).
	MinBackoff, MaxBackoff time.Duration
	// MaxAttempts is how often a request for work is tried (default 5).
	// Convergence repeats requests that are still needed.
	MaxAttempts int
	// MaxWaiting is how much work may wait (default 500,000). What comes
	// beyond it is dropped and counted; convergence requests it again.
	MaxWaiting int
	// Placed, if it is set, is told what was decided for each batch, and why,
	// before any cell is. It must not block.
	Placed func(Result)
	// Now is the clock (default time.Now).
	Now func() time.Time
	// Metrics and Logger may be nil.
	Metrics Metrics
	Logger  *slog.Logger
}

func (o RunnerOptions) withDefaults() (RunnerOptions, error) {
	var v executor.Validator
	v.Check(o.Directory != nil, "directory", "", "not nil")
	v.Check(o.Reporter != nil, "reporter", "", "not nil")
	o.Policy.Validate(v.In("policy"))
	o.StateTimeout = cmp.Or(o.StateTimeout, 2*time.Second)
	o.SilentPause = cmp.Or(o.SilentPause, 30*time.Second)
	o.PerformTimeout = cmp.Or(o.PerformTimeout, 10*time.Second)
	o.Concurrency = cmp.Or(max(o.Concurrency, 0), 256)
	o.MinBackoff = cmp.Or(o.MinBackoff, 5*time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 30*time.Second)
	o.MaxAttempts = cmp.Or(max(o.MaxAttempts, 0), 5)
	o.MaxWaiting = cmp.Or(max(o.MaxWaiting, 0), 500_000)
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
// on the cells that answer, hands it to them and reports what failed (000
// §Auction). It keeps its work in memory; what is lost with it is requested
// again by convergence.
type Runner struct {
	o    RunnerOptions
	wake chan struct{}
	// turn holds a token while no round runs.
	turn chan struct{}

	mu      sync.Mutex
	waiting map[Key]waiting
	// silent are the cells that missed a deadline, and until when they are
	// left in peace.
	silent map[string]time.Time
}

// waiting is work that is not in a batch.
type waiting struct {
	item     Item
	attempts int       // that failed
	due      time.Time // zero: at once
}

// NewRunner fails with a [*executor.ValidationError] if a required option is
// missing or the policy is invalid.
func NewRunner(o RunnerOptions) (*Runner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Runner{
		o: o, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		waiting: map[Key]waiting{}, silent: map[string]time.Time{},
	}
	r.turn <- struct{}{}
	return r, nil
}

// Request adds work to the next batch. Work that waits already is not there
// twice: the later request replaces the earlier one, and is due at once.
func (r *Runner) Request(items ...Item) {
	r.mu.Lock()
	dropped := 0
	for _, item := range items {
		if _, known := r.waiting[item.Key]; !known && len(r.waiting) >= r.o.MaxWaiting {
			dropped++
			continue
		}
		r.waiting[item.Key] = waiting{item: item}
	}
	n := len(r.waiting)
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

// Waiting is how much work waits for a round, and when the first of it is due:
// the zero time means at once.
func (r *Runner) Waiting() (n int, due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := true
	for _, w := range r.waiting {
		if first || w.due.Before(due) {
			due, first = w.due, false
		}
	}
	return len(r.waiting), due
}

// A Round says what became of a batch.
type Round struct {
	// Cells have told their state.
	Cells int
	// Silent cells got no work, as they did not.
	Silent []SilentCell
	// Performed work was taken by its cell.
	Performed []Placement
	// Refused work was reported: no cell has room for it, or its cell refused
	// it with lrp.RejectedByCell.
	Refused []Refusal
	// Unknown work may or may not have been taken, as the cell did not answer.
	// It is neither reported nor carried over; convergence finds out.
	Unknown []Placement
	// CarriedOver is how much of the refused work waits for another round.
	CarriedOver int
}

// A SilentCell is a cell that is left out of a round.
type SilentCell struct {
	CellID string
	// Err says why. It is ErrPaused for a cell that was not asked.
	Err error
}

// ErrPaused is of cells that are not asked, as they have missed a deadline
// lately.
var ErrPaused = errors.New("left out after a missed deadline")

// Round runs one batch of the work that is due: it asks the cells for their
// states, places, hands over, reports and carries over. Without work that is
// due it does nothing. Rounds do not overlap: a second call waits.
//
// An error means that the batch was not begun, and its work waits on; or that
// ctx ended, and what was in the batch by then is lost.
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
	// Taken only now, the batch has what came in meanwhile.
	batch := r.take()
	items := make([]Item, 0, len(batch))
	for _, w := range batch {
		items = append(items, w.item)
	}
	result, err := Place(fleet.states, items, r.o.Policy)
	if err != nil {
		r.Request(items...)
		return Round{}, err
	}
	if r.o.Placed != nil {
		r.o.Placed(result)
	}
	round := Round{Cells: len(fleet.states), Silent: fleet.silent}
	r.perform(ctx, fleet.clients, result.Placements, &round)
	round.Refused = append(round.Refused, result.Refusals...)
	round.CarriedOver = r.report(ctx, round.Refused, batch)
	r.measure(&round, r.o.Now().Sub(started))
	return round, ctx.Err()
}

// Plan says where the given work would go if it were requested now, together
// with the work that waits and is due. It asks the cells and sends nothing.
func (r *Runner) Plan(ctx context.Context, items ...Item) (Result, error) {
	fleet, err := r.gather(ctx)
	if err != nil {
		return Result{}, err
	}
	now := r.o.Now()
	r.mu.Lock()
	work := slices.Clone(items)
	for _, w := range r.waiting {
		if !now.Before(w.due) {
			work = append(work, w.item)
		}
	}
	r.mu.Unlock()
	return Place(fleet.states, work, r.o.Policy)
}

// Run runs a round whenever there is work, until ctx ends, and returns its
// error.
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

// pause is how long there is nothing to do.
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

// take removes the work that is due.
func (r *Runner) take() map[Key]waiting {
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := make(map[Key]waiting, len(r.waiting))
	for key, w := range r.waiting {
		if !now.Before(w.due) {
			batch[key] = w
			delete(r.waiting, key)
		}
	}
	return batch
}

// gathered is the fleet as far as it has answered.
type gathered struct {
	states  []CellState
	clients map[string]CellClient
	silent  []SilentCell
}

// gather asks all cells for their states.
func (r *Runner) gather(ctx context.Context) (gathered, error) {
	cells, err := r.o.Directory.Cells(ctx)
	if err != nil {
		return gathered{}, fmt.Errorf("listing the cells: %w", err)
	}
	g := gathered{clients: make(map[string]CellClient, len(cells))}
	asked, paused := r.choose(cells)
	g.silent = paused
	states, errs := make([]CellState, len(asked)), make([]error, len(asked))
	parallel.Each(len(asked), r.o.Concurrency, func(i int) {
		ctx, cancel := context.WithTimeout(ctx, r.o.StateTimeout)
		defer cancel()
		states[i], errs[i] = asked[i].Client.State(ctx)
		if errs[i] == nil && states[i].ID != asked[i].ID {
			errs[i] = fmt.Errorf("it says that it is cell %q", states[i].ID)
		}
	})
	if err := ctx.Err(); err != nil {
		return gathered{}, err
	}
	for i, cell := range asked {
		if errs[i] != nil {
			g.silent = append(g.silent, SilentCell{cell.ID, errs[i]})
			r.missed(cell.ID, errs[i])
			continue
		}
		g.states = append(g.states, states[i])
		g.clients[cell.ID] = cell.Client
	}
	slices.SortFunc(g.silent, func(a, b SilentCell) int { return strings.Compare(a.CellID, b.CellID) })
	return g, nil
}

// choose leaves out the cells that have missed a deadline lately, unless none
// would be left.
func (r *Runner) choose(cells []Cell) (asked []Cell, paused []SilentCell) {
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range cells {
		if until, ok := r.silent[c.ID]; ok && now.Before(until) {
			paused = append(paused, SilentCell{c.ID, ErrPaused})
			continue
		}
		delete(r.silent, c.ID)
		asked = append(asked, c)
	}
	if len(asked) == 0 {
		return cells, nil
	}
	return asked, paused
}

// missed notes a cell that has let us wait. One that fails at once costs
// nobody any time.
func (r *Runner) missed(cellID string, err error) {
	if r.o.SilentPause < 0 || !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent[cellID] = r.o.Now().Add(r.o.SilentPause)
}

// perform hands the placed work to its cells.
func (r *Runner) perform(ctx context.Context, clients map[string]CellClient, placed []Placement, round *Round) {
	var ids []string
	byCell := make(map[string][]Placement, len(clients))
	for _, p := range placed {
		if byCell[p.CellID] == nil {
			ids = append(ids, p.CellID)
		}
		byCell[p.CellID] = append(byCell[p.CellID], p)
	}
	rejections, errs := make([][]Rejection, len(ids)), make([]error, len(ids))
	parallel.Each(len(ids), r.o.Concurrency, func(i int) {
		id := ids[i]
		w := Work{CellID: id, Items: make([]Item, 0, len(byCell[id]))}
		for _, p := range byCell[id] {
			w.Items = append(w.Items, *p.Item)
		}
		ctx, cancel := context.WithTimeout(ctx, r.o.PerformTimeout)
		defer cancel()
		rejections[i], errs[i] = clients[id].Perform(ctx, w)
	})
	for i, id := range ids {
		if errs[i] != nil {
			r.missed(id, errs[i])
			r.o.Logger.Warn("a cell did not answer for its work; convergence finds out what became of it", "cell", id, "items", len(byCell[id]), "err", errs[i])
			round.Unknown = append(round.Unknown, byCell[id]...)
			continue
		}
		reasons := make(map[Key]string, len(rejections[i]))
		for _, rejection := range rejections[i] {
			reasons[rejection.Key] = rejection.Reason
		}
		for _, p := range byCell[id] {
			reason, rejected := reasons[p.Item.Key]
			if !rejected {
				round.Performed = append(round.Performed, p)
				continue
			}
			round.Refused = append(round.Refused, Refusal{Item: p.Item, Error: lrp.PlacementError{
				Reason: lrp.RejectedByCell, Detail: id + ": " + cmp.Or(reason, "no reason given"),
			}})
		}
	}
}

// report tells of every refusal and keeps the work that is worth another try.
// It returns how much that is.
func (r *Runner) report(ctx context.Context, refused []Refusal, batch map[Key]waiting) int {
	keep := make([]*Item, len(refused))
	parallel.Each(len(refused), r.o.Concurrency, func(i int) {
		keep[i] = r.reportOne(ctx, &refused[i])
	})
	now, carried := r.o.Now(), 0
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range keep {
		if item == nil {
			continue
		}
		w := waiting{item: *item, attempts: batch[item.Key].attempts + 1}
		w.due = now.Add(r.backoff(w.attempts))
		_, again := r.waiting[item.Key] // requested again meanwhile
		if w.attempts < r.o.MaxAttempts && !again && len(r.waiting) < r.o.MaxWaiting {
			r.waiting[item.Key] = w
			carried++
		}
	}
	return carried
}

// reportOne returns the item to try again, or nil.
func (r *Runner) reportOne(ctx context.Context, refusal *Refusal) *Item {
	item, err := *refusal.Item, error(nil)
	again := refusal.Invalid == nil
	if item.Kind == Task {
		var more bool
		var next task.Attempt
		if next, more, err = r.o.Reporter.RejectTask(ctx, item.GUID, item.Attempt, refusal.Error.String()); err == nil {
			item.Attempt, again = next, again && more
		}
	} else {
		err = r.o.Reporter.FailActualLRP(ctx, item.Key.LRP(), refusal.Error)
	}
	var lrpMoved *lrp.TransitionError
	var taskMoved *task.TransitionError
	switch {
	case errors.As(err, &lrpMoved), errors.As(err, &taskMoved):
		return nil
	case err != nil:
		r.o.Logger.Warn("a failed placement could not be reported", "work", item.Key.String(), "err", err)
		r.o.Metrics.Count("auction_reports_failed_total", 1)
	}
	if !again {
		return nil
	}
	return &item
}

// backoff is the wait after so many failed attempts.
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
	n, _ := r.Waiting()
	m.Gauge("auction_waiting", float64(n))
}
