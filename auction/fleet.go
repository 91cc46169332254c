package auction

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/diegosdk/diego/executor"
)

// A cell is one cell of the fleet while a batch is placed. Cells are numbered
// in the order of their ids; a number stands for the cell wherever speed counts.
type cell struct {
	// state is a copy: its capacity and counts change with each placement.
	state CellState
	// tasks is the number of tasks on the cell.
	tasks int32
	// rank is the cell's place in the bin-pack order of its zone.
	rank int32
	// out is why the cell takes no work at all, or "".
	out CellReason
	// class is meaningless for a cell that is out.
	class int32
	zone  int32
	// leaf is the cell's node in the tree of its class.
	leaf int32
	// place is the leaf's among the leaves of all trees; see marks.
	place int32
}

// A need is what an item takes from a cell besides one container.
type need struct{ memoryMB, diskMB, pids int64 }

func (i *Item) need() need { return need{i.MemoryMB, i.DiskMB, i.MaxPIDs} }

// within reports whether n is nowhere larger than other.
func (n need) within(other need) bool {
	return n.memoryMB <= other.memoryMB && n.diskMB <= other.diskMB && n.pids <= other.pids
}

// pids is what remains of the cell's PIDs, where uncounted is without end.
func (c *cell) pids() int64 {
	if c.state.Total.PIDs == 0 {
		return math.MaxInt64
	}
	return c.state.Remaining.PIDs
}

func (c *cell) fits(n need) bool {
	r := &c.state.Remaining
	return r.Containers >= 1 && n.within(need{r.MemoryMB, r.DiskMB, c.pids()})
}

// A weight is what one unit of a resource adds to the score of a cell, where
// three full resources are 3 << scoreBits. A resource that the cell does not
// have adds nothing.
type weight struct{ memory, disk, container int64 }

// scoreBits leaves room in 64 bits for the largest score there can be: weights
// are at most 10, counts at most 2^17 (starting) and 2^16 (bin-pack).
const scoreBits = 40

func weigh(total Capacity) weight {
	of := func(n int64) int64 {
		if n == 0 {
			return 0
		}
		return 1 << scoreBits / n
	}
	return weight{of(total.MemoryMB), of(total.DiskMB), of(total.Containers)}
}

// A class is a set of cells that rank alike for every item: same zone, same
// totals, same offers. A tournament tree over its cells finds the best.
type class struct {
	like   *CellState // any of them
	zone   int32
	weight weight
	tree   tree
}

// adds is what an item adds to the score of any cell of the class.
func (c *class) adds(n need) int64 {
	return n.memoryMB*c.weight.memory + n.diskMB*c.weight.disk + c.weight.container
}

// A fleet is all cells while a batch is placed.
type fleet struct {
	cells   []cell
	zones   int
	classes []class
	// inFlight is the number of starting containers on cells that take work.
	inFlight int
	// reversed are the bits of a cell's use that count the other way round; see
	// Place.
	reversed int64
	// starting and binPack are the policy's weights as scores.
	starting, binPack   int64
	startingF, binPackF float64
	invalid             []InvalidCell
	// preferred has the zones of the policy's list by number, none for those
	// without a cell.
	preferred      []int32
	preferredZones PreferredZones
	// nobody is the set without any cell.
	nobody marks
	// leftOut counts further cells of which there is no state.
	leftOut reasonCounts
}

func newFleet(states []CellState, p *Policy, packed bool) *fleet {
	f := &fleet{
		cells: make([]cell, len(states)),

		preferredZones: p.PreferredZones,
		startingF:      p.startingContainerWeight(),
		binPackF:       p.BinPackWeight,
	}
	f.starting = int64(math.Round(f.startingF * 3 * (1 << scoreBits)))
	f.binPack = int64(math.Round(f.binPackF * 3 * (1 << scoreBits)))
	if packed {
		f.reversed = packStep - 1
	}
	order := make([]int32, len(states))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(states[a].ID, states[b].ID) })
	for i, from := range order {
		c := &f.cells[i]
		c.state = states[from]
		c.state.LRPs = slices.Clip(c.state.LRPs)
		c.state.Tasks = slices.Clip(c.state.Tasks)
		c.tasks = int32(len(c.state.Tasks))
	}
	f.findOut()
	f.rank()
	f.classify()
	return f
}

// findOut settles which cells take no work.
func (f *fleet) findOut() {
	var v executor.Validator
	for i := range f.cells {
		c := &f.cells[i]
		second := i > 0 && f.cells[i-1].state.ID == c.state.ID
		twin := second || i+1 < len(f.cells) && f.cells[i+1].state.ID == c.state.ID
		if twin {
			v.Check(false, "cell_id", c.state.ID, "the id of one cell only")
		} else {
			c.state.Validate(&v)
		}
		switch err := v.Err(); {
		case second:
			c.out = Invalid
			v = executor.Validator{}
		case err != nil:
			c.out = Invalid
			f.invalid = append(f.invalid, InvalidCell{CellID: c.state.ID, Err: err})
			v = executor.Validator{}
		case c.state.Evacuating:
			c.out = Evacuating
		case c.state.Unhealthy:
			c.out = Unhealthy
		default:
			f.inFlight += c.state.StartingContainers
		}
	}
}

// rank numbers the zones, and within each the cells that take work.
func (f *fleet) rank() {
	order := make([]*cell, len(f.cells))
	for i := range f.cells {
		order[i] = &f.cells[i]
	}
	slices.SortStableFunc(order, func(a, b *cell) int {
		return cmp.Or(strings.Compare(a.state.Zone, b.state.Zone), cmp.Compare(a.state.Index, b.state.Index))
	})
	f.preferred = slices.Repeat([]int32{none}, len(f.preferredZones))
	place := int32(0)
	for i, c := range order {
		if i == 0 || order[i-1].state.Zone != c.state.Zone {
			for n, zone := range f.preferredZones {
				if zone == c.state.Zone {
					f.preferred[n] = int32(f.zones)
				}
			}
			f.zones++
			place = 0
		}
		c.zone = int32(f.zones - 1)
		if c.out == "" {
			c.rank = min(place, MaxContainers)
			place++
		}
	}
}

// classify puts the cells that take work into classes and grows their trees.
func (f *fleet) classify() {
	known := map[string]int32{}
	var members [][]int32
	var key []byte
	var sorted []string
	for i := range f.cells {
		c := &f.cells[i]
		if c.out != "" {
			continue
		}
		key, sorted = c.state.appendClassKey(key[:0], sorted)
		n, ok := known[string(key)]
		if !ok {
			n = int32(len(f.classes))
			known[string(key)] = n
			f.classes = append(f.classes, class{like: &c.state, zone: c.zone, weight: weigh(c.state.Total)})
			members = append(members, nil)
		}
		c.class = n
		members[n] = append(members[n], int32(i))
	}
	places := int32(0)
	for n := range f.classes {
		places = f.classes[n].tree.grow(f, members[n], places)
	}
	f.nobody = newMarks(f, places)
}

// appendClassKey appends what makes cells interchangeable apart from their use.
// The totals of PIDs do not take part in a score. sorted is room to sort in.
func (c *CellState) appendClassKey(key []byte, sorted []string) ([]byte, []string) {
	for _, n := range [...]int64{c.Total.MemoryMB, c.Total.DiskMB, c.Total.Containers} {
		key = append(strconv.AppendInt(key, n, 10), ' ')
	}
	key = appendText(key, c.Zone)
	for _, set := range [...][]string{c.RootFSProviders, c.VolumeDrivers, c.PlacementTags, c.OptionalPlacementTags} {
		if !slices.IsSorted(set) {
			sorted = append(sorted[:0], set...)
			slices.Sort(sorted)
			set = sorted
		}
		key = appendTexts(key, set)
	}
	return key, sorted
}

// appendText and appendTexts write lengths first, so that no two values make
// the same key.
func appendText(key []byte, s string) []byte {
	key = append(strconv.AppendInt(key, int64(len(s)), 10), ' ')
	return append(key, s...)
}

func appendTexts(key []byte, list []string) []byte {
	key = append(strconv.AppendInt(key, int64(len(list)), 10), ' ')
	for _, s := range list {
		key = appendText(key, s)
	}
	return key
}

// packStep is half of one resource, a sixth of the mean of three. It is a
// power of two, so that reversing the order within every step is reversing bits.
const packStep = 1 << scoreBits / 2

// score is the cell's resource score as it is, for an item that adds nothing.
func (f *fleet) score(c *cell, k Kind) int64 {
	w := &f.classes[c.class].weight
	t, r := &c.state.Total, &c.state.Remaining
	use := (t.MemoryMB-r.MemoryMB)*w.memory + (t.DiskMB-r.DiskMB)*w.disk + (t.Containers-r.Containers)*w.container
	s := use ^ f.reversed + int64(c.state.StartingContainers)*f.starting
	if k == LRP {
		s += int64(c.rank) * f.binPack
	}
	return s
}

// explain is the score of the cell with the item on it, in its parts.
func (f *fleet) explain(n int32, e *entry, zoneInstances, cellInstances int32) Score {
	c := &f.cells[n]
	t, r := &c.state.Total, &c.state.Remaining
	s := Score{
		ZoneInstances: int(zoneInstances),
		CellInstances: int(cellInstances),
		Memory:        use(t.MemoryMB, r.MemoryMB-e.need.memoryMB),
		Disk:          use(t.DiskMB, r.DiskMB-e.need.diskMB),
		Containers:    use(t.Containers, r.Containers-1),
		Starting:      float64(c.state.StartingContainers) * f.startingF,
	}
	if e.kind() == Task {
		s.CellTasks = int(c.tasks)
	} else {
		s.BinPack = float64(c.rank) * f.binPackF
	}
	return s
}

func use(total, remaining int64) float64 {
	if total == 0 {
		return 0
	}
	return float64(total-remaining) / float64(total)
}

// reserve takes what the entry needs from the cell.
func (f *fleet) reserve(n int32, e *entry) {
	c := &f.cells[n]
	r := &c.state.Remaining
	r.MemoryMB -= e.need.memoryMB
	r.DiskMB -= e.need.diskMB
	r.Containers--
	if c.state.Total.PIDs != 0 {
		r.PIDs -= e.need.pids
	}
	c.state.StartingContainers++
	f.inFlight++
	if e.kind() == Task {
		c.tasks++
	}
}
