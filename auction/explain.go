package auction

import "slices"

// An explainer explains the refusals of a batch that was placed by the index. It
// says the same as fleet.why, but looks at every cell once for each kind of work
// and not once for each size.
type explainer struct {
	fleet *fleet
	batch *batch
	rooms map[roomKey]*room
	known map[shape]*explained
}

// A shape is all of an item that matters for which cells can take it. Refusals
// of one shape share their explanation.
type shape struct {
	roomKey
	need need
}

// A roomKey names the cells that could take an item if they had room: those of
// an offer, in one zone only if strict says so.
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
	// others counts the cells that are none of them, by reason.
	others reasonCounts
	// memory, disk and pids are what remains on each of the cells, in ascending
	// order, and full is how many have no container left.
	memory, disk, pids []int64
	full               int
	classes            []int32
}

func newExplainer(a *auction) *explainer {
	return &explainer{a.fleet, a.batch, map[roomKey]*room{}, map[shape]*explained{}}
}

// why explains the refusal of an item.
func (x *explainer) why(item *Item, e *entry) *explained {
	s := shape{roomKey{offer: x.batch.wants[e.wants].offer}, e.need}
	if h := x.fleet.home(item); h.strict {
		s.strict, s.zone = true, h.zone
	}
	found := x.known[s]
	if found == nil {
		why := x.explain(x.room(s.roomKey), e.need)
		found = &explained{why, why.String()}
		x.known[s] = found
	}
	return found
}

func (x *explainer) room(key roomKey) *room {
	if r := x.rooms[key]; r != nil {
		return r
	}
	o := &x.batch.offers[key.offer]
	r := &room{others: slices.Clone(x.fleet.leftOut)}
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
		r.memory = append(r.memory, c.state.Remaining.MemoryMB)
		r.disk = append(r.disk, c.state.Remaining.DiskMB)
		r.pids = append(r.pids, c.pids())
		if c.state.Remaining.Containers < 1 {
			r.full++
		}
	}
	for _, list := range [][]int64{r.memory, r.disk, r.pids} {
		slices.Sort(list)
	}
	for _, z := range o.zones {
		if !key.strict || z.zone == key.zone {
			r.classes = append(r.classes, z.classes...)
		}
	}
	return r
}

func (x *explainer) explain(r *room, n need) *Explanation {
	e := &Explanation{Cells: len(x.fleet.cells)}
	for _, c := range x.fleet.leftOut {
		e.Cells += c.Cells
	}
	below := func(list []int64, limit int64) int {
		count, _ := slices.BinarySearch(list, limit)
		return count
	}
	reasons := slices.Clone(r.others)
	for _, c := range [...]ReasonCount{
		{LacksMemory, below(r.memory, n.memoryMB)},
		{LacksDisk, below(r.disk, n.diskMB)},
		{LacksContainers, r.full},
		{LacksPIDs, below(r.pids, n.pids)},
	} {
		if c.Cells > 0 {
			reasons = append(reasons, c)
		}
	}
	e.Reasons = reasons.sorted()
	miss := nearest{need: n, cell: none}
	for _, class := range r.classes {
		t := &x.fleet.classes[class].tree
		miss.descend(t, 1, t.leaves)
	}
	x.fleet.looked += miss.looked
	if miss.cell != none {
		c := &x.fleet.cells[miss.cell]
		e.Nearest = &NearMiss{c.state.ID, c.lacks(n)}
	}
	return e
}

// A nearest looks for the cell that lacks least of a need, and of equals for the
// first.
type nearest struct {
	need     need
	cell     int32
	distance int64
	looked   int64 // nodes
}

// descend looks below node i, which has so many places.
func (s *nearest) descend(t *tree, i, places int32) {
	s.looked++
	d, ok := s.bound(t, i, places)
	if !ok {
		return
	}
	if places == 1 {
		s.cell, s.distance = t.first(i, 1), d
		return
	}
	left, _ := s.bound(t, 2*i, places/2)
	right, ok := s.bound(t, 2*i+1, places/2)
	if ok && right < left {
		s.descend(t, 2*i+1, places/2)
		s.descend(t, 2*i, places/2)
		return
	}
	s.descend(t, 2*i, places/2)
	s.descend(t, 2*i+1, places/2)
}

// bound is the least distance that a cell below node i can have; ok says whether
// it may be better than what was found.
func (s *nearest) bound(t *tree, i, places int32) (d int64, ok bool) {
	n := &t.nodes[i]
	if n.containers < 0 {
		return 0, false // there is no cell
	}
	d = distance(s.need.beyond(n.most, n.containers), s.need)
	return d, s.cell == none || d < s.distance || d == s.distance && t.first(i, places) < s.cell
}
