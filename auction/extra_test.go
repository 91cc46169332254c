package auction_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
)

// machine has further resources and nothing else.
func machine(id string, extra executor.Amounts) auction.CellState {
	return auction.CellState{ID: id, Total: auction.Capacity{Extra: extra}, Remaining: auction.Capacity{Extra: extra}}
}

// job takes further resources and nothing else.
func job(guid string, extra executor.Amounts) auction.Item {
	return auction.Item{Key: auction.Key{Kind: auction.Task, GUID: guid}, Resources: executor.Resources{Extra: extra}}
}

func TestWorkGoesToACellThatHasTheFurtherResourcesItTakes(t *testing.T) {
	gpu := func(n int64) executor.Amounts { return executor.Amounts{"gpu": n} }
	used := func(c auction.CellState, left executor.Amounts) auction.CellState {
		c.Remaining.Extra = left
		return c
	}
	with := func(i auction.Item, extra executor.Amounts) auction.Item {
		i.Extra = extra
		return i
	}
	for _, tt := range []struct {
		name  string
		cells []auction.CellState
		work  []auction.Item
		// want is where the work went, and refused its refusals.
		want, refused string
	}{
		{
			name:  "the only cell that has any",
			cells: []auction.CellState{machine("a", nil), machine("b", gpu(1))},
			work:  []auction.Item{job("x", gpu(1))}, want: "x>b",
		},
		{
			name:  "the cell of which the least is used",
			cells: []auction.CellState{used(machine("a", gpu(8)), gpu(6)), used(machine("b", gpu(4)), gpu(4))},
			work:  []auction.Item{job("x", gpu(1))}, want: "x>b",
		},
		{
			name:  "each placement takes its share",
			cells: []auction.CellState{machine("a", gpu(2)), machine("b", gpu(2))},
			work:  []auction.Item{job("w", gpu(1)), job("x", gpu(1)), job("y", gpu(1)), job("z", gpu(1))}, want: "w>a x>b y>a z>b",
		},
		{
			name:  "the larger amount first",
			cells: []auction.CellState{machine("a", gpu(4)), machine("b", gpu(1))},
			work:  []auction.Item{job("small", gpu(1)), job("large", gpu(4))}, want: "large>a small>b",
		},
		{
			name:  "and memory before it",
			cells: []auction.CellState{roomy("a", "z")},
			work:  []auction.Item{with(taskItem("small", 10), executor.Amounts{"gpu": 0}), taskItem("large", 20)}, want: "large>a small>a",
		},
		{
			name:    "short of some",
			cells:   []auction.CellState{used(machine("a", gpu(4)), gpu(1)), machine("b", gpu(2))},
			work:    []auction.Item{job("x", gpu(3))},
			refused: "task x: insufficient resources: of 2 cells 2 short of gpu; the nearest, b, lacks 1 gpu",
		},
		{
			name:    "no cell has any",
			cells:   []auction.CellState{machine("a", gpu(4)), machine("b", nil)},
			work:    []auction.Item{job("x", executor.Amounts{"gpu": 5, "tpu": 2})},
			refused: "task x: insufficient resources: of 2 cells 2 short of gpu, 2 short of tpu; the nearest, a, lacks 1 gpu, 2 tpu",
		},
		{
			name:    "short of memory too",
			cells:   []auction.CellState{extended(roomy("a", "z"), gpu(1))},
			work:    []auction.Item{with(taskItem("x", 1500), gpu(2))},
			refused: "task x: insufficient resources: of 1 cell 1 short of memory, 1 short of gpu; the nearest, a, lacks 500 MiB of memory, 1 gpu",
		},
		{
			name:    "an amount that cannot be",
			cells:   []auction.CellState{machine("a", gpu(1))},
			work:    []auction.Item{job("x", gpu(-1))},
			refused: "task x: found no compatible cells: invalid input: extra_resources.gpu: -1: want at least 0",
		},
		{
			name:    "a cell that says more is left than there is",
			cells:   []auction.CellState{used(machine("a", gpu(1)), gpu(2))},
			work:    []auction.Item{job("x", gpu(1))},
			refused: "task x: found no compatible cells: of 1 cell 1 invalid",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := check(t, tt.cells, tt.work, auction.Policy{})
			var refused []string
			for _, x := range r.Refusals {
				refused = append(refused, x.String())
			}
			if got := went(r); got != tt.want || strings.Join(refused, "\n") != tt.refused {
				t.Errorf("got %q and %q, want %q and %q", got, refused, tt.want, tt.refused)
			}
		})
	}
}

// extended gives a cell further resources.
func extended(c auction.CellState, extra executor.Amounts) auction.CellState {
	c.Total.Extra, c.Remaining.Extra = extra, extra
	return c
}

func TestFiltersAndScorersSeeFurtherResources(t *testing.T) {
	cells := []auction.CellState{machine("a", executor.Amounts{"gpu": 4}), machine("b", executor.Amounts{"gpu": 2})}
	var left []string
	p := auction.Policy{
		Filters: []auction.Filter{func(item *auction.Item, cell *auction.CellState) auction.CellReason {
			if cell.Remaining.Extra["gpu"] == cell.Total.Extra["gpu"] && item.Extra["gpu"] == 1 && cell.ID == "a" {
				return "kept whole"
			}
			return ""
		}},
		Scorer: func(_ *auction.Item, cell *auction.CellState, s auction.Score) float64 {
			left = append(left, fmt.Sprintf("%s %d %.2f", cell.ID, cell.Remaining.Extra["gpu"], s.Extra))
			return -s.Extra
		},
	}
	r := check(t, cells, []auction.Item{job("x", executor.Amounts{"gpu": 1}), job("y", executor.Amounts{"gpu": 1})}, p)
	if got := went(r); got != "x>b y>b" {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(left[:2], ", "); got != "b 2 0.50, b 1 1.00" {
		t.Errorf("the scorer saw %s", got)
	}
	if cells[1].Remaining.Extra["gpu"] != 2 {
		t.Error("Place has changed its argument")
	}
}

// gpuWork gives some apps a GPU for each instance, and gpuFleet some cells 8 or 4.
func gpuWork(items []auction.Item, apps int) []auction.Item {
	for i := range items {
		if items[i].GUID[len(items[i].GUID)-1]%16 < byte(apps) {
			items[i].Extra = executor.Amounts{"gpu": 1}
		}
	}
	return items
}

func gpuFleet(n int, memoryMB int64) []auction.CellState {
	cells := fleetOf(n, memoryMB)
	for i := range cells {
		if i%4 == 0 {
			extra := executor.Amounts{"gpu": 8 * int64(1+i%8/4)}
			cells[i].Total.Extra, cells[i].Remaining.Extra = extra, extra
		}
	}
	return cells
}

// The index holds for further resources: a search looks at few nodes, whether its
// item takes any or not.
func TestASearchForFurtherResourcesLooksAtFewCells(t *testing.T) {
	work := func() []auction.Item { return apps(rand.New(rand.NewPCG(1, 1)), 10_000, powers) }
	for _, tt := range []struct {
		name string
		work []auction.Item
		most float64
	}{
		{"nobody takes any", work(), 8},
		{"some work takes a GPU", gpuWork(work(), 3), 50},
		{"many cells are short of GPUs", gpuWork(work(), 16), 50},
	} {
		each := float64(auction.Looked(gpuFleet(2_000, 16<<10), tt.work, auction.Policy{})) / float64(len(tt.work))
		t.Logf("%s: %.1f for each item", tt.name, each)
		if each > tt.most {
			t.Errorf("%s: it looks at %.1f nodes and cells for each item, want at most %v", tt.name, each, tt.most)
		}
	}
}

// What an item asks for is the user's, so names of one's own for each item must
// not cost more than one name for all.
func TestNamesThatNoCellHasCostNothing(t *testing.T) {
	work, cells := apps(rand.New(rand.NewPCG(1, 1)), 5_000, powers), gpuFleet(500, 16<<10)
	for i := range work {
		work[i].Extra = executor.Amounts{fmt.Sprintf("own-%d", i): 1}
	}
	r := mustPlace(t, cells, work, auction.Policy{})
	if len(r.Placements) != 0 {
		t.Fatalf("%d are placed", len(r.Placements))
	}
	each := float64(auction.Looked(cells, work, auction.Policy{})) / float64(len(work))
	t.Logf("it looks at %.1f nodes and cells for each", each)
	if each > 200 {
		t.Errorf("it looks at %.1f nodes and cells for each of 500 cells", each)
	}
}

func TestWorkThatIsNoContainerNeedsNoRootFileSystemAndNoDefinition(t *testing.T) {
	cells := []auction.CellState{machine("a", executor.Amounts{"slot": 1}), machine("b", executor.Amounts{"slot": 1})}
	work := []auction.Item{
		{Key: auction.Key{GUID: "web", Index: 0}, Resources: executor.Resources{Extra: executor.Amounts{"slot": 1}}},
		{Key: auction.Key{GUID: "web", Index: 1}, Resources: executor.Resources{Extra: executor.Amounts{"slot": 1}}},
		{Key: auction.Key{GUID: "web", Index: 2}, Resources: executor.Resources{Extra: executor.Amounts{"slot": 1}}},
	}
	r := check(t, cells, work, auction.Policy{})
	if got := went(r); got != "web.0>a web.1>b" {
		t.Errorf("got %s", got)
	}
	if got, want := r.Refusals[0].String(), "lrp web.2: insufficient resources: of 2 cells 2 short of slot; the nearest, a, lacks 1 slot"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
