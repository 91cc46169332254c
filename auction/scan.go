package auction

import "math"

// scan finds the cells for an item under a policy with filters or a scorer: it
// looks at every cell. Its built-in objective is the same as pick's.
func (f *fleet) scan(item *Item, d demand, o *offer, c *census, p *Policy) picks {
	kind, home := item.Kind, f.home(item)
	top := picks{noPick, noPick}
	f.looked += int64(len(f.cells))
	for i := range f.cells {
		n, cell := int32(i), &f.cells[i]
		if cell.out != "" || o.misses[cell.offering] != "" || !cell.fits(d) || p.filter(item, cell.state) != "" {
			continue
		}
		preference, allowed := home.rank(cell.zone)
		if !allowed {
			continue
		}
		x := pick{rank: rank{
			score: f.with(cell, kind, d),
			level: cell.tasks,
			cell:  n,
		}}
		if kind == LRP {
			x.inZone, x.level = c.inZone[cell.zone], c.on(n)
		}
		if p.Scorer != nil {
			var score Choice
			f.choose(&score, kind, d, x)
			preference = p.Scorer(item, cell.state, score.Score)
			if math.IsNaN(preference) {
				preference = math.Inf(1)
			}
		}
		x.preference = preference
		switch {
		case top[0] == noPick || x.before(top[0]):
			top[0], top[1] = x, top[0]
		case top[1] == noPick || x.before(top[1]):
			top[1] = x
		}
	}
	return top
}

// show adds an item that was placed on the cell to the cell's state, where the
// policy's own rules look.
func (c *cell) show(item *Item) {
	s := c.state
	s.StartingContainers++
	if item.Kind == Task {
		s.Tasks = append(s.Tasks, item.GUID)
	} else {
		s.LRPs = append(s.LRPs, item.Key.LRP())
	}
	r := &s.Remaining
	r.MemoryMB, r.DiskMB, r.Extra = c.space.memoryMB, c.space.diskMB, r.Extra.Minus(item.Extra)
	if c.total.Containers != 0 {
		r.Containers = c.space.containers
	}
	if c.total.PIDs != 0 {
		r.PIDs = c.space.pids
	}
}

// filter returns the first reason of the policy's filters against the cell.
func (p *Policy) filter(item *Item, cell *CellState) CellReason {
	for _, f := range p.Filters {
		if r := f(item, cell); r != "" {
			return r
		}
	}
	return ""
}
