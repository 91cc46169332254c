package auction_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A scriptedCell answers as it is told.
type scriptedCell struct {
	id      string
	state   func(ctx context.Context) (auction.CellState, error)
	perform func(ctx context.Context, w auction.Work) ([]auction.Rejection, error)

	mu    sync.Mutex
	asked int
	got   []auction.Key
}

func (c *scriptedCell) State(ctx context.Context) (auction.CellState, error) {
	c.mu.Lock()
	c.asked++
	c.mu.Unlock()
	if c.state != nil {
		return c.state(ctx)
	}
	return exampleCell(c.id, "z1"), nil
}

func (c *scriptedCell) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	c.mu.Lock()
	for _, item := range w.Items {
		c.got = append(c.got, item.Key)
	}
	c.mu.Unlock()
	if c.perform != nil {
		return c.perform(ctx, w)
	}
	return nil, nil
}

func (*scriptedCell) StopLRP(context.Context, lrp.Key, lrp.InstanceKey) error { return nil }
func (*scriptedCell) CancelTask(context.Context, string, string) error        { return nil }

// An auctionHouse is a Runner, its cells, its clock and what it reported.
type auctionHouse struct {
	*auction.Runner
	now     time.Time
	cells   []*scriptedCell
	listErr error
	// answer is what the next reports are answered with, and each takes this long.
	answer error
	takes  time.Duration

	mu      sync.Mutex
	reports []string
}

func (h *auctionHouse) Cells(context.Context) ([]auction.Cell, error) {
	var cells []auction.Cell
	for _, c := range h.cells {
		cells = append(cells, auction.Cell{ID: c.id, Client: c})
	}
	return cells, h.listErr
}

func (h *auctionHouse) FailActualLRP(_ context.Context, key lrp.Key, why lrp.PlacementError) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, fmt.Sprintf("%s/%d %s", key.ProcessGUID, key.Index, why.Reason))
	h.now = h.now.Add(h.takes)
	return h.answer
}

func (h *auctionHouse) RejectTask(_ context.Context, guid string, a task.Attempt, reason string) (task.Attempt, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, fmt.Sprintf("task %s attempt %d %s", guid, a.Rejections, reason))
	a.Rejections++
	return a, a.Rejections <= 2, h.answer
}

func newHouse(t *testing.T, o auction.RunnerOptions, cells ...string) *auctionHouse {
	t.Helper()
	h := &auctionHouse{now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	for _, id := range cells {
		h.cells = append(h.cells, &scriptedCell{id: id})
	}
	o.Directory, o.Reporter, o.Now = h, h, func() time.Time { return h.now }
	r, err := auction.NewRunner(o)
	if err != nil {
		t.Fatal(err)
	}
	h.Runner = r
	return h
}

func (h *auctionHouse) round(t *testing.T) auction.Round {
	t.Helper()
	r, err := h.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// settledRound is a round in virtual time, after which calls that it abandoned at
// their deadline have returned too.
func (h *auctionHouse) settledRound(t *testing.T) auction.Round {
	t.Helper()
	r := h.round(t)
	synctest.Wait()
	return r
}

func rejectAll(reason string) func(context.Context, auction.Work) ([]auction.Rejection, error) {
	return func(_ context.Context, w auction.Work) (out []auction.Rejection, _ error) {
		for _, item := range w.Items {
			out = append(out, auction.Rejection{Key: item.Key, Reason: reason})
		}
		return out, nil
	}
}

func untilDeadline(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestWorkThatIsRequestedTwiceIsHandedOverOnce(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1", "cell-2")
	work := exampleWork(2)
	h.Request(work...)
	h.Request(work...)
	if r := h.round(t); len(r.Performed) != 2 || r.Cells != 2 {
		t.Errorf("got %d performed on %d cells, want 2 on 2", len(r.Performed), r.Cells)
	}
	if n := len(h.cells[0].got) + len(h.cells[1].got); n != 2 {
		t.Errorf("the cells got %d items, want 2", n)
	}
	if r := h.round(t); len(r.Performed) != 0 || h.cells[0].asked != 1 {
		t.Errorf("a round without work asked the cells")
	}
}

func TestWorkThatComesWhileTheCellsAreAskedIsInTheBatch(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1")
	work := exampleWork(2)
	h.cells[0].state = func(context.Context) (auction.CellState, error) {
		h.Request(work[1])
		return exampleCell("cell-1", "z1"), nil
	}
	h.Request(work[0])
	if r := h.round(t); len(r.Performed) != 2 {
		t.Errorf("got %d performed, want 2", len(r.Performed))
	}
}

func TestRefusedWorkIsReportedOnceForEachAttemptAndCarriedOver(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{MaxAttempts: 3}, "cell-1")
	h.cells[0].perform = rejectAll("evacuating")
	h.Request(exampleWork(1)...)
	if r := h.round(t); len(r.Refused) != 1 || r.CarriedOver != 1 {
		t.Fatalf("got %d refused and %d carried over, want 1 and 1", len(r.Refused), r.CarriedOver)
	}
	h.now = h.now.Add(4 * time.Second)
	if r := h.round(t); len(r.Refused) != 0 {
		t.Error("the work was tried again before its wait was over")
	}
	h.now = h.now.Add(time.Second)
	h.round(t)
	h.now = h.now.Add(10 * time.Second)
	if r := h.round(t); len(r.Refused) != 1 || r.CarriedOver != 0 {
		t.Errorf("got %d refused and %d carried over, want the last attempt to end it", len(r.Refused), r.CarriedOver)
	}
	want := slices.Repeat([]string{"web/0 rejected by the cell"}, 3)
	if !slices.Equal(h.reports, want) {
		t.Errorf("got reports %q, want %q", h.reports, want)
	}
}

func TestReportsOfMuchThatFitsNowhereDoNotHoldUpWhatFits(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{MinBackoff: time.Minute, MaxBackoff: time.Minute, MaxAttempts: 2, Concurrency: 1}, "cell-1")
	work := exampleWork(11)
	for i := range 10 {
		work[i].MemoryMB = 1 << 20
	}
	h.Request(work[:10]...)
	h.takes = 500 * time.Millisecond
	began := h.now
	if r := h.round(t); len(h.reports) != 4 || len(r.Refused) != 4 || r.CarriedOver != 10 {
		t.Fatalf("%d reports in a round, %d refused, and %d carried over, want 4 in its 2 s, as many, and all 10", len(h.reports), len(r.Refused), r.CarriedOver)
	}
	h.Request(work[10])
	if r := h.round(t); len(r.Performed) != 1 {
		t.Error("what fits is not placed in the next round")
	}
	h.round(t)
	if n, due := h.Waiting(); len(h.reports) != 10 || n != 10 || due.Before(began.Add(time.Minute)) {
		t.Errorf("after three rounds, %d of 10 are reported, and %d wait until %v", len(h.reports), n, due.Sub(began))
	}
	slices.Sort(h.reports)
	if len(slices.Compact(h.reports)) != 10 {
		t.Errorf("some are reported twice: %q", h.reports)
	}
	h.now = h.now.Add(time.Hour)
	for range 3 {
		h.round(t)
	}
	if n, _ := h.Waiting(); n != 0 {
		t.Errorf("%d still wait after two attempts; to be put off is none", n)
	}
}

func TestATaskIsTriedAgainAsItsNextAttemptWhileItHasRetries(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{MinBackoff: time.Second, MaxBackoff: time.Second}, "cell-1")
	h.Request(auction.NewTask(&task.Task{
		GUID: "job", Domain: "jobs",
		Definition:      task.Definition{Resources: executor.Resources{MemoryMB: 99999}, RunInfo: exampleInfo},
		ModificationTag: task.ModificationTag{Epoch: 7},
	}, h.now))
	for range 5 {
		h.round(t)
		h.now = h.now.Add(time.Second)
	}
	if len(h.reports) != 3 {
		t.Fatalf("got %d reports, want 3: %q", len(h.reports), h.reports)
	}
	for i, report := range h.reports {
		if want := fmt.Sprintf("task job attempt %d insufficient resources", i); report[:len(want)] != want {
			t.Errorf("report %d is %q, want it to begin with %q", i, report, want)
		}
	}
}

func TestWorkWhoseCellDoesNotAnswerIsNeitherReportedNorCarriedOver(t *testing.T) {
	testenv.Bubble(t, workWhoseCellDoesNotAnswerIsNeitherReportedNorCarriedOver)
}

func workWhoseCellDoesNotAnswerIsNeitherReportedNorCarriedOver(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{PerformTimeout: time.Millisecond}, "cell-1")
	h.cells[0].perform = func(ctx context.Context, _ auction.Work) ([]auction.Rejection, error) {
		return nil, untilDeadline(ctx)
	}
	h.Request(exampleWork(1)...)
	r := h.settledRound(t)
	if len(r.Unknown) != 1 || len(r.Refused) != 0 || len(h.reports) != 0 {
		t.Errorf("got %d unknown, %d refused and reports %q; want only 1 unknown", len(r.Unknown), len(r.Refused), h.reports)
	}
	if n, _ := h.Waiting(); n != 0 {
		t.Errorf("%d items wait, want none", n)
	}
}

func TestASlowCellIsDroppedFromTheRoundAndNotAskedForAWhile(t *testing.T) {
	testenv.Bubble(t, aSlowCellIsDroppedFromTheRoundAndNotAskedForAWhile)
}

func aSlowCellIsDroppedFromTheRoundAndNotAskedForAWhile(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{StateTimeout: time.Millisecond}, "cell-1", "cell-2")
	slow := h.cells[0]
	slow.state = func(ctx context.Context) (auction.CellState, error) {
		return auction.CellState{}, untilDeadline(ctx)
	}
	work := exampleWork(4)
	h.Request(work[0])
	r := h.settledRound(t)
	if len(r.Performed) != 1 || len(r.Silent) != 1 || !errors.Is(r.Silent[0].Err, context.DeadlineExceeded) {
		t.Fatalf("got %d performed and silent cells %v", len(r.Performed), r.Silent)
	}
	h.Request(work[1])
	if r = h.settledRound(t); slow.asked != 1 || !errors.Is(r.Silent[0].Err, auction.ErrPaused) {
		t.Errorf("the cell was asked %d times, want 1; silent: %v", slow.asked, r.Silent)
	}
	slow.state = nil
	h.now = h.now.Add(30 * time.Second)
	h.Request(work[2])
	if r = h.settledRound(t); slow.asked != 2 || r.Cells != 2 {
		t.Errorf("after the pause the cell was asked %d times in all, want 2", slow.asked)
	}
}

func TestCellsInAPauseAreAskedWhenThereAreNoOthers(t *testing.T) {
	testenv.Bubble(t, cellsInAPauseAreAskedWhenThereAreNoOthers)
}

func cellsInAPauseAreAskedWhenThereAreNoOthers(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{StateTimeout: time.Millisecond}, "cell-1")
	h.cells[0].state = func(ctx context.Context) (auction.CellState, error) {
		return auction.CellState{}, untilDeadline(ctx)
	}
	h.Request(exampleWork(1)...)
	h.settledRound(t)
	if want := []string{"web/0 no cell answered"}; !slices.Equal(h.reports, want) {
		t.Errorf("got reports %q, want %q", h.reports, want)
	}
	h.cells[0].state = nil
	h.now = h.now.Add(5 * time.Second)
	if r := h.round(t); len(r.Performed) != 1 {
		t.Error("the only cell was left out")
	}
}

func TestACellThatIsAnotherGetsNoWork(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1")
	h.cells[0].state = func(context.Context) (auction.CellState, error) { return exampleCell("cell-2", "z1"), nil }
	h.Request(exampleWork(1)...)
	if r := h.round(t); len(r.Performed) != 0 || len(r.Silent) != 1 {
		t.Errorf("got %d performed, want none", len(r.Performed))
	}
}

func TestPlanSendsNothingAndAgreesWithTheRound(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1", "cell-2")
	work := exampleWork(3)
	h.Request(work[:2]...)
	plan, err := h.Plan(t.Context(), work[2])
	if err != nil {
		t.Fatal(err)
	}
	if len(h.cells[0].got)+len(h.cells[1].got)+len(h.reports) != 0 {
		t.Fatal("the plan was carried out")
	}
	h.Request(work[2])
	planned, performed := map[auction.Key]string{}, map[auction.Key]string{}
	for _, p := range plan.Placements {
		planned[p.Item.Key] = p.CellID
	}
	for _, p := range h.round(t).Performed {
		performed[p.Item.Key] = p.CellID
	}
	if fmt.Sprint(planned) != fmt.Sprint(performed) || len(planned) != 3 {
		t.Errorf("planned %v, performed %v", planned, performed)
	}
}

func TestWorkWaitsWhileNobodyKnowsTheCells(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1")
	h.listErr = errors.New("the store is down")
	h.Request(exampleWork(1)...)
	if _, err := h.Round(t.Context()); !errors.Is(err, h.listErr) {
		t.Fatalf("got %v, want the directory's error", err)
	}
	h.listErr = nil
	if r := h.round(t); len(r.Performed) != 1 {
		t.Error("the work was lost")
	}
}

func TestWorkThatIsNoLongerWantedIsForgotten(t *testing.T) {
	for name, test := range map[string]struct {
		answer  error
		carried int
	}{
		"refused":         {&lrp.TransitionError{Err: lrp.ErrCannotBeFailed}, 0},
		"store is down":   {errors.New("down"), 1},
		"reported":        {nil, 1},
		"the task is old": {&task.TransitionError{Err: task.ErrOtherAttempt}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, auction.RunnerOptions{}, "cell-1")
			h.cells[0].perform = rejectAll("full")
			h.answer = test.answer
			h.Request(exampleWork(1)...)
			if r := h.round(t); r.CarriedOver != test.carried {
				t.Errorf("got %d carried over, want %d", r.CarriedOver, test.carried)
			}
		})
	}
}

func TestInvalidWorkIsReportedAndNeverTriedAgain(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1")
	item := exampleWork(1)[0]
	item.RootFS = "nonsense"
	h.Request(item)
	if r := h.round(t); len(h.reports) != 1 || r.CarriedOver != 0 {
		t.Errorf("got reports %q and %d carried over", h.reports, r.CarriedOver)
	}
}

func TestWorkWaitsUpToTheLimitWhichIsAMillionAndFurtherWorkIsDroppedAndCounted(t *testing.T) {
	const limit = 100
	m := counts{}
	h := newHouse(t, auction.RunnerOptions{MaxWaiting: limit, Metrics: m}, "cell-1")
	work := exampleWork(limit + 1)
	for range 2 { // what waits already is replaced
		h.Request(work[:limit]...)
		if n, _ := h.Waiting(); n != limit || m["auction_dropped_total"] != 0 {
			t.Errorf("%d items wait and %d are dropped, want %d and none", n, m["auction_dropped_total"], limit)
		}
	}
	h.Request(work...)
	if n, _ := h.Waiting(); n != limit || m["auction_dropped_total"] != 1 {
		t.Errorf("%d items wait and %d are dropped, want %d and 1", n, m["auction_dropped_total"], limit)
	}

	if o, err := (auction.RunnerOptions{Directory: h, Reporter: h}).WithDefaults(); err != nil || o.MaxWaiting != 1_000_000 {
		t.Errorf("by default %d items may wait, want a million (%v)", o.MaxWaiting, err)
	}
}

// counts are the counters of a Runner in one goroutine.
type counts map[string]int64

func (c counts) Count(name string, n int64, _ ...auction.Label) { c[name] += n }
func (counts) Gauge(string, float64, ...auction.Label)          {}
func (counts) Observe(string, float64, ...auction.Label)        {}

func TestRunPlacesWhatIsRequestedUntilItsContextEnds(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1")
	performed := make(chan int)
	h.cells[0].perform = func(_ context.Context, w auction.Work) ([]auction.Rejection, error) {
		performed <- len(w.Items)
		return nil, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	h.Request(exampleWork(2)...)
	if n := <-performed; n != 2 {
		t.Errorf("got %d items, want 2", n)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestARunnerNeedsADirectoryAndAReporter(t *testing.T) {
	if _, err := auction.NewRunner(auction.RunnerOptions{}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v, want a validation error", err)
	}
}
