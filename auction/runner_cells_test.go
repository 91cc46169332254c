package auction_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A hundred cells, of which the emptiest is a black hole. An instance is
// requested every 30 s for 20 min, as convergence does, until a cell takes it.
func TestACellThatOnlyFailsStopsGettingTheWork(t *testing.T) {
	for name, perform := range map[string]func(context.Context, auction.Work) ([]auction.Rejection, error){
		"it refuses everything": rejectAll("cannot make containers"),
		"it fails at once": func(context.Context, auction.Work) ([]auction.Rejection, error) {
			return nil, errors.New("connection refused")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ids []string
			for i := range 100 {
				ids = append(ids, fmt.Sprintf("cell-%02d", i))
			}
			h := newHouse(t, auction.RunnerOptions{}, ids...)
			for _, c := range h.cells[1:] {
				state := exampleCell(c.id, "z1")
				state.Remaining.MemoryMB /= 2
				c.state = func(context.Context) (auction.CellState, error) { return state, nil }
			}
			hole := h.cells[0]
			hole.perform = perform

			placed := map[auction.Key]time.Duration{}
			start, work := h.now, exampleWork(40)
			for n := range work {
				for range 6 {
					for i := range work[:n+1] {
						if _, ok := placed[work[i].Key]; !ok && (h.now.Sub(start)%(30*time.Second) == 0) {
							h.Request(work[i])
						}
					}
					for _, p := range h.round(t).Performed {
						placed[p.Item.Key] = h.now.Sub(start) - time.Duration(n)*30*time.Second
					}
					h.now = h.now.Add(5 * time.Second)
				}
			}
			handed := map[auction.Key]int{}
			for _, key := range hole.got {
				handed[key]++
			}
			for key, n := range handed {
				if n > 2 {
					t.Errorf("%v was handed to the black hole %d times, want at most 2", key, n)
				}
			}
			if len(hole.got) > 12 {
				t.Errorf("the black hole got work %d times, want at most 2 and then once each 2 min", len(hole.got))
			}
			if len(placed) < len(work)-1 {
				t.Errorf("%d of %d instances were placed", len(placed), len(work))
			}
		})
	}
}

func TestARoundSaysWhichCellsItLeavesOutAndWhy(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{MaxAttempts: 9}, "cell-1", "cell-2")
	full := exampleCell("cell-2", "z1")
	full.Remaining.MemoryMB = 0
	h.cells[1].state = func(context.Context) (auction.CellState, error) { return full, nil }
	h.cells[0].perform = rejectAll("cannot make containers")
	h.Request(exampleWork(1)...)
	h.round(t)
	h.now = h.now.Add(5 * time.Second)
	h.round(t)
	h.now = h.now.Add(10 * time.Second)
	r := h.round(t)

	if len(r.Silent) != 1 || r.Silent[0].CellID != "cell-1" || !errors.Is(r.Silent[0].Err, auction.ErrPaused) {
		t.Fatalf("left out are %v, want cell-1 in a pause", r.Silent)
	}
	want := "left out until 2026-01-01T12:02:02Z: the last 2 hand-overs of work to it have failed; the last failure: cannot make containers"
	var paused *auction.PausedError
	if errors.As(r.Silent[0].Err, &paused); paused == nil || paused.Reason != auction.Failing || paused.Failures != 2 || paused.Error() != want {
		t.Errorf("got %v, want %s", r.Silent[0].Err, want)
	}
	const why = "of 2 cells 1 left out after failures, 1 short of memory; the nearest, cell-2, lacks 2048 MiB of memory"
	if len(r.Refused) != 1 || r.Refused[0].Explanation == nil || r.Refused[0].Error.Detail != why {
		t.Errorf("refused are %v, want one with %q", r.Refused, why)
	}
	plan, err := h.Plan(t.Context(), exampleWork(2)[1])
	if err != nil || len(plan.Refusals) != 1 || plan.Refusals[0].Error.Detail != why {
		t.Errorf("planned are %v, %v; want one with %q", plan.Refusals, err, why)
	}
}

func TestACellThatTakesSomethingOrComesBackHasItsFailuresForgotten(t *testing.T) {
	for name, between := range map[string]func(t *testing.T, h *auctionHouse){
		"it took something": func(t *testing.T, h *auctionHouse) {
			h.cells[0].perform = nil
			h.Request(exampleWork(2)[1])
			h.round(t)
		},
		"it was not present": func(t *testing.T, h *auctionHouse) {
			cells := h.cells
			h.cells = cells[1:]
			h.Request(exampleWork(2)[1])
			h.round(t)
			h.cells = cells
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, auction.RunnerOptions{MaxAttempts: 1}, "cell-1", "cell-2")
			for i := range 2 {
				h.cells[0].perform = rejectAll("full")
				h.Request(exampleWork(1)...)
				if r := h.round(t); len(r.Refused) != 1 {
					t.Fatalf("attempt %d: got %d refused, want 1", i, len(r.Refused))
				}
				between(t, h)
			}
			h.Request(exampleWork(1)...)
			if r := h.round(t); len(r.Silent) != 0 || r.Cells != 2 {
				t.Errorf("left out are %v, want none", r.Silent)
			}
		})
	}
}

func TestWorkThatEveryCellRefusesPausesNoMoreThanHalfOfThem(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{MaxAttempts: 1}, "cell-1", "cell-2", "cell-3")
	for _, c := range h.cells {
		c.perform = rejectAll("no such image")
	}
	for range 20 {
		h.Request(exampleWork(1)...)
		if r := h.round(t); r.Cells < 2 {
			t.Fatalf("%d of 3 cells were asked, left out are %v", r.Cells, r.Silent)
		}
		h.now = h.now.Add(time.Second)
	}
}

// TestADeafCellHoldsUpNoRound has a cell whose client ignores its context and
// never returns.
func TestADeafCellHoldsUpNoRound(t *testing.T) {
	for name, deafen := range map[string]func(c *scriptedCell, release chan struct{}){
		"when it is asked for its state": func(c *scriptedCell, release chan struct{}) {
			c.state = func(context.Context) (auction.CellState, error) {
				<-release
				return exampleCell(c.id, "z1"), nil
			}
		},
		"when it gets work": func(c *scriptedCell, release chan struct{}) {
			c.perform = func(context.Context, auction.Work) ([]auction.Rejection, error) {
				<-release
				return nil, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				release := make(chan struct{})
				h := newHouse(t, auction.RunnerOptions{SilentPause: -1, FailureHalfLife: -1}, "cell-1", "cell-2")
				deafen(h.cells[0], release)
				var last auction.Round
				for i := range 10 {
					began := time.Now()
					work := exampleWork(2 * (i + 1))[2*i:] // one for each cell
					h.Request(work...)
					last = h.round(t)
					if took := time.Since(began); took > 12*time.Second {
						t.Fatalf("a round took %v, want at most the two deadlines", took)
					}
					if len(last.Performed)+len(last.Unknown) != 2 {
						t.Errorf("got %d performed and %d unknown, want 2 in all", len(last.Performed), len(last.Unknown))
					}
				}
				synctest.Wait()
				if len(last.Silent) != 1 || !errors.Is(last.Silent[0].Err, auction.ErrBusy) {
					t.Errorf("left out are %v, want cell-1 with its earlier calls", last.Silent)
				}
				if calls := h.cells[0].asked; name == "when it is asked for its state" && calls != 4 {
					t.Errorf("the deaf cell was asked %d times, want 4 calls that never return", calls)
				}
				close(release)
				synctest.Wait()
				h.Request(exampleWork(22)[20:]...)
				if last = h.round(t); len(last.Silent) != 0 || len(last.Performed) != 2 {
					t.Errorf("once it hears, left out are %v and %d performed; want none and 2", last.Silent, len(last.Performed))
				}
			})
		})
	}
}

func TestACellWhosePresenceFlapsIsNotCalledMoreOftenThanABusyOne(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		h := newHouse(t, auction.RunnerOptions{Concurrency: 8}, "cell-1", "cell-2")
		deaf, release := h.cells[0], make(chan struct{})
		deaf.state = func(context.Context) (auction.CellState, error) {
			<-release
			return exampleCell("cell-1", "z1"), nil
		}
		all := h.cells
		for i := range 20 {
			h.cells = all[i%2:] // every other round is without it
			h.Request(exampleWork(20)[i])
			h.round(t)
			h.now = h.now.Add(time.Minute)
		}
		synctest.Wait()
		if deaf.asked != 4 {
			t.Errorf("the deaf cell was asked %d times, want 4 calls that never return", deaf.asked)
		}
		close(release)
	})
}

// deafBooks is a Directory and a Reporter whose calls hang until released.
type deafBooks struct {
	*auctionHouse
	release   chan struct{}
	directory bool
	reports   int
}

func (d *deafBooks) Cells(ctx context.Context) ([]auction.Cell, error) {
	if d.directory {
		<-d.release
	}
	return d.auctionHouse.Cells(ctx)
}

func (d *deafBooks) FailActualLRP(context.Context, lrp.Key, lrp.PlacementError) error {
	d.mu.Lock()
	d.reports++
	d.mu.Unlock()
	<-d.release
	return nil
}

func (d *deafBooks) RejectTask(context.Context, string, task.Attempt, string) (next task.Attempt, again bool, err error) {
	panic("no tasks here")
}

func newDeafHouse(t *testing.T, directory bool, cells ...string) *deafBooks {
	d := &deafBooks{auctionHouse: newHouse(t, auction.RunnerOptions{}, cells...), release: make(chan struct{}), directory: directory}
	r, err := auction.NewRunner(auction.RunnerOptions{Directory: d, Reporter: d, Concurrency: 8, Now: func() time.Time { return d.now }})
	if err != nil {
		t.Fatal(err)
	}
	d.Runner = r
	return d
}

func TestADeafDirectoryHoldsUpNoRound(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		d := newDeafHouse(t, true, "cell-1")
		d.Request(exampleWork(1)...)
		for range 4 {
			began := time.Now()
			if _, err := d.Round(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
				t.Errorf("got %v after %v, want the deadline's error after 10 s", err, time.Since(began))
			}
		}
		if _, err := d.Round(t.Context()); !errors.Is(err, auction.ErrBusy) {
			t.Errorf("got %v, want %v", err, auction.ErrBusy)
		}
		close(d.release)
		synctest.Wait()
		if r, err := d.Round(t.Context()); err != nil || len(r.Performed) != 1 {
			t.Errorf("got %d performed and %v, want the work that has waited", len(r.Performed), err)
		}
	})
}

func TestADeafReporterHoldsUpARoundForOneDeadlineAndLosesNoWork(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		d := newDeafHouse(t, false, "cell-1")
		work := exampleWork(100)
		for i := range work {
			work[i].MemoryMB = 1 << 30
		}
		d.Request(work...)
		for _, want := range []struct {
			took    time.Duration
			reports int
		}{{10 * time.Second, 8}, {0, 8}} {
			began := time.Now()
			r, err := d.Round(t.Context())
			took := time.Since(began)
			synctest.Wait()
			if err != nil || r.CarriedOver != len(work) || took != want.took || d.reports != want.reports {
				t.Errorf("%d are carried over after %v and %d reports (%v); want all after %v and %d",
					r.CarriedOver, took, d.reports, err, want.took, want.reports)
			}
			d.now = d.now.Add(30 * time.Second)
		}
		close(d.release)
	})
}

func TestWithAConcurrencyOfOneEveryCallIsInTheCallersGoroutine(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		h := newHouse(t, auction.RunnerOptions{Concurrency: 1}, "cell-1")
		h.cells[0].state = func(context.Context) (auction.CellState, error) {
			time.Sleep(time.Minute)
			return exampleCell("cell-1", "z1"), nil
		}
		h.Request(exampleWork(1)...)
		if r := h.round(t); len(r.Performed) != 1 || strings.Contains(fmt.Sprint(r.Silent), "cell-1") {
			t.Errorf("got %d performed, left out are %v; want the late answer to count", len(r.Performed), r.Silent)
		}
	})
}

func TestACellThatRefusesAFieldIsPassedOverAndTheFieldsStayWithTheAuctioneer(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "plain", "real")
	h.cells[0].state = func(context.Context) (auction.CellState, error) {
		s := exampleCell("plain", "z1")
		s.RefusedFields = []string{"egress_rules"}
		return s, nil
	}
	var got []auction.Item
	h.cells[1].perform = func(_ context.Context, w auction.Work) ([]auction.Rejection, error) {
		got = append(got, w.Items...)
		return nil, nil
	}
	var items []auction.Item
	for i := range 4 {
		item := instance("web", i, 50)
		item.Fields = []string{"egress_rules"}
		items = append(items, item)
	}
	h.Request(items...)
	h.round(t)
	if len(h.cells[0].got) > 0 || len(got) != len(items) {
		t.Errorf("the cell that refuses the field got %d items, the other %d of %d", len(h.cells[0].got), len(got), len(items))
	}
	for _, item := range got {
		if item.Fields != nil {
			t.Errorf("the cell was sent the fields %q", item.Fields)
		}
	}
	if items[0].Fields == nil {
		t.Error("the caller's item has lost its fields")
	}
}

// A cell of 0.1 refuses work with members that it does not know.
func TestOnlyACellThatTakesReasonsGetsThem(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "new", "old")
	handed := map[string]auction.Work{}
	for i, c := range h.cells {
		state := exampleCell(c.id, "z1")
		state.TakesReasons = i == 0
		c.state = func(context.Context) (auction.CellState, error) { return state, nil }
		c.perform = func(_ context.Context, w auction.Work) ([]auction.Rejection, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			handed[c.id] = w
			return nil, nil
		}
	}
	h.Request(exampleWork(4)...)
	h.round(t)
	if w := handed["old"]; len(w.Items) != 2 || len(w.Reasons) != 0 || w.Reason(0) != "" {
		t.Errorf("the old cell gets %+v", w)
	}
	w := handed["new"]
	if len(w.Items) != 2 || len(w.Reasons) != 2 {
		t.Fatalf("the new cell gets %+v", w)
	}
	for i := range w.Items {
		if !strings.HasPrefix(w.Reason(i), "score 0.") || !strings.Contains(w.Reason(i), " old; parts against old: ") {
			t.Errorf("%v is here because of %q", w.Items[i].Key, w.Reason(i))
		}
	}
}
