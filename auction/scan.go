package auction

import (
	"cmp"
	"math"
)

// scan finds the cells for an item under a policy with filters or a scorer: it
// looks at every cell. Its built-in objective is the same as pick's.
func (f *fleet) scan(item *Item, e *entry, d demand, o *offer, c *census, p *Policy) pick {
	kind, home := e.kind(), f.home(item)
	type choice struct {
		preference float64
		inZone     int32
		rank       rank
	}
	before := func(a, b choice) bool {
		if c := cmp.Or(cmp.Compare(a.preference, b.preference), cmp.Compare(a.inZone, b.inZone)); c != 0 {
			return c < 0
		}
		return a.rank.before(b.rank)
	}
	top := [2]choice{{rank: rank{cell: none}}, {rank: rank{cell: none}}}
	f.looked += int64(len(f.cells))
	for i := range f.cells {
		n, cell := int32(i), &f.cells[i]
		if cell.out != "" || o.misses[cell.offering] != "" || !cell.fits(d) || p.filter(item, &cell.state) != "" {
			continue
		}
		preference, allowed := home.rank(cell.zone)
		if !allowed {
			continue
		}
		inZone, onCell := c.at(n, kind)
		x := choice{preference: preference, inZone: inZone, rank: rank{
			score: f.score(cell, kind) + cell.weight.adds(d.need) + d.extra.adds(cell),
			level: onCell,
			cell:  n,
		}}
		if kind == Task {
			x.rank.level = cell.tasks
		}
		if p.Scorer != nil {
			x.preference = p.Scorer(item, &cell.state, f.explain(n, e, d.extra, inZone, onCell))
			if math.IsNaN(x.preference) {
				x.preference = math.Inf(1)
			}
		}
		switch {
		case top[0].rank.cell == none || before(x, top[0]):
			top[0], top[1] = x, top[0]
		case top[1].rank.cell == none || before(x, top[1]):
			top[1] = x
		}
	}
	return pick{top[0].rank.cell, top[1].rank.cell, top[0].preference, top[1].preference}
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
