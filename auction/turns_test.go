package auction_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
)

// of puts the item in a domain.
func of(domain string, i auction.Item) auction.Item {
	i.Domain = domain
	return i
}

func TestTheDomainsOfABatchThatIsNotPlacedInFullTakeTurns(t *testing.T) {
	otherRootFS := of("blog", taskItem("b", 10))
	otherRootFS.RootFS = "preloaded:windows"
	invalid := of("blog", taskItem("b", -1))
	for _, tt := range []struct {
		name       string
		containers int64
		memoryMB   []int64 // of each cell; default one cell with 1000
		policy     auction.Policy
		work       []auction.Item
		// want are the placed and the refused items in the order of work.
		want string
	}{
		{
			name: "all of it fits", containers: 4,
			work: []auction.Item{taskItem("a1", 90), taskItem("a2", 90), taskItem("a3", 90), of("blog", taskItem("b", 10))},
			want: "a1 a2 a3 b; refused",
		},
		{
			name: "one domain", containers: 2,
			work: []auction.Item{taskItem("a1", 90), taskItem("a2", 90), taskItem("b", 10)},
			want: "a1 a2; refused b",
		},
		{
			name: "an item has no compatible cell, and the rest fits", containers: 3,
			work: []auction.Item{taskItem("a1", 90), taskItem("a2", 90), otherRootFS, of("blog", taskItem("c", 10))},
			want: "a1 a2 c; refused b",
		},
		{
			name: "an item is invalid, and the rest fits", containers: 3,
			work: []auction.Item{taskItem("a1", 90), taskItem("a2", 90), invalid, of("blog", taskItem("c", 10))},
			want: "a1 a2 c; refused b",
		},
		{
			name: "the domain with the least work comes first in a turn", containers: 1,
			work: []auction.Item{taskItem("a1", 90), taskItem("a2", 90), of("blog", taskItem("b", 10))},
			want: "b; refused a1 a2",
		},
		{
			name: "the larger item comes first of domains with equally much work", containers: 2,
			work: []auction.Item{of("blog", taskItem("a", 10)), of("blog", taskItem("b", 10)), taskItem("c", 50), taskItem("d", 20)},
			want: "c a; refused d b",
		},
		{
			name: "the lower guid comes first of equal items", containers: 1,
			work: []auction.Item{of("blog", taskItem("b", 10)), taskItem("a", 10)},
			want: "a; refused b",
		},
		{
			name: "a domain's own items keep their order", containers: 5,
			work: []auction.Item{
				taskItem("a1", 10), taskItem("a2", 20), taskItem("a3", 30), taskItem("a4", 30),
				of("blog", taskItem("b1", 10)), of("blog", taskItem("b2", 20)), of("shop", taskItem("s", 40)),
			},
			want: "s b2 a3 b1 a4; refused a2 a1",
		},
		{
			name: "the groups keep their order", containers: 5,
			work: []auction.Item{
				instance("a1", 0, 90), instance("a2", 0, 90), of("blog", instance("b", 0, 10)),
				of("blog", taskItem("t", 90)), instance("a1", 1, 90), instance("a2", 1, 90), of("blog", instance("b", 1, 10)),
			},
			want: "b.0 a1.0 a2.0 t b.1; refused a1.1 a2.1",
		},
		{
			name: "an item that is listed twice counts once", containers: 1,
			work: []auction.Item{of("blog", taskItem("b", 10)), of("blog", taskItem("b", 10)), taskItem("c1", 90), taskItem("c2", 90)},
			want: "b; refused c1 c2",
		},
		{
			name: "too many containers are starting", containers: 9, policy: auction.Policy{MaxStarting: 2},
			work: []auction.Item{taskItem("a1", 90), taskItem("a2", 90), of("blog", taskItem("b", 10))},
			want: "b a1; refused a2",
		},
		{
			name: "turns place nothing that was refused without them", containers: 9, memoryMB: []int64{1024, 1024},
			work: []auction.Item{
				taskItem("a1", 1024), taskItem("a2", 512), of("blog", taskItem("b", 256)), of("shop", taskItem("c", 256)),
				of("evil", taskItem("huge", 900_000)),
			},
			want: "a1 a2 b c; refused huge",
		},
		{
			name: "turns place one of two refused items, and the other fits nowhere", containers: 1,
			work: []auction.Item{taskItem("a1", 90), taskItem("a2", 90), of("blog", taskItem("b", 10)), of("evil", taskItem("huge", 900_000))},
			want: "b; refused huge a1 a2",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.memoryMB == nil {
				tt.memoryMB = []int64{1000}
			}
			var cells []auction.CellState
			for i, memoryMB := range tt.memoryMB {
				cells = append(cells, with(roomy(fmt.Sprintf("cell-%d", i), "z"), func(c *auction.CellState) {
					c.Total.MemoryMB, c.Remaining.MemoryMB, c.Remaining.Containers = memoryMB, memoryMB, tt.containers
				}))
			}
			r := check(t, cells, tt.work, tt.policy)
			var placed []string
			for _, p := range r.Placements {
				placed = append(placed, short(p.Item))
			}
			got := strings.Join(placed, " ") + "; refused"
			for _, refused := range r.Refusals {
				got += " " + short(refused.Item)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A domain that asks for less than its share gets all of it.
func TestEachOfSeveralDomainsGetsItsShareOfTheFreePlaces(t *testing.T) {
	problems(t, 300, func(t *testing.T, c chooser) {
		places, domains := 0, 2+c(5)
		cells := make([]auction.CellState, 1+c(8))
		for i := range cells {
			free := c(6)
			places += free
			cells[i] = with(roomy(fmt.Sprintf("cell-%d", i), one(c, "z1", "z2")), func(c *auction.CellState) { c.Remaining.Containers = int64(free) })
		}
		item := one(c, func(guid string) auction.Item { return taskItem(guid, 10) }, func(guid string) auction.Item { return instance(guid, 0, 10) })
		var work []auction.Item
		asked, got := map[string]int{}, map[string]int{}
		for d := range domains {
			domain := fmt.Sprintf("domain-%d", d)
			asked[domain] = one(c, 1+c(3), 1+c(60))
			for i := range asked[domain] {
				work = append(work, of(domain, item(fmt.Sprintf("%d-%s-%d", c(10), domain, i))))
			}
		}
		for _, p := range check(t, cells, work, auction.Policy{}).Placements {
			got[p.Item.Domain]++
		}
		for domain := range asked {
			if want := min(asked[domain], places/domains); got[domain] < want {
				t.Errorf("%s gets %d of %d free places and asks for %d, want at least %d for each of %d domains",
					domain, got[domain], places, asked[domain], want, domains)
			}
		}
	})
}

func TestADomainThatFloodsAFullCellDoesNotKeepItsNeighboursOut(t *testing.T) {
	h := newHouse(t, auction.RunnerOptions{}, "cell-1")
	free := int64(0)
	h.cells[0].state = func(context.Context) (auction.CellState, error) {
		return with(exampleCell("cell-1", "z1"), func(c *auction.CellState) { c.Remaining.Containers = free }), nil
	}
	flood := func(round int) {
		for i := range 250 {
			h.Request(of("evil", taskItem(fmt.Sprintf("a-%d-%d", round, i), 512)))
		}
	}
	neighbours := of("blog", taskItem("z", 64))
	h.Request(neighbours)
	for round, wait := range []time.Duration{5 * time.Second, 10 * time.Second} {
		flood(round)
		if r := h.round(t); len(r.Performed) != 0 {
			t.Fatalf("round %d: %v are placed on a full cell", round, r.Performed)
		}
		h.now = h.now.Add(wait)
	}
	flood(2)
	free = 1
	plan, err := h.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := h.round(t)
	for name, placed := range map[string][]auction.Placement{"the plan": plan.Placements, "the round": r.Performed} {
		if len(placed) != 1 || placed[0].Item.Key != neighbours.Key {
			t.Errorf("%s gives the one free place to %v, want %v", name, placed, neighbours.Key)
		}
	}
}
