package auction_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/lrp"
)

// roomFor lets the only cell of the house have room for as many containers of any size.
func (h *auctionHouse) roomFor(containers *int64) {
	h.cells[0].state = func(context.Context) (auction.CellState, error) {
		return with(roomy("cell-1", "z1"), func(c *auction.CellState) { c.Total.Containers, c.Remaining.Containers = 300, *containers }), nil
	}
}

func TestRefusedWorkGetsAPlaceThatBecomesFreeBeforeItIsDue(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1")
	free := int64(0)
	h.roomFor(&free)
	neighbours := of("blog", taskItem("z", 64))
	h.Request(neighbours)
	h.round(t)
	_, due := h.Waiting()
	for second := range 4 { // it is due after 5 s
		h.now = h.now.Add(time.Second)
		for i := range 250 {
			h.Request(of("evil", taskItem(fmt.Sprintf("a-%d-%d", second, i), 512)))
		}
		if second == 3 {
			free = 1
		}
		r := h.round(t)
		if second < 3 {
			if len(r.Performed) != 0 || len(r.Refused) != 250 {
				t.Fatalf("second %d: %d are placed and %d refused, want none and 250", second, len(r.Performed), len(r.Refused))
			}
			if _, next := h.Waiting(); next != due {
				t.Fatalf("second %d: the first work is due at %v, want %v", second, next, due)
			}
			continue
		}
		if len(r.Performed) != 1 || r.Performed[0].Item.Key != neighbours.Key {
			t.Errorf("the free place goes to %v, want %v", r.Performed, neighbours.Key)
		}
	}
	told := 0
	for _, report := range h.reports {
		if len(report) > 7 && report[:7] == "task z " {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the refusal of the neighbour's task is reported %d times, want once", told)
	}
}

func TestEarlyWorkThatItsCellRefusesWaitsUntilItIsDue(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1")
	free := int64(0)
	h.roomFor(&free)
	h.Request(of("blog", taskItem("z", 64)))
	h.round(t)
	free = 9
	h.cells[0].perform = rejectAll("no")
	for range 2 {
		h.now = h.now.Add(time.Second)
		h.Request(of("evil", taskItem("a", 512)))
		h.round(t)
	}
	given := 0
	for _, key := range h.cells[0].got {
		if key.GUID == "z" {
			given++
		}
	}
	if given != 1 || len(h.reports) != 3 {
		t.Errorf("the cell got the work %d times, and the reports are %q; want once, and one report of it", given, h.reports)
	}
	h.cells[0].perform = nil
	h.now = h.now.Add(3 * time.Second)
	if r := h.round(t); len(r.Performed) != 1 || r.Performed[0].Item.GUID != "z" {
		t.Errorf("%v is placed when it is due, want the task", r.Performed)
	}
}

func TestEarlyWorkDoesNotComeByItsGroupBeforeWorkOfADomainWithLess(t *testing.T) {
	for _, tt := range []struct {
		name   string
		due    auction.Item
		domain string // that gets the place
	}{
		{"the task of a domain with less comes first", of("blog", taskItem("z", 64)), "blog"},
		{"in one group the domain with less comes first in its turn", of("blog", instance("z", 0, 64)), "blog"},
		{"a later group of its own domain comes later", of("evil", taskItem("z", 64)), "evil"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, auction.RunnerOptions{Concurrency: 1}, "cell-1")
			free := int64(0)
			h.roomFor(&free)
			for i := range 50 {
				h.Request(of("evil", instance(fmt.Sprintf("a%d", i), 0, 512)))
			}
			h.round(t)
			h.now = h.now.Add(time.Second)
			free = 1
			h.Request(tt.due)
			r := h.round(t)
			if len(r.Performed) != 1 || r.Performed[0].Item.Domain != tt.domain {
				t.Fatalf("the free place goes to %v, want work of %s", r.Performed, tt.domain)
			}
			if mine := r.Performed[0].Item.Key == tt.due.Key; mine != (tt.domain == "blog") {
				t.Errorf("the free place goes to %v", r.Performed[0].Item.Key)
			}
		})
	}
}

func TestAPlanSaysWhatBecomesOfWorkThatWaitsAlready(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1")
	free := int64(0)
	h.roomFor(&free)
	task := of("blog", taskItem("z", 64))
	h.Request(task)
	h.round(t)
	h.now = h.now.Add(time.Second)
	if plan, err := h.Plan(t.Context(), task); err != nil || len(plan.Refusals) != 1 || plan.Refusals[0].Item.Key != task.Key {
		t.Errorf("on a full cell the plan is %v, %v; want one refusal", plan, err)
	}
	if plan, err := h.Plan(t.Context()); err != nil || len(plan.Refusals) != 0 {
		t.Errorf("the plan for what waits is %v, %v; want no refusal of what is not due", plan, err)
	}
	free = 1
	if plan, err := h.Plan(t.Context(), task); err != nil || len(plan.Placements) != 1 || len(plan.Refusals) != 0 {
		t.Errorf("with a free place the plan is %v, %v; want one placement", plan, err)
	}
}

// An earlyModel says by plain lists which work takes part in a round.
type earlyModel struct {
	requested []auction.Item
	waiting   []modelItem // in the order of their domains' queues
	domains   []string    // in their turn
}

type modelItem struct {
	item     auction.Item
	attempts int
	due      time.Time
}

// leave takes out an item, and its domain if it was the last.
func (m *earlyModel) leave(key auction.Key) {
	m.waiting = slices.DeleteFunc(m.waiting, func(w modelItem) bool { return w.item.Key == key })
	if m.work(key.Domain) == 0 {
		m.domains = slices.DeleteFunc(m.domains, func(d string) bool { return d == key.Domain })
	}
}

func (m *earlyModel) work(domain string) (n int) {
	for _, w := range m.waiting {
		if w.item.Domain == domain {
			n++
		}
	}
	return n
}

// round returns the work that is due, and what takes part early.
func (m *earlyModel) round(now time.Time) (due, early []modelItem) {
	for _, item := range m.requested {
		due = append(due, modelItem{item: item})
	}
	m.requested = nil
	for _, w := range slices.Clone(m.waiting) {
		if !now.Before(w.due) {
			due = append(due, w)
			m.leave(w.item.Key)
		}
	}
	if len(due) == 0 {
		return nil, nil
	}
	queues, works := map[string][]modelItem{}, map[string]int{}
	for _, w := range m.waiting {
		queues[w.item.Domain] = append(queues[w.item.Domain], w)
	}
	for _, w := range slices.Concat(m.waiting, due) {
		works[w.item.Domain]++
	}
	var looked []modelItem
	for lap := range m.waiting {
		for _, domain := range m.domains {
			if lap < len(queues[domain]) && len(looked) < 100 {
				looked = append(looked, queues[domain][lap])
			}
		}
	}
	work := func(domain string) int { return works[domain] }
	group := func(i auction.Item) int {
		switch {
		case i.Kind == auction.Task:
			return 1
		case i.Index == 0:
			return 0
		}
		return i.Index + 1
	}
	// What takes part of the domains with less work decides about those with more.
	slices.SortStableFunc(looked, func(x, y modelItem) int { return cmp.Compare(work(x.item.Domain), work(y.item.Domain)) })
	for _, w := range looked {
		if !slices.ContainsFunc(slices.Concat(due, early), func(other modelItem) bool {
			return work(other.item.Domain) < work(w.item.Domain) && group(w.item) < group(other.item)
		}) {
			early = append(early, w)
		}
	}
	var seen []modelItem
	for _, domain := range slices.Clone(m.domains) {
		for _, w := range looked {
			if w.item.Domain == domain {
				m.waiting = slices.DeleteFunc(m.waiting, func(x modelItem) bool { return x.item.Key == w.item.Key })
				seen = append(seen, w)
			}
		}
	}
	m.waiting = append(m.waiting, seen...)
	// The domains come in the order of their last items that were looked at.
	last := map[string]int{}
	for _, domain := range m.domains {
		for _, w := range looked {
			if w.item.Domain == domain {
				last[domain]++
			}
		}
	}
	slices.SortStableFunc(m.domains, func(x, y string) int { return cmp.Compare(last[x], last[y]) })
	return due, early
}

func TestTheWorkThatTakesPartInRoundsIsThatOfThePlainModel(t *testing.T) {
	problems(t, 100, func(t *testing.T, c chooser) {
		var took auction.Result
		h := newHouse(t, auction.RunnerOptions{MaxAttempts: 3, Concurrency: 1, Placed: func(r auction.Result) { took = r }}, "cell-1")
		free, m, domains, most := int64(0), earlyModel{}, 1+c(6), one(c, 3, 30, 150)
		h.roomFor(&free)
		for step := range 40 {
			for range c(most) {
				domain, guid := fmt.Sprintf("domain-%d", c(domains)), fmt.Sprintf("%03d", c(200))
				item := of(domain, one(c, instance(guid, c(3), int64(1+c(900))), instance(guid, 0, 64)))
				h.Request(item)
				m.leave(item.Key)
				m.requested = slices.DeleteFunc(m.requested, func(i auction.Item) bool { return i.Key == item.Key })
				m.requested = append(m.requested, item)
			}
			free = int64(one(c, 0, c(4), c(40)))
			h.now = h.now.Add(time.Duration(c(4000)) * time.Millisecond)
			h.reports, took = nil, auction.Result{}
			plan, err := h.Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			due, early := m.round(h.now)
			r := h.round(t)

			var want, got []string
			for _, w := range slices.Concat(due, early) {
				want = append(want, w.item.Key.String()+" of "+w.item.Domain)
			}
			for _, p := range took.Placements {
				got = append(got, p.Item.Key.String()+" of "+p.Item.Domain)
			}
			for _, refused := range took.Refusals {
				got = append(got, refused.Item.Key.String()+" of "+refused.Item.Domain)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("step %d: these take part:\n%q\nwant\n%q", step, got, want)
			}
			if len(want) > 0 && (len(plan.Placements) != len(r.Performed) || len(plan.Refusals) != len(r.Refused)) {
				t.Fatalf("step %d: %d are planned and %d refused, %d and %d in the round", step, len(plan.Placements), len(plan.Refusals), len(r.Performed), len(r.Refused))
			}
			for _, p := range r.Performed {
				m.leave(p.Item.Key)
			}
			// Only due work is reported, each of it once.
			if len(h.reports) != len(r.Refused) {
				t.Fatalf("step %d: %d reports for %d refusals", step, len(h.reports), len(r.Refused))
			}
			for _, refused := range r.Refused {
				i := slices.IndexFunc(due, func(w modelItem) bool { return w.item.Key == refused.Item.Key })
				if i < 0 || refused.Error.Reason != lrp.InsufficientResources {
					t.Fatalf("step %d: %v is reported: %v", step, refused.Item.Key, refused.Error)
				}
				w := due[i]
				if w.attempts++; w.attempts == 3 {
					continue
				}
				w.due = h.now.Add(5 * time.Second << (w.attempts - 1))
				if m.work(w.item.Domain) == 0 {
					m.domains = append(m.domains, w.item.Domain)
				}
				m.waiting = append(m.waiting, w)
			}
			if n, _ := h.Waiting(); n != len(m.waiting) {
				t.Fatalf("step %d: %d wait, want %d", step, n, len(m.waiting))
			}
		}
	})
}

// BenchmarkRoundBesideWaitingWork runs rounds of 250 tasks on full cells while
// much refused work of 1,000 domains waits.
func BenchmarkRoundBesideWaitingWork(b *testing.B) {
	for _, n := range []int{0, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			h := &auctionHouse{now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
			for i := range 100 {
				id := fmt.Sprintf("cell-%02d", i)
				h.cells = append(h.cells, &scriptedCell{id: id, state: func(context.Context) (auction.CellState, error) {
					return with(roomy(id, "z1"), func(c *auction.CellState) { c.Remaining.MemoryMB = 100 }), nil
				}})
			}
			r, err := auction.NewRunner(auction.RunnerOptions{
				Directory: h, Reporter: h, Now: func() time.Time { return h.now }, MaxWaiting: 2_000_000, Concurrency: 1, MaxAttempts: 2,
				MinBackoff: time.Hour, MaxBackoff: time.Hour,
			})
			if err != nil {
				b.Fatal(err)
			}
			round := func(n int, guid string) {
				for i := range n {
					r.Request(of(fmt.Sprintf("domain-%d", i%1000), instance(fmt.Sprintf("%s-%d", guid, i), 0, 512)))
				}
				if _, err := r.Round(b.Context()); err != nil {
					b.Fatal(err)
				}
				h.reports = h.reports[:0]
			}
			round(n, "old")
			for i := 0; b.Loop(); i++ {
				round(250, "new") // a later round replaces what was refused in an earlier one
			}
		})
	}
}
