package auction

// none stands for a cell where there is none.
const none = -1

// A pick is the cells chosen for an item: the best and the second best, or none.
type pick struct {
	cell, runnerUp int32
	// preference is that of the scorer or of the preferred zone for each of them.
	preference, runnerUpPreference float64
}

var noPick = pick{cell: none, runnerUp: none}

// A search looks for the two cells with the least rank.
type search struct {
	kind   Kind
	need   need
	home   home
	census *census
	// level is the number of instances of the process on the cells that are
	// looked for. Cells with more are passed over: they are above, if that is
	// not nil.
	level int32
	above *marks
	// adds is what the item adds to the score of every cell of the class at
	// hand, if they are of one size.
	adds int64
	top  [2]rank
	// looked counts the nodes that were looked at.
	looked int64
}

// pick finds the cells for an item by the built-in objective.
func (f *fleet) pick(e *entry, o *offer, c *census, h home) pick {
	s := search{kind: e.kind(), need: e.need, census: c, home: h}
	defer func() { f.looked += s.looked }()
	if s.kind == Task {
		s.top = [2]rank{last, last}
		for _, z := range o.zones {
			s.classes(f, z.classes)
		}
		return noPick.then(s.top, 0)
	}
	p, done := noPick, tier{inZone: -1}
	for p.runnerUp == none {
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
		s.zones(f, o, next)
		p = p.then(s.top, next.preference)
	}
	return p
}

// A tier is the zones that the item prefers alike and that have equally many
// instances of its process. Cells of one tier compete with each other.
type tier struct {
	preference float64
	inZone     int32
}

func (t tier) before(other tier) bool {
	if t.preference != other.preference {
		return t.preference < other.preference
	}
	return t.inZone < other.inZone
}

// tier is the zone's; it is not allowed if the item may not go there.
func (s *search) tier(zone int32) (t tier, allowed bool) {
	preference, allowed := s.home.rank(zone)
	return tier{preference, s.census.inZone[zone]}, allowed
}

// zones looks for cells in the zones of a tier, first for those with the fewest
// instances of the process.
func (s *search) zones(f *fleet, o *offer, of tier) {
	s.top = [2]rank{last, last}
	level, ok := s.census.next(0)
	for ; ok && s.top[1] == last; level, ok = s.census.next(level + 1) {
		s.level, s.above = level, nil
		if w := s.census.wide; w != nil && int(level) < len(w.above) {
			s.above = &w.above[level]
		}
		for _, z := range o.zones {
			if t, allowed := s.tier(z.zone); allowed && t == of {
				s.classes(f, z.classes)
			}
		}
	}
}

// then fills what is empty in p.
func (p pick) then(top [2]rank, preference float64) pick {
	for _, r := range top {
		switch {
		case r == last:
		case p.cell == none:
			p.cell, p.preference = r.cell, preference
		case p.runnerUp == none:
			p.runnerUp, p.runnerUpPreference = r.cell, preference
		}
	}
	return p
}

func (s *search) classes(f *fleet, classes []int32) {
	for _, n := range classes {
		t := &f.classes[n].tree
		s.adds = 0
		if t.sizes == nil {
			s.adds = t.weight.adds(s.need)
		}
		s.descend(t, 1, t.place, t.leaves)
	}
}

// descend offers the cells below node i, the more promising half first. Their
// leaves have the given number of places from place on.
func (s *search) descend(t *tree, i, place, places int32) {
	s.looked++
	n := &t.nodes[i]
	if !n.fits(s.need) {
		return
	}
	// No cell below comes before r.
	r := n.best[s.kind]
	r.score += s.adds
	if t.sizes != nil {
		r.score += t.sizes[i].weight.adds(s.need)
		r.cell = t.sizes[i].first
	}
	if s.kind == LRP {
		r.level = s.level
	}
	if !r.before(s.top[1]) || s.above != nil && s.above.cover(place, places) {
		return
	}
	if places == 1 {
		// A cell with fewer instances than the level is there already.
		if r.cell != s.top[0].cell && (s.kind == Task || s.census.counts[r.cell] <= s.level) {
			s.offer(r)
		}
		return
	}
	places /= 2
	if t.nodes[2*i+1].best[s.kind].before(t.nodes[2*i].best[s.kind]) {
		s.descend(t, 2*i+1, place+places, places)
		s.descend(t, 2*i, place, places)
		return
	}
	s.descend(t, 2*i, place, places)
	s.descend(t, 2*i+1, place+places, places)
}

func (s *search) offer(r rank) {
	switch {
	case r.before(s.top[0]):
		s.top[0], s.top[1] = r, s.top[0]
	case r.before(s.top[1]):
		s.top[1] = r
	}
}
