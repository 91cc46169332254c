package auction_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A chooser gives numbers 0 … n−1, from a seed or from a fuzzer's bytes.
type chooser func(n int) int

// one chooses among values.
func one[T any](c chooser, values ...T) T { return values[c(len(values))] }

// oneIn is true once in n.
func (c chooser) oneIn(n int) bool { return c(n) == n-1 }

// some chooses a few values.
func some[T any](c chooser, values ...T) []T {
	var list []T
	for _, v := range values {
		if c(2) == 0 {
			list = append(list, v)
		}
	}
	return list
}

// amounts chooses some of the names, with less than so much of each.
func amounts(c chooser, below int, names ...string) executor.Amounts {
	a := executor.Amounts{}
	for _, name := range some(c, names...) {
		a[name] = int64(c(below))
	}
	return a
}

// problem makes a fleet, a batch and a policy of at most the given sizes.
// Kinds of trouble are in it or not as a whole, so that most problems have few.
func problem(c chooser, maxCells, maxItems int) ([]auction.CellState, []auction.Item, auction.Policy) {
	mixed, offers, pids, absurd, zeros := c.oneIn(2), c.oneIn(2), c.oneIn(3), c.oneIn(4), c.oneIn(4)
	extra := c.oneIn(3)
	processes := 1 + c(maxItems/2+1)
	zones := one(c, []string{"z1", "z2", "z3"}, []string{"z1"}, []string{"z1", "z2", "z3", "z4", "z5", "z6", ""})
	domains := one(c, []string{"d"}, []string{"d", "e"}, []string{"d", "d", "d", "d", "e", "f", ""})

	cells := make([]auction.CellState, c(maxCells+1))
	for i := range cells {
		total := auction.Capacity{MemoryMB: 4096, DiskMB: 8192, Containers: 16}
		if mixed {
			total = auction.Capacity{MemoryMB: int64(c(6000)), DiskMB: one[int64](c, 2048, 8192, 10000), Containers: int64(c(20))}
		}
		if pids {
			total.PIDs = one[int64](c, 0, 100, 1000)
		}
		if zeros {
			total.MemoryMB *= int64(c(2))
			total.DiskMB *= int64(c(2))
		}
		if extra {
			total.Extra = amounts(c, 9, "gpu", "cpu", "fpga")
		}
		cell := auction.CellState{
			ID: fmt.Sprintf("cell-%02d", i), Zone: one(c, zones...), Total: total, Remaining: total,
			RootFSProviders: []string{"preloaded:linux", "docker"}, Index: c(7) - 2,
			StartingContainers: c(3), Evacuating: c.oneIn(12), Cordoned: c.oneIn(12), Unhealthy: c.oneIn(12),
		}
		if c.oneIn(2) {
			cell.Remaining.MemoryMB -= int64(c(int(total.MemoryMB + 1)))
			cell.Remaining.DiskMB -= int64(c(int(total.DiskMB + 1)))
			cell.Remaining.Containers -= int64(c(int(total.Containers + 1)))
			cell.Remaining.PIDs -= int64(c(int(total.PIDs + 1)))
			cell.Remaining.Extra = executor.Amounts{}
			for _, name := range total.Extra.Names() {
				cell.Remaining.Extra[name] = int64(c(int(total.Extra[name] + 1)))
			}
		}
		if offers {
			cell.RootFSProviders = some(c, "preloaded:linux", "preloaded:windows", "docker", "preloaded+layer:linux")
			cell.VolumeDrivers = some(c, "nfs", "smb")
			if c.oneIn(3) {
				cell.PlacementTags = some(c, "gpu", "dmz")
			}
			if c.oneIn(3) {
				cell.RefusedFields = some(c, "privileged", "egress_rules")
			}
			cell.OptionalPlacementTags = some(c, "gpu", "fast")
		}
		for range c(4) {
			cell.LRPs = append(cell.LRPs, lrp.Key{ProcessGUID: fmt.Sprintf("p%d", c(processes)), Index: c(5)})
			if c.oneIn(3) {
				cell.Tasks = append(cell.Tasks, fmt.Sprintf("old-%d", c(9)))
			}
		}
		if absurd && c.oneIn(6) {
			*one(c, &cell.Total.MemoryMB, &cell.Total.DiskMB, &cell.Total.Containers, &cell.Total.PIDs,
				&cell.Remaining.MemoryMB, &cell.Remaining.DiskMB, &cell.Remaining.Containers,
			) = one[int64](c, -1, math.MinInt64, math.MaxInt64, auction.MaxSize, auction.MaxSize+1)
			if c.oneIn(3) && extra {
				cell.Remaining.Extra = executor.Amounts{"gpu": one[int64](c, -1, 10)}
			}
			if c.oneIn(3) {
				cell.ID = one(c, "", "cell-00", "cell-03")
			}
			if c.oneIn(3) {
				cell.StartingContainers = one(c, -1, math.MaxInt, auction.MaxContainers)
			}
		}
		cells[i] = cell
	}

	items := make([]auction.Item, c(maxItems+1))
	for i := range items {
		item := auction.Item{
			Key: auction.Key{
				GUID: fmt.Sprintf("p%d", c(processes)), Index: c(5), Domain: one(c, domains...),
				DefinitionID: one(c, "d1", "d1", "d1", "d2"),
			},
			Resources: executor.Resources{MemoryMB: one[int64](c, 0, 64, 256, 256, 512, 1024), DiskMB: one[int64](c, 0, 256, 1024)},
			RootFS:    "preloaded:linux",
			QueuedAt:  time.Unix(int64(c(3)), 0),
		}
		if c.oneIn(4) {
			item.Key = auction.Key{Kind: auction.Task, GUID: fmt.Sprintf("p%d", c(2*processes)), Domain: item.Domain}
			item.Attempt = task.Attempt{Epoch: int64(c(2)), Rejections: c(2)}
		}
		if mixed {
			item.MemoryMB, item.DiskMB = int64(c(1500)), int64(c(1500))
		}
		if extra && c.oneIn(2) {
			item.Extra = amounts(c, 4, "gpu", "gpu", "cpu", one(c, "fpga", "tpu"))
		}
		if pids {
			item.MaxPIDs = one[int64](c, 0, 10, 60)
		}
		if offers {
			item.RootFS = one(c, "preloaded:linux", "preloaded:windows", "Docker:///busybox#1", "preloaded+layer:linux?layer=x", "oci:///x")
			if c.oneIn(3) {
				item.VolumeDrivers = some(c, "nfs", "smb")
			}
			if c.oneIn(3) {
				item.PlacementTags = some(c, "gpu", "dmz", "fast", "gpu")
			}
			if c.oneIn(3) {
				item.Fields = some(c, "privileged", "egress_rules", "cpu_weight")
			}
		}
		if absurd && c.oneIn(8) {
			switch c(6) {
			case 0:
				item.GUID = ""
			case 1:
				item.RootFS = one(c, "", "linux", ":linux")
			case 5:
				item.Extra = executor.Amounts{one(c, "", "Memory", "gpu", "a\nb"): one[int64](c, -1, math.MinInt64, auction.MaxSize, auction.MaxSize+1)}
			case 2:
				item.Kind = 7
			case 3:
				item.Index = one(c, -1, math.MaxInt, math.MinInt)
			case 4:
				*one(c, &item.MemoryMB, &item.DiskMB, &item.MaxPIDs) =
					one[int64](c, -1, math.MinInt64, math.MaxInt64, auction.MaxSize, auction.MaxSize+1)
			}
		}
		items[i] = item
	}
	return cells, items, auction.Policy{
		StartingContainerWeight: one(c, 0, -1, 0.5, 10),
		BinPackWeight:           one(c, 0, 0, 0, 0.05, 10),
		MaxStarting:             one(c, 0, 0, 0, c(60)),
		PreferredZones:          one(c, nil, nil, nil, auction.PreferredZones{"z1", "z2", "z9"}),
	}
}

// check compares Place with the oracle and with what must always hold.
func check(t *testing.T, cells []auction.CellState, items []auction.Item, p auction.Policy) auction.Result {
	t.Helper()
	got, err := auction.Place(cells, items, p)
	if err != nil {
		t.Fatalf("Place: %v", err)
	}
	if diff := compare(oracle(cells, items, p), got); diff != "" {
		t.Fatalf("Place (+) and the oracle (-) differ:\n%s", diff)
	}
	seen := map[auction.Key]bool{}
	for _, placed := range got.Placements {
		seen[placed.Item.Key] = true
		_ = placed.String()
	}
	for _, refused := range got.Refusals {
		seen[refused.Item.Key] = true
		_ = refused.String()
	}
	for _, item := range items {
		if !seen[item.Key] {
			t.Fatalf("%v is neither placed nor refused", item.Key)
		}
	}
	if len(seen) != len(got.Placements)+len(got.Refusals) {
		t.Fatalf("%d keys make %d placements and %d refusals", len(seen), len(got.Placements), len(got.Refusals))
	}
	return got
}

// compare is cmp.Diff with errors compared by their text, and fast if all is
// well.
func compare(want, got auction.Result) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }))
}

// fewer is n, or a tenth of it under the race detector: Place has one goroutine.
func fewer(n int) uint64 {
	if testenv.Race {
		n = (n + 9) / 10
	}
	return uint64(n)
}

// problems runs f on many seeds and names the seed in the sub-test that fails.
func problems(t *testing.T, n int, f func(t *testing.T, c chooser)) {
	t.Helper()
	for seed := range fewer(n) {
		c := chooser(rand.New(rand.NewPCG(seed, 1)).IntN)
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { f(t, c) }) {
			return
		}
	}
}

func TestPlaceChoosesTheCellsThatTheOracleChooses(t *testing.T) {
	t.Run("tiny", func(t *testing.T) {
		problems(t, 3000, func(t *testing.T, c chooser) {
			cells, items, p := problem(c, 4, 8)
			check(t, cells, items, p)
		})
	})
	t.Run("tight", func(t *testing.T) {
		problems(t, 800, func(t *testing.T, c chooser) {
			cells, items, p := problem(c, 12, 120)
			check(t, cells, items, p)
		})
	})
	t.Run("roomy", func(t *testing.T) {
		problems(t, 300, func(t *testing.T, c chooser) {
			cells, items, p := problem(c, 70, 100)
			check(t, cells, items, p)
		})
	})
}

func TestTheScanOfAPolicyWithItsOwnRulesChoosesTheCellsThatTheOracleChooses(t *testing.T) {
	problems(t, 1000, func(t *testing.T, c chooser) {
		cells, items, p := problem(c, 12, 40)
		if c.oneIn(2) {
			// It sees what was placed so far.
			limit := 1 + c(4)
			p.Filters = append(p.Filters, func(item *auction.Item, cell *auction.CellState) auction.CellReason {
				if len(cell.LRPs)+len(cell.Tasks) > limit+len(item.GUID)%2 {
					return auction.CellReason(fmt.Sprintf("with more than %d", limit))
				}
				return ""
			})
		}
		if c.oneIn(2) {
			p.Scorer = func(item *auction.Item, cell *auction.CellState, s auction.Score) float64 {
				if (item.Index+cell.Index)%3 == 0 {
					return math.NaN()
				}
				return float64(s.CellInstances + s.CellTasks)
			}
		}
		if c.oneIn(2) {
			p = auction.PreferredZones{"z1", "z2", "z3"}.Apply(p)
		}
		check(t, cells, items, p)
	})
}

func TestTheScanAndTheIndexChooseTheSameCells(t *testing.T) {
	problems(t, 500, func(t *testing.T, c chooser) {
		cells, items, p := problem(c, 30, 80)
		indexed, err := auction.Place(cells, items, p)
		if err != nil {
			t.Fatal(err)
		}
		p.Filters = []auction.Filter{func(*auction.Item, *auction.CellState) auction.CellReason { return "" }}
		scanned, err := auction.Place(cells, items, p)
		if err != nil {
			t.Fatal(err)
		}
		// The two describe a refusal at different times.
		if diff := cmp.Diff(scanned.Placements, indexed.Placements); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestTheOrderOfCellsAndItemsDoesNotMatter(t *testing.T) {
	problems(t, 500, func(t *testing.T, c chooser) {
		cells, items, p := problem(c, 12, 60)
		want, err := auction.Place(cells, items, p)
		if err != nil {
			t.Fatal(err)
		}
		cells, items = slices.Clone(cells), slices.Clone(items)
		shuffle(c, cells)
		shuffle(c, items)
		got, err := auction.Place(cells, items, p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := compare(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func shuffle[T any](c chooser, list []T) {
	for i := range list {
		j := i + c(len(list)-i)
		list[i], list[j] = list[j], list[i]
	}
}

func TestPlaceChangesNeitherCellsNorItems(t *testing.T) {
	problems(t, 200, func(t *testing.T, c chooser) {
		cells, items, p := problem(c, 8, 40)
		p.Filters = []auction.Filter{func(*auction.Item, *auction.CellState) auction.CellReason { return "" }}
		for i := range cells { // room to append into
			cells[i].LRPs = append(make([]lrp.Key, 0, 50), cells[i].LRPs...)
		}
		before := fmt.Sprint(cells, items)
		if _, err := auction.Place(cells, items, p); err != nil {
			t.Fatal(err)
		}
		if after := fmt.Sprint(cells, items); after != before {
			t.Fatalf("before: %s\nafter: %s", before, after)
		}
		for i := range cells {
			for _, key := range cells[i].LRPs[len(cells[i].LRPs):cap(cells[i].LRPs)] {
				if key != (lrp.Key{}) {
					t.Fatalf("%v was written behind the LRPs of %s", key, cells[i].ID)
				}
			}
		}
	})
}

func FuzzPlace(f *testing.F) {
	f.Add([]byte("a fleet, a batch and a policy"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := chooser(func(n int) int {
			if len(data) == 0 || n <= 1 {
				return 0
			}
			b := int(data[0])
			data = data[1:]
			if n > 256 && len(data) > 0 {
				b = b<<8 | int(data[0])
				data = data[1:]
			}
			return b % n
		})
		cells, items, p := problem(c, 10, 30)
		if c.oneIn(4) {
			p = auction.PreferredZones{"z1", "z2"}.Apply(p)
		}
		check(t, cells, items, p)
	})
}

// A policy's own rules see what was placed on a cell; the caller's cells stay as they
// were, and so does the memory behind their lists.
func TestPlaceDoesNotChangeItsArguments(t *testing.T) {
	all := func(*auction.Item, *auction.CellState) auction.CellReason { return "" }
	for _, p := range []auction.Policy{{}, {Filters: []auction.Filter{all}}} {
		cells, work := fleetOf(3, 96<<10), largeApps(2, 20)
		work = append(work, auction.Item{Key: auction.Key{Kind: auction.Task, GUID: "t"}, RootFS: "preloaded:linux"})
		for i := range cells {
			cells[i].LRPs, cells[i].Tasks = make([]lrp.Key, 1, 50), make([]string, 1, 50)
			cells[i].Total.Extra, cells[i].Remaining.Extra = executor.Amounts{"gpu": 90}, executor.Amounts{"gpu": 90}
		}
		for i := range work {
			work[i].Extra = executor.Amounts{"gpu": 1}
		}
		text := func() string {
			var s strings.Builder
			for _, c := range cells {
				c.LRPs, c.Tasks = c.LRPs[:cap(c.LRPs)], c.Tasks[:cap(c.Tasks)]
				fmt.Fprintln(&s, c)
			}
			return s.String() + fmt.Sprint(work)
		}
		before := text()
		if r := mustPlace(t, cells, work, p); len(r.Placements) != len(work) {
			t.Fatalf("%d of %d are placed", len(r.Placements), len(work))
		}
		if text() != before {
			t.Errorf("with %d filters, Place has changed its arguments", len(p.Filters))
		}
	}
}
