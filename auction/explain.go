package auction

import "slices"

// An explainer explains the refusals of a batch that was placed by the index.
// It gives the same explanations as fleet.why, but looks at every cell once for
// each kind of work, not once for each size.
type explainer struct {
	fleet *fleet
	batch *batch
	rooms map[roomKey]*room
	known map[question]*explained
}

// A question is what decides the explanation of a refusal. Items of several shapes
// may ask the same.
type question struct {
	roomKey
	demand demand
}

// A roomKey names the cells that could take an item if they had room: those of
// an offer, and if strict, in one zone only.
type roomKey struct {
	offer  int32
	strict bool
	zone   int32
}

type explained struct {
	why  *Explanation
	text string
}

// A room is what is left on the cells of a roomKey.
type room struct {
	// others counts all other cells, by reason.
	others reasonCounts
	// memory, disk and pids are what remains on each of the cells, in ascending
	// order, and full is how many have no container left.
	memory, disk, pids []int64
	full               int
	// extra is the same as memory for each column, and cells is how many these
	// are.
	extra   [][]int64
	cells   int
	classes []int32
}

func newExplainer(a *auction) *explainer {
	return &explainer{a.fleet, a.batch, map[roomKey]*room{}, map[question]*explained{}}
}

// why explains the refusal of an item.
func (x *explainer) why(item *Item, s *shape) *explained {
	q := question{roomKey{offer: x.batch.wants[s.wants].offer}, s.demand}
	if h := x.fleet.home(item); h.strict {
		q.strict, q.zone = true, h.zone
	}
	found := x.known[q]
	if found == nil {
		why := x.explain(x.room(q.roomKey), q.demand)
		found = &explained{why, why.String()}
		x.known[q] = found
	}
	return found
}

func (x *explainer) room(key roomKey) *room {
	if r := x.rooms[key]; r != nil {
		return r
	}
	o := &x.batch.offers[key.offer]
	r := &room{others: slices.Clone(x.fleet.leftOut), extra: make([][]int64, x.fleet.width)}
	x.rooms[key] = r
	x.fleet.looked += int64(len(x.fleet.cells))
	for i := range x.fleet.cells {
		c := &x.fleet.cells[i]
		reason := c.out
		if reason == "" {
			reason = o.misses[c.offering]
		}
		if reason == "" && key.strict && c.zone != key.zone {
			reason = OutsidePreferredZone
		}
		if reason != "" {
			r.others.add(reason)
			continue
		}
		r.memory = append(r.memory, c.space.memoryMB)
		r.disk = append(r.disk, c.space.diskMB)
		r.pids = append(r.pids, c.space.pids)
		for column := range r.extra {
			r.extra[column] = append(r.extra[column], c.left(int32(column)))
		}
		if c.space.containers < 1 {
			r.full++
		}
		r.cells++
	}
	for _, list := range append([][]int64{r.memory, r.disk, r.pids}, r.extra...) {
		slices.Sort(list)
	}
	for _, z := range o.zones {
		if !key.strict || z.zone == key.zone {
			r.classes = append(r.classes, z.classes...)
		}
	}
	return r
}

func (x *explainer) explain(r *room, d demand) *Explanation {
	e := &Explanation{Cells: len(x.fleet.cells)}
	for _, c := range x.fleet.leftOut {
		e.Cells += c.Cells
	}
	below := func(list []int64, limit int64) int {
		count, _ := slices.BinarySearch(list, limit)
		return count
	}
	reasons := slices.Clone(r.others)
	lacks := []ReasonCount{
		{LacksMemory, below(r.memory, d.memoryMB)},
		{LacksDisk, below(r.disk, d.diskMB)},
		{LacksContainers, r.full},
		{LacksPIDs, below(r.pids, d.pids)},
	}
	for _, w := range d.extra.list() {
		n := r.cells
		if w.column != none {
			n = below(r.extra[w.column], w.amount)
		}
		lacks = append(lacks, ReasonCount{Lacks(w.name), n})
	}
	for _, c := range lacks {
		if c.Cells > 0 {
			reasons = append(reasons, c)
		}
	}
	e.Reasons = reasons.sorted()
	miss := nearest{demand: d, cell: none, distance: endless}
	for _, class := range r.classes {
		c := &x.fleet.classes[class]
		c.tree.catchUp(x.fleet, c.cells)
		miss.descend(&c.tree, 1, miss.bound(&c.tree, 1))
	}
	x.fleet.looked += miss.looked
	if miss.cell != none {
		c := &x.fleet.cells[miss.cell]
		e.Nearest = &NearMiss{c.id, c.lacks(d)}
	}
	return e
}

// A nearest finds the cell that lacks least of a demand, and the first of
// equals.
type nearest struct {
	demand
	cell     int32
	distance int64
	looked   int64 // nodes
}

// descend searches below node i, whose bound is d.
func (s *nearest) descend(t *tree, i int32, d int64) {
	s.looked++
	if d > s.distance || d == s.distance && t.first(i) >= s.cell {
		return
	}
	if i >= t.leaves {
		s.cell, s.distance = t.first(i), d
		return
	}
	left, right := s.bound(t, 2*i), s.bound(t, 2*i+1)
	if right < left {
		s.descend(t, 2*i+1, right)
		s.descend(t, 2*i, left)
		return
	}
	s.descend(t, 2*i, left)
	s.descend(t, 2*i+1, right)
}

// bound is a lower bound of the distance of the cells below node i, and endless if
// there are none.
func (s *nearest) bound(t *tree, i int32) int64 {
	n := &t.nodes[i]
	if n.most.containers < 0 {
		return endless
	}
	return distance(s.need.beyond(n.most), s.need) +
		s.extra.distance(func(column int32) int64 { return t.shelf(i, column).most })
}
