package auction

import "math"

// none stands for a cell where there is none.
const none = -1

// A pick is the cells chosen for an item: the best and the second best, or none.
type pick struct {
	cell, runnerUp int32
	// preference is what the scorer gave to each of them.
	preference, runnerUpPreference float64
}

var noPick = pick{cell: none, runnerUp: none}

// A census says where the instances of one process are.
type census struct {
	of     *owner
	onCell []int32
	inZone []int32
}

// load makes c the census of o. The counts of the process that was loaded
// before go back to its hosts.
func (c *census) load(o *owner) {
	if c.of == o {
		return
	}
	if c.of != nil {
		for i := range c.of.hosts {
			h := &c.of.hosts[i]
			h.instances = c.onCell[h.cell]
			c.onCell[h.cell] = 0
			c.inZone[h.zone] = 0
		}
	}
	c.of = o
	for _, h := range o.hosts {
		c.onCell[h.cell] = h.instances
		c.inZone[h.zone] += h.instances
	}
}

// at is the number of instances in the zone of cell n and on it; 0 for a task.
func (c *census) at(n int32, f *fleet, k Kind) (inZone, onCell int32) {
	if k == Task {
		return 0, 0
	}
	return c.inZone[f.cells[n].zone], c.onCell[n]
}

// add counts one more instance of the loaded process.
func (c *census) add(n int32, f *fleet) {
	if c.onCell[n] == 0 {
		c.of.hosts = append(c.of.hosts, host{cell: n, zone: f.cells[n].zone})
	}
	c.onCell[n]++
	c.inZone[f.cells[n].zone]++
}

// A search looks for the two cells with the least rank.
type search struct {
	kind Kind
	need need
	// adds is what the item adds to the scores of the class at hand.
	adds   int64
	census *census
	top    [2]rank
}

// pick finds the cells for an item by the built-in objective.
func (f *fleet) pick(e *entry, o *offer, c *census) pick {
	s := search{kind: e.kind(), need: e.need, census: c}
	if s.kind == Task {
		s.top = [2]rank{last, last}
		for _, z := range o.zones {
			s.classes(f, z.classes)
		}
		return noPick.then(s.top)
	}
	// The zones with the fewest instances go first, all of them together.
	p := noPick
	for fewest := int32(-1); p.runnerUp == none; {
		next := int32(math.MaxInt32)
		for _, z := range o.zones {
			if n := c.inZone[z.zone]; n > fewest {
				next = min(next, n)
			}
		}
		if next == math.MaxInt32 {
			break
		}
		fewest = next
		s.top = [2]rank{last, last}
		for _, z := range o.zones {
			if c.inZone[z.zone] == fewest {
				s.classes(f, z.classes)
			}
		}
		if s.top[1] == last {
			s.hosts(f, o, fewest)
		}
		p = p.then(s.top)
	}
	return p
}

// then fills what is empty in p.
func (p pick) then(top [2]rank) pick {
	for _, r := range top {
		switch {
		case r == last:
		case p.cell == none:
			p.cell = r.cell
		case p.runnerUp == none:
			p.runnerUp = r.cell
		}
	}
	return p
}

func (s *search) classes(f *fleet, classes []int32) {
	for _, n := range classes {
		c := &f.classes[n]
		s.adds = c.adds(s.need)
		s.descend(&c.tree, 1)
	}
}

// descend offers the cells below node i, the more promising half first. It
// passes over cells that host the item's process.
func (s *search) descend(t *tree, i int32) {
	n := &t.nodes[i]
	if !n.fits(s.need) {
		return
	}
	r := n.best[s.kind]
	r.score += s.adds
	if !r.before(s.top[1]) {
		return
	}
	if i >= t.leaves {
		if s.kind == Task || s.census.onCell[r.cell] == 0 {
			s.offer(r)
		}
		return
	}
	a, b := 2*i, 2*i+1
	if t.nodes[b].best[s.kind].before(t.nodes[a].best[s.kind]) {
		a, b = b, a
	}
	s.descend(t, a)
	s.descend(t, b)
}

// hosts offers the cells that host the item's process, in zones with the given
// number of its instances.
func (s *search) hosts(f *fleet, o *offer, inZone int32) {
	for _, h := range s.census.of.hosts {
		c := &f.cells[h.cell]
		if c.out != "" || s.census.inZone[c.zone] != inZone || o.misses[c.class] != "" || !c.fits(s.need) {
			continue
		}
		s.offer(rank{
			score: f.score(c, s.kind) + f.classes[c.class].adds(s.need),
			level: s.census.onCell[h.cell],
			cell:  h.cell,
		})
	}
}

func (s *search) offer(r rank) {
	switch {
	case r.before(s.top[0]):
		s.top[0], s.top[1] = r, s.top[0]
	case r.before(s.top[1]):
		s.top[1] = r
	}
}
