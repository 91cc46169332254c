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
// in the order of their ids; where speed counts, the number stands for the
// cell.
//
// What a search looks at comes first, so that it is in few cache lines.
type cell struct {
	space  space
	weight weight
	// use is what the use of the cell's resources adds to its score.
	use int64
	// starting counts the containers that are starting, and tasks the tasks.
	starting, tasks int32
	zone            int32
	// rank is the cell's place in the bin-pack order of its zone.
	rank int32
	// offering and class mean nothing for a cell that is out.
	offering, class int32
	id              string
	total           Capacity
	// stocks are the cell's further resources, in the order of their names.
	stocks []stock
	// out is why the cell takes no work at all, or "".
	out CellReason
	// state is what was passed to Place. Where a policy has rules of its own, it
	// is a copy, and changes with each placement.
	state *CellState
}

// A need is what an item takes from a cell besides one container and further
// resources.
type need struct{ memoryMB, diskMB, pids int64 }

func (i *Item) need() need { return need{i.MemoryMB, i.DiskMB, i.MaxPIDs} }

// within reports whether no part of n is larger than that of other.
func (n need) within(other need) bool {
	return n.memoryMB <= other.memoryMB && n.diskMB <= other.diskMB && n.pids <= other.pids
}

// A space is what a cell has left, besides further resources.
type space struct {
	need
	containers int64
}

// endless is what is left of containers and PIDs where they are not counted, and
// the distance where there is no cell.
const endless = math.MaxInt64

// space is what the cell says that it has left.
func (c *CellState) space() space {
	r := space{need{c.Remaining.MemoryMB, c.Remaining.DiskMB, c.Remaining.PIDs}, c.Remaining.Containers}
	if c.Total.PIDs == 0 {
		r.pids = endless
	}
	if c.Total.Containers == 0 {
		r.containers = endless
	}
	return r
}

// take takes what an item needs, and a container.
func (r *space) take(n need) {
	r.memoryMB -= n.memoryMB
	r.diskMB -= n.diskMB
	if r.pids != endless {
		r.pids -= n.pids
	}
	if r.containers != endless {
		r.containers--
	}
}

func (r *space) fits(n need) bool { return r.containers >= 1 && n.within(r.need) }

func (c *cell) fits(d demand) bool { return c.space.fits(d.need) && d.extra.fits(c) }

// A class is a set of cells of one zone that are open to the same work of the
// batch. Its line or its tree finds the best.
type class struct {
	zone int32
	// offering is the offering of one of the cells.
	offering int32
	// cells are in the order of their places.
	cells []int32
	tree  tree
	// line is nil if the cells are of several sizes.
	line *line
}

// A backlog is the cells of a class that have changed since its tree or line was
// brought up to date.
type backlog struct {
	cells []int32
	// all means that most cells may have changed, so all count as changed.
	all bool
}

// add adds cell n of a class that has of cells.
func (b *backlog) add(n int32, of int) {
	if b.all = b.all || 8*len(b.cells) > of; !b.all {
		b.cells = append(b.cells, n)
	}
}

func (b *backlog) clear() { b.cells, b.all = b.cells[:0], false }

// A fleet is all cells while a batch is placed.
type fleet struct {
	cells []cell
	zones int
	// offerings are the different offers of cells, each represented by one cell.
	offerings []*CellState
	classes   []class
	// columns are the names of the further resources of cells that take work, with
	// their columns, of which there are width; see stock.
	columns map[string]int32
	width   int32
	// kinds is how many kinds of work the trees are for: 1 if the batch has no
	// tasks.
	kinds int
	// inFlight is the number of starting containers on cells that take work.
	inFlight int
	// reversed are the bits of a cell's use that are counted in reverse; see
	// Place.
	reversed int64
	// starting and binPack are the policy's weights as scores.
	starting, binPack   int64
	startingF, binPackF float64
	invalid             []InvalidCell
	// preferred has the zones of the policy's list by number, or none for zones
	// without a cell.
	preferred      []int32
	preferredZones PreferredZones
	// places are those of the cells' leaves among the leaves of all trees; see
	// marks. They mean nothing for a cell that is out.
	places []int32
	// nobody is the empty set of cells.
	nobody marks
	// leftOut counts further cells without a state.
	leftOut reasonCounts
	// looked counts the cells and the nodes of trees that were looked at: the cost
	// of a batch, independent of the machine.
	looked int64
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
	if p.own() {
		states = slices.Clone(states)
		for i := range states {
			states[i].LRPs = slices.Clip(states[i].LRPs)
			states[i].Tasks = slices.Clip(states[i].Tasks)
		}
	}
	order := make([]int32, len(states))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(states[a].ID, states[b].ID) })
	for i, from := range order {
		s := &states[from]
		f.cells[i] = cell{state: s, id: s.ID, total: s.Total, space: s.space(), starting: int32(s.StartingContainers), tasks: int32(len(s.Tasks))}
	}
	f.findOut()
	f.rank()
	f.compare()
	return f
}

// findOut decides which cells take no work.
func (f *fleet) findOut() {
	var v executor.Validator
	for i := range f.cells {
		c := &f.cells[i]
		second := i > 0 && f.cells[i-1].id == c.id
		twin := second || i+1 < len(f.cells) && f.cells[i+1].id == c.id
		if twin {
			v.Check(false, "cell_id", c.id, "the id of one cell only")
		} else {
			c.state.Validate(&v)
		}
		switch err := v.Err(); {
		case second:
			c.out = Invalid
			v = executor.Validator{}
		case err != nil:
			c.out = Invalid
			f.invalid = append(f.invalid, InvalidCell{CellID: c.id, Err: err})
			v = executor.Validator{}
		case c.state.Evacuating:
			c.out = Evacuating
		case c.state.Cordoned:
			c.out = Cordoned
		case c.state.Unhealthy:
			c.out = Unhealthy
		case c.state.Settling:
			c.out = Settling
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

// compare numbers what the cells that take work offer, and sizes them up.
func (f *fleet) compare() {
	known := map[string]int32{}
	var key []byte
	var sorted []string
	for i := range f.cells {
		c := &f.cells[i]
		if c.out != "" {
			continue
		}
		key, sorted = c.state.appendOffering(key[:0], sorted)
		n, ok := known[string(key)]
		if !ok {
			n = int32(len(f.offerings))
			known[string(key)] = n
			f.offerings = append(f.offerings, c.state)
		}
		t, r, w := &c.total, &c.space, weigh(c.total)
		c.offering, c.weight = n, w
		c.use = (t.MemoryMB-r.memoryMB)*w.memory + (t.DiskMB-r.diskMB)*w.disk + (t.Containers-r.containers)*w.container
		f.stock(c)
	}
}

// classify puts the cells that take work into classes, grows their trees and
// assigns the classes to the offers.
func (f *fleet) classify(offers []offer) {
	f.number()
	known := map[string]int32{}
	var key []byte
	for i := range f.cells {
		c := &f.cells[i]
		if c.out != "" {
			continue
		}
		key = append(strconv.AppendInt(key[:0], int64(c.zone), 10), ' ')
		for o := range offers {
			key = append(key, byte(offers[o].misses[c.offering].stage()))
		}
		for column := range f.width {
			key = strconv.AppendBool(key, c.in(column) != nil)
		}
		n, ok := known[string(key)]
		if !ok {
			n = int32(len(f.classes))
			known[string(key)] = n
			f.classes = append(f.classes, class{zone: c.zone, offering: c.offering})
		}
		c.class = n
		f.classes[n].cells = append(f.classes[n].cells, int32(i))
	}
	f.places = make([]int32, len(f.cells))
	end := int32(0)
	for n := range f.classes {
		c := &f.classes[n]
		end = c.tree.grow(f, c.cells, end)
		if c.tree.sizes == nil {
			c.line = newLine(len(c.cells))
		}
	}
	f.nobody = newMarks(f, end)
	for o := range offers {
		offers[o].find(f)
	}
}

// appendOffering appends what decides whether the cell may run work that has
// room there. sorted is scratch space for sorting.
func (c *CellState) appendOffering(key []byte, sorted []string) ([]byte, []string) {
	for _, set := range [...][]string{c.RootFSProviders, c.VolumeDrivers, c.PlacementTags, c.OptionalPlacementTags, c.RefusedFields} {
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

// changed notes that a cell has got work.
func (f *fleet) changed(n int32) {
	c := &f.classes[f.cells[n].class]
	c.tree.stale.add(n, len(c.cells))
	if c.line != nil {
		c.line.stale.add(n, len(c.cells))
	}
}

// reserve takes what an item needs from the cell.
func (f *fleet) reserve(n int32, k Kind, d demand) {
	c := &f.cells[n]
	c.space.take(d.need)
	c.use += c.weight.adds(d.need) + d.extra.adds(c)
	d.extra.take(c)
	c.starting++
	f.inFlight++
	if k == Task {
		c.tasks++
	}
}
