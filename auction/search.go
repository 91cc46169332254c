package auction

import "math/bits"

// none means that there is no cell.
const none = -1

// picks are the best and the second best cell for an item; noPick stands for
// none.
type picks [2]pick

var noPick = pick{rank: last}

// A search looks for the two cells with the least rank.
type search struct {
	fleet  *fleet
	census *census
	kind   Kind
	demand
	home home
	// level is the number of instances of the process on the wanted cells. Cells
	// with more are passed over: they are in above, if that is not nil.
	level int32
	above *marks
	// adds is what the item adds to the score of every cell of the present tree,
	// if they are of one size.
	adds int64
	// top are the best two so far, or last.
	top [2]rank
}

// pick finds the cells for an item by the built-in objective.
func (s *search) pick(k Kind, d demand, o *offer, h home) picks {
	s.kind, s.demand, s.home = k, d, h
	if s.kind == Task {
		s.top = [2]rank{last, last}
		for _, z := range o.zones {
			for _, n := range z.classes {
				s.class(n)
			}
		}
		return picks{{rank: s.top[0]}, {rank: s.top[1]}}
	}
	p, done := picks{noPick, noPick}, tier{inZone: -1}
	for p[1] == noPick {
		next, found := tier{}, false
		for _, z := range o.zones {
			if t, allowed := s.tier(z.zone); allowed && done.before(t) && (!found || t.before(next)) {
				next, found = t, true
			}
		}
		if !found {
			break
		}
		done = next
		s.zones(o, next)
		p.add(next, s.top)
	}
	return p
}

// tier returns the tier of the zone; allowed is false if the item may not go
// there.
func (s *search) tier(zone int32) (t tier, allowed bool) {
	preference, allowed := s.home.rank(zone)
	return tier{preference, s.census.inZone[zone]}, allowed
}

// zones looks for cells in the zones of a tier, first for those with the fewest
// instances of the process.
func (s *search) zones(o *offer, of tier) {
	s.top = [2]rank{last, last}
	level, ok := s.census.next(0)
	for ; ok && s.top[1] == last; level, ok = s.census.next(level + 1) {
		s.level, s.above = level, nil
		if w := s.census.wide; w != nil && int(level) < len(w.above) {
			s.above = &w.above[level]
		}
		for _, z := range o.zones {
			if t, allowed := s.tier(z.zone); allowed && t == of {
				for _, n := range z.classes {
					s.class(n)
				}
			}
		}
	}
}

// add fills the empty places of p with cells of a tier.
func (p *picks) add(of tier, top [2]rank) {
	for _, r := range top {
		switch {
		case r == last:
		case p[0] == noPick:
			p[0] = pick{of, r}
		case p[1] == noPick:
			p[1] = pick{of, r}
		}
	}
}

// class looks for cells in a class: along its line, then, if closed cells stand
// first in it, among the open ones, and else in the tree. It looks at the open
// ones at once if they are few.
func (s *search) class(n int32) {
	c := &s.fleet.classes[n]
	t := &c.tree
	if !t.nodes[1].most.fits(s.need) || s.short(t, 1) {
		return
	}
	s.adds = t.weight.adds(s.need) + s.extra.addsBelow(t, 1)
	sets := s.above != nil && t.leaves >= wordBits
	crowded := sets && fewOpen*s.above.clear <= s.fleet.nobody.clear
	if c.line != nil && s.kind == LRP {
		c.line.catchUp(s.fleet, c.cells, t.place)
		if !crowded {
			done, closed := s.walk(c.line)
			if done {
				return
			}
			crowded = sets && closed
		}
	}
	if crowded {
		s.each(c)
		return
	}
	t.catchUp(s.fleet, c.cells)
	if t.sizes != nil {
		s.descendUnlike(t, 1)
	} else {
		s.descend(t, 1, none)
	}
}

// fewOpen is the number of cells of which at most one is open where open cells
// are few.
const fewOpen = 32

// each offers the open cells of a class one by one.
func (s *search) each(c *class) {
	first := c.tree.place / wordBits
	for i, above := range s.above.words[first : first+c.tree.leaves/wordBits] {
		s.fleet.looked++
		for open := ^above; open != 0; open &= open - 1 {
			s.fleet.looked++
			at := i*wordBits + bits.TrailingZeros64(open)
			if c.line != nil && c.line.scores[at]+s.adds > s.top[1].score {
				continue
			}
			n := c.cells[at]
			r := rank{0, s.level, n}
			if c.line != nil {
				r.score = c.line.scores[at] + s.adds
			} else {
				r.score = s.fleet.with(&s.fleet.cells[n], s.kind, s.demand)
			}
			if r.before(s.top[1]) && n != s.top[0].cell && s.fleet.cells[n].fits(s.demand) {
				s.offer(r)
			}
		}
	}
}

// descend offers the cells below node i of a tree of cells of one size, the
// more promising half first. The cell tried was offered before.
//
// The best cell of a node is offered before its halves are looked at, so that
// the best so far is good from the start. Usually the search then follows only
// one path, the winner's, and finds the runner-up beside it.
func (s *search) descend(t *tree, i, tried int32) {
	s.fleet.looked++
	n := &t.nodes[i]
	if !n.most.fits(s.need) || s.short(t, i) {
		return
	}
	r := n.best[s.kind]
	r.score += s.adds
	if s.kind == LRP {
		r.level = s.level
	}
	if !r.before(s.top[1]) {
		return
	}
	if r.cell != tried {
		place := s.fleet.places[r.cell]
		leaf := t.leaf(place)
		if s.open(r.cell, place) && t.nodes[leaf].most.fits(s.need) && !s.short(t, leaf) {
			s.offer(r)
		}
		if !r.before(s.top[1]) {
			return
		}
	}
	if i >= t.leaves {
		return
	}
	if t.nodes[2*i+1].best[s.kind].before(t.nodes[2*i].best[s.kind]) {
		s.descend(t, 2*i+1, r.cell)
		s.descend(t, 2*i, r.cell)
		return
	}
	s.descend(t, 2*i, r.cell)
	s.descend(t, 2*i+1, r.cell)
}

// short reports whether no cell below node i has enough of the further resources.
func (s *search) short(t *tree, i int32) bool { return s.extra != nil && !s.extra.fitsBelow(t, i) }

// descendUnlike does the same in a tree of cells of several sizes, where no
// node knows the best cell.
func (s *search) descendUnlike(t *tree, i int32) {
	s.fleet.looked++
	n := &t.nodes[i]
	if !n.most.fits(s.need) || s.short(t, i) {
		return
	}
	r := s.least(t, i, n.best[s.kind])
	if !r.before(s.top[1]) {
		return
	}
	if i >= t.leaves {
		if s.open(r.cell, i-t.leaves+t.place) {
			s.offer(r)
		}
		return
	}
	if t.nodes[2*i+1].best[s.kind].before(t.nodes[2*i].best[s.kind]) {
		s.descendUnlike(t, 2*i+1)
		s.descendUnlike(t, 2*i)
		return
	}
	s.descendUnlike(t, 2*i)
	s.descendUnlike(t, 2*i+1)
}

// least is a lower bound of the ranks of the cells below node i with the item
// on them; r is the node's rank without the item.
func (s *search) least(t *tree, i int32, r rank) rank {
	r.score += t.sizes[i].weight.adds(s.need) + s.extra.addsBelow(t, i)
	r.cell = t.sizes[i].first
	if s.kind == LRP {
		r.level = s.level
	}
	return r
}

// open reports whether the cell at a place has no more instances than the level. A
// cell with fewer that has room is already the best.
func (s *search) open(cell, place int32) bool {
	switch {
	case s.kind == Task:
		return true
	case cell == s.top[0].cell:
		return false
	case s.above != nil:
		return !s.above.has(place)
	}
	return s.census.counts[cell] <= s.level
}

func (s *search) offer(r rank) {
	switch {
	case r.before(s.top[0]):
		s.top[0], s.top[1] = r, s.top[0]
	case r.before(s.top[1]):
		s.top[1] = r
	}
}
