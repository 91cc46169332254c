package auction_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// roomy makes an empty cell of 1000 MB, 1000 MB and 10 containers.
func roomy(id, zone string) auction.CellState {
	total := auction.Capacity{MemoryMB: 1000, DiskMB: 1000, Containers: 10}
	return auction.CellState{ID: id, Zone: zone, Total: total, Remaining: total, RootFSProviders: []string{"preloaded:linux"}}
}

// with changes a cell.
func with(c auction.CellState, change func(*auction.CellState)) auction.CellState {
	change(&c)
	return c
}

func instance(guid string, index int, memoryMB int64) auction.Item {
	return auction.Item{
		Key:       auction.Key{GUID: guid, Index: index, DefinitionID: "d", Domain: "apps"},
		Resources: executor.Resources{MemoryMB: memoryMB, DiskMB: 10},
		RootFS:    "preloaded:linux",
	}
}

func taskItem(guid string, memoryMB int64) auction.Item {
	i := instance(guid, 0, memoryMB)
	i.Key = auction.Key{Kind: auction.Task, GUID: guid, Domain: "apps"}
	return i
}

// went lists where items went, as "web.0>cell-1", in the order of work.
func went(r auction.Result) string {
	var list []string
	for _, p := range r.Placements {
		list = append(list, short(p.Item)+">"+p.CellID)
	}
	return strings.Join(list, " ")
}

func short(i *auction.Item) string {
	if i.Kind == auction.Task {
		return i.GUID
	}
	return fmt.Sprintf("%s.%d", i.GUID, i.Index)
}

func TestWorkIsPlacedInTheOrderOfTheSpecification(t *testing.T) {
	work := []auction.Item{
		instance("web", 2, 64), instance("web", 1, 64), instance("web", 0, 64),
		taskItem("small-task", 10), taskItem("large-task", 90), taskItem("also-large-task", 90),
		instance("db", 2, 128), instance("db", 1, 128), instance("db", 0, 128), instance("cache", 0, 128),
		instance("huge", 3, 999),
	}
	r := mustPlace(t, []auction.CellState{with(roomy("cell", "z"), func(c *auction.CellState) {
		c.Total.MemoryMB, c.Remaining.MemoryMB, c.Total.Containers, c.Remaining.Containers = 5000, 5000, 20, 20
	})}, work, auction.Policy{})
	want := "cache.0>cell db.0>cell web.0>cell " +
		"also-large-task>cell large-task>cell small-task>cell " +
		"db.1>cell web.1>cell db.2>cell web.2>cell huge.3>cell"
	if got := went(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEqualMemoryIsOrderedByGUIDThenDefinitionThenDomain(t *testing.T) {
	a, b, c := instance("web", 0, 64), instance("web", 0, 64), instance("web", 0, 64)
	a.DefinitionID, b.DefinitionID, c.DefinitionID = "d1", "d2", "d2"
	c.Domain = "zoo"
	r := mustPlace(t, []auction.CellState{roomy("cell", "z")}, []auction.Item{c, b, a, instance("app", 0, 64)}, auction.Policy{})
	var got []auction.Key
	for _, p := range r.Placements {
		got = append(got, p.Item.Key)
	}
	if diff := cmp.Diff([]auction.Key{instance("app", 0, 64).Key, a.Key, b.Key, c.Key}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnItemThatIsListedTwiceIsPlacedOnce(t *testing.T) {
	old, retry := taskItem("t", 100), taskItem("t", 50)
	old.Attempt, retry.Attempt = task.Attempt{Epoch: 1, Rejections: 1}, task.Attempt{Epoch: 1, Rejections: 2}
	again := taskItem("t", 70)
	again.Attempt.Epoch = 2
	for _, work := range [][]auction.Item{{old, retry, again}, {again, retry, old}} {
		r := mustPlace(t, []auction.CellState{roomy("cell", "z")}, work, auction.Policy{})
		if len(r.Placements) != 1 || r.Placements[0].Item.Attempt != again.Attempt {
			t.Errorf("got %v, want the later attempt, once", r.Placements)
		}
	}
}

func TestTheObjectiveIsTheZoneThenTheCellThenEvenUse(t *testing.T) {
	onIt := func(guid string) func(*auction.CellState) {
		return func(c *auction.CellState) { c.LRPs = append(c.LRPs, lrp.Key{ProcessGUID: guid}) }
	}
	used := func(memory, disk, containers int64) func(*auction.CellState) {
		return func(c *auction.CellState) {
			c.Remaining.MemoryMB -= memory
			c.Remaining.DiskMB -= disk
			c.Remaining.Containers -= containers
		}
	}
	for _, c := range []struct {
		name   string
		cells  []auction.CellState
		item   auction.Item
		policy auction.Policy
		// want is the winner and the runner-up.
		want string
	}{
		{
			name:  "a nearly full cell in a zone without the process beats an empty one in a zone with it",
			cells: []auction.CellState{roomy("a", "z1"), with(roomy("b", "z1"), onIt("web")), with(roomy("c", "z2"), used(900, 900, 9))},
			item:  instance("web", 0, 50), want: "c a",
		},
		{
			name:  "a nearly full cell without the process beats an empty one with it",
			cells: []auction.CellState{with(roomy("a", "z1"), onIt("web")), with(roomy("b", "z1"), used(900, 900, 9))},
			item:  instance("web", 0, 50), want: "b a",
		},
		{
			name:  "fewer instances on the cell win when all have some",
			cells: []auction.CellState{with(with(roomy("a", "z1"), onIt("web")), onIt("web")), with(roomy("b", "z1"), onIt("web"))},
			item:  instance("web", 0, 50), want: "b a",
		},
		{
			name:  "a zone whose cells are full does not count",
			cells: []auction.CellState{with(roomy("a", "z1"), onIt("web")), with(roomy("b", "z2"), used(1000, 0, 0))},
			item:  instance("web", 0, 50), want: "a ",
		},
		{
			name:  "memory, disk and containers weigh the same",
			cells: []auction.CellState{with(roomy("a", "z1"), used(300, 0, 0)), with(roomy("b", "z1"), used(0, 0, 2)), with(roomy("c", "z1"), used(0, 250, 0))},
			item:  instance("web", 0, 50), want: "b c",
		},
		{
			name:  "use is relative to the size of the cell",
			cells: []auction.CellState{with(roomy("a", "z1"), used(300, 0, 0)), with(roomy("b", "z1"), func(c *auction.CellState) { c.Total.MemoryMB, c.Remaining.MemoryMB = 4000, 3000 })},
			item:  instance("web", 0, 50), want: "b a",
		},
		{
			name:  "equal cells are taken by id",
			cells: []auction.CellState{roomy("b", "z1"), roomy("c", "z2"), roomy("a", "z3")},
			item:  instance("web", 0, 50), want: "a b",
		},
		{
			name:  "a starting container weighs a quarter of a cell",
			cells: []auction.CellState{with(roomy("a", "z1"), func(c *auction.CellState) { c.StartingContainers = 1 }), with(roomy("b", "z1"), used(700, 0, 0)), with(roomy("c", "z1"), used(800, 0, 0))},
			item:  instance("web", 0, 50), want: "b a",
		},
		{
			name:  "a starting container weighs nothing if the policy says so",
			cells: []auction.CellState{with(roomy("a", "z1"), func(c *auction.CellState) { c.StartingContainers = 9 }), with(roomy("b", "z1"), used(10, 0, 0))},
			item:  instance("web", 0, 50), policy: auction.Policy{StartingContainerWeight: -1}, want: "a b",
		},
		{
			name:  "bin-packing prefers the cell with the lowest index, if only just",
			cells: []auction.CellState{with(roomy("a", "z1"), func(c *auction.CellState) { c.Index = 500 }), with(roomy("b", "z1"), func(c *auction.CellState) { c.Index = -3 }), with(roomy("c", "z1"), func(c *auction.CellState) { c.Index = 7 })},
			item:  instance("web", 0, 50), policy: auction.Policy{BinPackWeight: 0.01}, want: "b c",
		},
		{
			name:  "bin-packing does not touch tasks",
			cells: []auction.CellState{with(roomy("a", "z1"), func(c *auction.CellState) { c.Index = 5 }), roomy("b", "z1")},
			item:  taskItem("t", 50), policy: auction.Policy{BinPackWeight: 1}, want: "a b",
		},
		{
			name: "a task goes to the cell with the fewest tasks, in any zone",
			cells: []auction.CellState{
				with(roomy("a", "z1"), func(c *auction.CellState) { c.Tasks = []string{"old"} }),
				with(roomy("b", "z1"), used(900, 900, 9)), with(roomy("c", "z1"), used(800, 900, 9)),
			},
			item: taskItem("t", 50), want: "c b",
		},
		{
			name:  "instances on an evacuating cell are about to leave its zone",
			cells: []auction.CellState{roomy("a", "z1"), with(with(roomy("b", "z1"), onIt("web")), func(c *auction.CellState) { c.Evacuating = true }), roomy("c", "z2")},
			item:  instance("web", 0, 50), want: "a c",
		},
		{
			name:  "instances on an unhealthy cell still run in its zone",
			cells: []auction.CellState{roomy("a", "z1"), with(with(roomy("b", "z1"), onIt("web")), func(c *auction.CellState) { c.Unhealthy = true }), roomy("c", "z2")},
			item:  instance("web", 0, 50), want: "c a",
		},
		{
			name:  "instances on a cordoned cell stay in its zone",
			cells: []auction.CellState{roomy("a", "z1"), with(with(roomy("b", "z1"), onIt("web")), func(c *auction.CellState) { c.Cordoned = true }), roomy("c", "z2")},
			item:  instance("web", 0, 50), want: "c a",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := check(t, c.cells, []auction.Item{c.item}, c.policy)
			if got := r.Placements[0].CellID + " " + r.Placements[0].RunnerUp.CellID; got != c.want {
				t.Errorf("got %q, want %q: %v", got, c.want, r.Placements[0])
			}
		})
	}
}

func TestARefusalCountsTheCellsByReasonAndNamesTheNearest(t *testing.T) {
	gpu := instance("web", 0, 50)
	gpu.PlacementTags = []string{"gpu"}
	nfs := instance("web", 0, 50)
	nfs.VolumeDrivers = []string{"nfs"}
	windows := instance("web", 0, 50)
	windows.RootFS = "preloaded:windows"
	walled := instance("web", 0, 50)
	walled.Fields = []string{"cpu_weight", "egress_rules"}
	plain := with(roomy("plain", "z"), func(c *auction.CellState) { c.RefusedFields = []string{"network", "egress_rules"} })
	pids := instance("web", 0, 50)
	pids.MaxPIDs = 100
	full := func(id string, memory, disk, containers int64) auction.CellState {
		return with(roomy(id, "z"), func(c *auction.CellState) {
			c.Remaining = auction.Capacity{MemoryMB: memory, DiskMB: disk, Containers: containers}
		})
	}
	out := []auction.CellState{
		with(roomy("x1", "z"), func(c *auction.CellState) { c.Evacuating = true }),
		with(roomy("x2", "z"), func(c *auction.CellState) { c.Unhealthy = true }),
		with(roomy("x3", "z"), func(c *auction.CellState) { c.Total.DiskMB = -1 }),
		with(roomy("x4", "z"), func(c *auction.CellState) { c.Cordoned = true }),
	}
	for _, c := range []struct {
		name  string
		cells []auction.CellState
		item  auction.Item
		want  string
	}{
		{"no cell answered", nil, gpu, "no cell answered"},
		{"every cell is out", out, gpu, "found no compatible cells: of 4 cells 1 invalid, 1 evacuating, 1 cordoned, 1 unhealthy"},
		{
			"a field that the cells refuse", []auction.CellState{plain, out[0]}, walled,
			`found no compatible cells: fields ["cpu_weight" "egress_rules"] wanted: of 2 cells 1 evacuating, 1 refusing fields of the definition`,
		},
		{
			"another root file system", []auction.CellState{roomy("a", "z"), out[0]}, windows,
			"found no compatible cells: root file system preloaded:windows wanted: of 2 cells 1 evacuating, 1 without the root file system",
		},
		{
			"a volume driver", []auction.CellState{roomy("a", "z")}, nfs,
			`found no compatible cells: volume drivers ["nfs"] wanted: of 1 cell 1 without the volume drivers`,
		},
		{
			"a placement tag", []auction.CellState{roomy("a", "z")}, gpu,
			`found no compatible cells: placement tags ["gpu"] wanted: of 1 cell 1 with other placement tags`,
		},
		{
			"no room", []auction.CellState{full("a", 10, 1000, 5), full("b", 30, 5, 5), full("c", 999, 999, 0), out[1]}, instance("web", 0, 50),
			"insufficient resources: of 4 cells 1 unhealthy, 2 short of memory, 1 short of disk, 1 short of containers; " +
				"the nearest, a, lacks 40 MiB of memory",
		},
		{
			"a cell that lacks two things", []auction.CellState{full("a", 49, 8, 5)}, instance("web", 0, 50),
			"insufficient resources: of 1 cell 1 short of memory, 1 short of disk; the nearest, a, lacks 1 MiB of memory, 2 MiB of disk",
		},
		{
			"PIDs", []auction.CellState{with(roomy("a", "z"), func(c *auction.CellState) { c.Total.PIDs, c.Remaining.PIDs = 500, 60 })}, pids,
			"insufficient resources: of 1 cell 1 short of PIDs; the nearest, a, lacks 40 processes",
		},
		{
			"no container", []auction.CellState{full("a", 99, 99, 0)}, instance("web", 0, 50),
			"insufficient resources: of 1 cell 1 short of containers; the nearest, a, lacks 1 container",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := check(t, c.cells, []auction.Item{c.item}, auction.Policy{})
			if len(r.Refusals) != 1 || r.Refusals[0].Error.String() != c.want {
				t.Errorf("got  %v\nwant %s", r.Refusals, c.want)
			}
			var want *lrp.Shortage
			if e := r.Refusals[0].Explanation; e != nil && e.Nearest != nil {
				want = (*lrp.Shortage)(e.Nearest)
			}
			if got := r.Refusals[0].Error.Nearest(); !cmp.Equal(got, want) {
				t.Errorf("of the text %+v is read, want %+v", got, want)
			}
		})
	}
}

func TestCellsWithoutATotalOfPIDsDoNotCountThem(t *testing.T) {
	i := instance("web", 0, 50)
	i.MaxPIDs = auction.MaxSize
	for _, remaining := range []int64{0, 100, -1} { // a cell may report any remainder of what it does not count
		cell := with(roomy("a", "z"), func(c *auction.CellState) { c.Remaining.PIDs = remaining })
		r := check(t, []auction.CellState{cell}, []auction.Item{i}, auction.Policy{})
		if got := went(r); got != "web.0>a" {
			t.Errorf("%d remaining: got %q, %v", remaining, got, r.InvalidCells)
		}
	}
}

func TestOnceTooManyContainersAreStartingTheRestIsRefused(t *testing.T) {
	cells := []auction.CellState{
		with(roomy("a", "z1"), func(c *auction.CellState) { c.StartingContainers = 2 }),
		with(roomy("b", "z1"), func(c *auction.CellState) { c.StartingContainers, c.Unhealthy = 9, true }),
	}
	work := []auction.Item{instance("web", 0, 10), taskItem("t", 10), instance("web", 1, 10)}
	r := check(t, cells, work, auction.Policy{MaxStarting: 4})
	if got, want := went(r), "web.0>a t>a"; got != want {
		t.Errorf("placed %q, want %q", got, want)
	}
	want := "lrp web.1 (definition d): too many instances are starting: 4 containers are starting, the limit is 4"
	if len(r.Refusals) != 1 || r.Refusals[0].String() != want {
		t.Errorf("got %v, want %s", r.Refusals, want)
	}
}

func TestALargerNeedIsRefusedOnceASmallerOneWas(t *testing.T) {
	cells := []auction.CellState{with(roomy("a", "z"), func(c *auction.CellState) { c.Remaining.MemoryMB, c.Remaining.DiskMB = 100, 100 })}
	item := func(guid string, memory, disk int64) auction.Item {
		i := instance(guid, 1, memory)
		i.DiskMB = disk
		return i
	}
	r := check(t, cells, []auction.Item{
		instance("first", 0, 101), item("a", 200, 10), item("b", 150, 20), item("c", 100, 200), item("d", 90, 150), item("e", 80, 100), item("f", 10, 1),
	}, auction.Policy{})
	if got, want := went(r), "e.1>a"; got != want {
		t.Errorf("placed %q, want %q", got, want)
	}
	if r.Refusals[0].Explanation == r.Refusals[1].Explanation {
		t.Error("items of different shapes share an explanation")
	}
}

func TestEqualRefusalsShareTheirExplanation(t *testing.T) {
	r := check(t, []auction.CellState{roomy("a", "z")}, []auction.Item{instance("a", 0, 5000), instance("b", 0, 5000)}, auction.Policy{})
	if len(r.Refusals) != 2 || r.Refusals[0].Explanation != r.Refusals[1].Explanation {
		t.Errorf("got %v", r.Refusals)
	}
}

func TestManyNeedsThatFitNowhereAreAllRefused(t *testing.T) {
	var work []auction.Item
	for n := range int64(200) { // none within another
		i := instance(fmt.Sprintf("app-%03d", n), 0, 2000-n)
		i.DiskMB = 2000 + n
		work = append(work, i)
	}
	if r := check(t, []auction.CellState{roomy("a", "z")}, work, auction.Policy{}); len(r.Refusals) != 200 {
		t.Errorf("%d are refused, want 200", len(r.Refusals))
	}
}

func TestAnInvalidPolicyPlacesNothing(t *testing.T) {
	for field, p := range map[string]auction.Policy{
		"starting_container_weight":      {StartingContainerWeight: 10.5},
		"bin_pack_weight":                {BinPackWeight: -0.1},
		"bin_pack_weight: 11":            {BinPackWeight: 11},
		"bin_pack_weight: NaN":           {BinPackWeight: math.NaN()},
		"max_starting":                   {MaxStarting: -1},
		"filters[1]":                     {Filters: []auction.Filter{func(*auction.Item, *auction.CellState) auction.CellReason { return "" }, nil}},
		"starting_container_weight: NaN": {StartingContainerWeight: math.NaN()},
	} {
		t.Run(field, func(t *testing.T) {
			r, err := auction.Place([]auction.CellState{roomy("a", "z")}, []auction.Item{instance("web", 0, 50)}, p)
			if !errors.Is(err, executor.ErrInvalid) || !strings.Contains(err.Error(), field) || len(r.Placements) > 0 {
				t.Errorf("got %v and %v, want nothing and an error that names %s", r, err, field)
			}
		})
	}
}

func TestInvalidItemsAreRefusedAndNameTheField(t *testing.T) {
	for field, change := range map[string]func(*auction.Item){
		"kind":             func(i *auction.Item) { i.Kind = 2 },
		"index: 1: want 0": func(i *auction.Item) { *i = taskItem("t", 50); i.Index = 1 },
		"definition_id":    func(i *auction.Item) { *i = taskItem("t", 50); i.DefinitionID = "d" },
		"guid":             func(i *auction.Item) { i.GUID = "" },
		"index":            func(i *auction.Item) { i.Index = -1 },
		"index: 92233":     func(i *auction.Item) { i.Index = math.MaxInt64 },
		"memory_mb":        func(i *auction.Item) { i.MemoryMB = -1 },
		"disk_mb":          func(i *auction.Item) { i.DiskMB = auction.MaxSize + 1 },
		"max_pids":         func(i *auction.Item) { i.MaxPIDs = -1 },
		"rootfs":           func(i *auction.Item) { i.RootFS = "linux" },
		"rootfs: :linux":   func(i *auction.Item) { i.RootFS = ":linux" },
	} {
		t.Run(field, func(t *testing.T) {
			item := instance("web", 0, 50)
			change(&item)
			r := check(t, []auction.CellState{roomy("a", "z")}, []auction.Item{item, instance("db", 0, 50)}, auction.Policy{})
			if went(r) != "db.0>a" || len(r.Refusals) != 1 || !errors.Is(r.Refusals[0].Invalid, executor.ErrInvalid) ||
				!strings.Contains(r.Refusals[0].String(), field) {
				t.Errorf("got %v", r)
			}
		})
	}
}

func TestInvalidCellsGetNothingAndNameTheField(t *testing.T) {
	for field, change := range map[string]func(*auction.CellState){
		"cell_id":              func(c *auction.CellState) { c.ID = "" },
		"cell_id: b":           func(c *auction.CellState) { c.ID = "b" },
		"total.memory_mb":      func(c *auction.CellState) { c.Total.MemoryMB = auction.MaxSize + 1 },
		"total.disk_mb":        func(c *auction.CellState) { c.Total.DiskMB, c.Remaining.DiskMB = -1, -1 },
		"total.containers":     func(c *auction.CellState) { c.Total.Containers = auction.MaxContainers + 1 },
		"total.pids":           func(c *auction.CellState) { c.Total.PIDs = -1 },
		"remaining.memory_mb":  func(c *auction.CellState) { c.Remaining.MemoryMB = 1001 },
		"remaining.disk_mb":    func(c *auction.CellState) { c.Remaining.DiskMB = -1 },
		"remaining.containers": func(c *auction.CellState) { c.Remaining.Containers = 11 },
		"remaining.pids":       func(c *auction.CellState) { c.Total.PIDs, c.Remaining.PIDs = 5, 6 },
		"starting_containers":  func(c *auction.CellState) { c.StartingContainers = -1 },
	} {
		t.Run(field, func(t *testing.T) {
			cells := []auction.CellState{with(roomy("a", "z"), change), roomy("b", "z"), roomy("c", "z")}
			r := check(t, cells, []auction.Item{instance("web", 0, 50)}, auction.Policy{})
			if len(r.InvalidCells) != 1 || !errors.Is(r.InvalidCells[0].Err, executor.ErrInvalid) ||
				!strings.Contains(r.InvalidCells[0].Err.Error(), field) {
				t.Errorf("got %v, want an error that names %s", r.InvalidCells, field)
			}
			if got := r.Placements[0].CellID; got == cells[0].ID {
				t.Errorf("%s got work", got)
			}
		})
	}
}

func TestTheLargestScoresDoNotOverflow(t *testing.T) {
	p := auction.Policy{StartingContainerWeight: 10, BinPackWeight: 10, MaxStarting: math.MaxInt}
	huge := auction.Capacity{MemoryMB: auction.MaxSize, DiskMB: auction.MaxSize, Containers: auction.MaxContainers, PIDs: auction.MaxSize}
	cells := make([]auction.CellState, 70_000)
	for i := range cells {
		cells[i] = auction.CellState{
			ID: fmt.Sprintf("cell-%05d", i), Total: huge, Remaining: huge, RootFSProviders: []string{"preloaded"},
			StartingContainers: auction.MaxContainers, Unhealthy: i > 1 && i < len(cells)-1,
		}
	}
	item := instance("web", 0, auction.MaxSize)
	item.DiskMB = auction.MaxSize
	r := mustPlace(t, cells, []auction.Item{item}, p)
	if got := r.Placements[0]; got.CellID != "cell-00000" || got.RunnerUp.CellID != "cell-00001" {
		t.Errorf("got %v", got)
	}
	for i := range cells {
		cells[i].Unhealthy = i < len(cells)-3 // the rank counts those with work only
	}
	slices.Reverse(cells)
	if got := mustPlace(t, cells, []auction.Item{item}, p).Placements[0].CellID; got != "cell-69997" {
		t.Errorf("got %v", got)
	}
}

func TestRootFileSystems(t *testing.T) {
	for _, c := range []struct {
		providers, rootFS string
		want              bool
	}{
		{"preloaded:linux", "preloaded:linux", true},
		{"preloaded:linux", "preloaded:linux2", false},
		{"preloaded:linux", "preloaded:", false},
		{"preloaded:linux", "preloaded+layer:linux", false},
		{"preloaded:linux preloaded+layer:linux", "preloaded+layer:linux?layer=https://x/y:z", true},
		{"preloaded:linux docker", "docker:///busybox#latest", true},
		{"preloaded:linux docker", "DOCKER:///busybox", true},
		{"docker", "docker+x:///busybox", false},
		{"oci", "oci:///images/app?x", true},
		{"host", "host:", true},
		{"", "host:", false},
	} {
		t.Run(c.providers+" and "+c.rootFS, func(t *testing.T) {
			cell := roomy("a", "z")
			cell.RootFSProviders = strings.Fields(c.providers)
			item := instance("web", 0, 50)
			item.RootFS = c.rootFS
			if got := len(mustPlace(t, []auction.CellState{cell}, []auction.Item{item}, auction.Policy{}).Placements) == 1; got != c.want {
				t.Errorf("compatible: %v, want %v", got, c.want)
			}
		})
	}
}

func TestPlacementTagsMustCoverTheRequiredAndStayWithinTheOffered(t *testing.T) {
	for _, c := range []struct {
		required, optional, desired string
		want                        bool
	}{
		{"", "", "", true},
		{"", "", "gpu", false},
		{"gpu", "", "", false},
		{"gpu", "", "gpu", true},
		{"gpu", "", "gpu gpu", true},
		{"gpu", "", "dmz", false},
		{"gpu", "", "gpu dmz", false},
		{"gpu", "dmz", "gpu dmz", true},
		{"gpu", "dmz", "gpu", true},
		{"gpu", "dmz", "dmz", false},
		{"", "dmz", "", true},
		{"", "dmz", "dmz", true},
		{"a b", "c", "b a", true},
		{"a b", "c", "a c", false},
	} {
		t.Run(fmt.Sprintf("required %q, optional %q, desired %q", c.required, c.optional, c.desired), func(t *testing.T) {
			cell := roomy("a", "z")
			cell.PlacementTags, cell.OptionalPlacementTags = strings.Fields(c.required), strings.Fields(c.optional)
			item := instance("web", 0, 50)
			item.PlacementTags = strings.Fields(c.desired)
			if got := len(mustPlace(t, []auction.CellState{cell}, []auction.Item{item}, auction.Policy{}).Placements) == 1; got != c.want {
				t.Errorf("compatible: %v, want %v", got, c.want)
			}
		})
	}
}

func TestPreferredZonesPlaceInstancesIn001sZones(t *testing.T) {
	zones := auction.PreferredZones{"z0", "z1", "z2"}
	p := zones.Apply(auction.Policy{})
	var cells []auction.CellState
	for _, z := range zones {
		cells = append(cells, with(roomy("in-"+z, z), func(c *auction.CellState) { c.Total.Containers, c.Remaining.Containers = 2, 2 }))
	}
	var work []auction.Item
	for i := range 9 {
		work = append(work, instance("web", i, 10))
	}
	work = append(work, taskItem("t", 10))
	r := check(t, cells, work, p)
	first := slices.Index(zones, zones.Zone("web", 0))
	for _, placed := range r.Placements {
		if i := placed.Item; i.Kind == auction.LRP {
			want := zones[(first+i.Index)%3]
			if placed.CellID != "in-"+want {
				t.Errorf("%v, want it in %s", placed, want)
			}
		}
	}
	// Six containers fit; the task takes one, so one zone is full early.
	if len(r.Placements) != 6 {
		t.Errorf("%d are placed, want 6", len(r.Placements))
	}
	for _, refused := range r.Refusals {
		if got := refused.Explanation.Reasons[0]; got != (auction.ReasonCount{Reason: "outside the preferred zone", Cells: 2}) {
			t.Errorf("%v", refused)
		}
	}
}

func TestAFullPreferredZoneTurnsAwayHighIndicesOnly(t *testing.T) {
	zones := auction.PreferredZones{"z0", "z1"}
	full, other := zones.Zone("web", 0), zones.Zone("web", 1)
	cells := []auction.CellState{with(roomy("full", full), func(c *auction.CellState) { c.Remaining.Containers = 0 }), roomy("other", other)}
	r := check(t, cells, []auction.Item{instance("web", 0, 10), instance("web", 1, 10), instance("web", 2, 10), instance("web", 3, 10)}, zones.Apply(auction.Policy{}))
	if got, want := went(r), "web.0>other web.1>other web.3>other"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPreferredZonesDoNotTouchTasks(t *testing.T) {
	zones := auction.PreferredZones{"z0", "z1"}
	other := zones.Zone("t", 1)
	full := with(roomy("full", zones.Zone("t", 0)), func(c *auction.CellState) { c.Remaining.MemoryMB = 100 })
	r := check(t, []auction.CellState{full, roomy("other", other)}, []auction.Item{taskItem("t", 10)}, zones.Apply(auction.Policy{}))
	if got := went(r); got != "t>other" {
		t.Errorf("got %q, want the emptier cell", got)
	}
}

func TestAnEmptyListOfPreferredZonesIsNoRule(t *testing.T) {
	if p := (auction.PreferredZones{}).Apply(auction.Policy{}); len(p.PreferredZones) != 0 {
		t.Errorf("got %+v", p)
	}
}

func TestItemsAreMadeFromDeploymentsAndTasks(t *testing.T) {
	at := time.Unix(5, 0)
	info := executor.RunInfo{RootFS: "preloaded:linux", Privileged: true, VolumeMounts: []executor.VolumeMount{{Driver: "smb"}, {Driver: "nfs"}, {Driver: "smb"}}}
	size := executor.Resources{MemoryMB: 1, DiskMB: 2, MaxPIDs: 3}
	d := &lrp.Deployment{ProcessGUID: "web", Settings: lrp.Settings{ImageUsername: "u", ImagePassword: "p"}, Definitions: map[string]lrp.Definition{
		"d1": {},
		"d2": {Resources: size, RunInfo: info, PlacementTags: []string{"gpu"}},
	}}
	key := lrp.Key{ProcessGUID: "web", DefinitionID: "d2", Index: 4, Domain: "apps"}
	got, err := auction.NewLRP(d, key, at)
	if err != nil {
		t.Fatal(err)
	}
	want := auction.Item{
		Key:       auction.Key{Kind: auction.LRP, GUID: "web", Domain: "apps", Index: 4, DefinitionID: "d2"},
		Resources: size, RootFS: "preloaded:linux", VolumeDrivers: []string{"nfs", "smb"}, PlacementTags: []string{"gpu"}, QueuedAt: at,
		Fields: []string{"privileged", "image_username"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Key.LRP() != key {
		t.Errorf("the key comes back as %v", got.Key.LRP())
	}

	key.DefinitionID = "gone"
	if _, err := auction.NewLRP(d, key, at); !errors.Is(err, executor.ErrInvalid) || !strings.Contains(err.Error(), "definition_id: gone") {
		t.Errorf("got %v for an unknown definition", err)
	}

	tk := &task.Task{GUID: "t", Domain: "apps", RejectionCount: 2, Definition: task.Definition{Resources: size, RunInfo: info, PlacementTags: []string{"gpu"}, ImageUsername: "u", ImagePassword: "p"}}
	tk.ModificationTag.Epoch = 7
	want.Key = auction.Key{Kind: auction.Task, GUID: "t", Domain: "apps"}
	want.Attempt = task.Attempt{Epoch: 7, Rejections: 2}
	if diff := cmp.Diff(want, auction.NewTask(tk, at)); diff != "" {
		t.Error(diff)
	}
}

func TestPlacementsPrintWhatDecided(t *testing.T) {
	cells := []auction.CellState{
		with(roomy("a", "z1"), func(c *auction.CellState) { c.LRPs = []lrp.Key{{ProcessGUID: "web"}}; c.StartingContainers = 1 }),
		with(roomy("b", "z1"), func(c *auction.CellState) { c.Index = 3; c.Tasks = []string{"x"} }),
	}
	p := auction.Policy{BinPackWeight: 0.5, Scorer: func(item *auction.Item, cell *auction.CellState, _ auction.Score) float64 {
		return float64(len(item.GUID)) / 2
	}}
	r := mustPlace(t, cells, []auction.Item{instance("web", 3, 100), taskItem("t", 200)}, p)
	for i, line := range []string{
		"task t goes to a: preference 0.5, resources 0.353 (memory 20.0%, disk 1.0%, containers 10.0%, starting +0.25); " +
			"runner-up b: preference 0.5, other tasks on the cell: 1, resources 0.103 (memory 20.0%, disk 1.0%, containers 10.0%, starting +0.00)",
		"lrp web.3 (definition d) goes to b: preference 1.5, 1 of its process in the zone and 0 on the cell, " +
			"resources 0.570 (memory 10.0%, disk 1.0%, containers 10.0%, starting +0.00, bin-pack +0.50); " +
			"runner-up a: preference 1.5, 1 of its process in the zone and 1 on the cell, " +
			"resources 0.673 (memory 30.0%, disk 2.0%, containers 20.0%, starting +0.50)",
	} {
		if got := r.Placements[i].String(); got != line {
			t.Errorf("got  %s\nwant %s", got, line)
		}
	}
	one := mustPlace(t, cells[:1], []auction.Item{instance("db", 0, 100)}, auction.Policy{})
	if got := one.Placements[0].String(); !strings.HasSuffix(got, "; no other cell can take it") {
		t.Errorf("got %s", got)
	}
	if got := auction.Kind(7).String(); got != "Kind(7)" {
		t.Errorf("got %s", got)
	}
}
