package auction

import (
	"math"
	"slices"
	"sort"
)

// A host is a cell, its zone, and how many instances of a process are on it.
type host struct{ cell, zone, instances int32 }

// A spread says where the instances of one process are: as a list while there
// are few hosts, and then as sets of cells, by which a search can skip parts of
// a tree.
type spread struct {
	few  []host
	wide *wide
}

// maxFew is the longest list that is faster than a set.
const maxFew = 64

// A wide spread has a set of cells for each number of instances.
type wide struct {
	// above[n] are the cells with more than n instances.
	above []marks
	// inZone counts the instances by zone.
	inZone []int32
}

// list counts one more instance on cell n in the list. first says that the cell
// has none of them yet.
func (s *spread) list(f *fleet, n int32, first bool) {
	if first {
		s.few = append(s.few, host{n, f.cells[n].zone, 1})
		s.widen(f)
		return
	}
	i := slices.IndexFunc(s.few, func(h host) bool { return h.cell == n })
	s.few[i].instances++
}

// widen turns a list that has become long into sets.
func (s *spread) widen(f *fleet) {
	if len(s.few) <= maxFew {
		return
	}
	s.wide = &wide{inZone: make([]int32, f.zones)}
	for _, h := range s.few {
		s.wide.inZone[h.zone] += h.instances
		s.wide.add(f, h.cell, h.instances)
	}
	s.few = nil
}

// on is the number of instances on the cell at a place.
func (w *wide) on(place int32) int32 {
	return int32(sort.Search(len(w.above), func(i int) bool { return !w.above[i].has(place) }))
}

func (w *wide) add(f *fleet, n, instances int32) {
	if f.cells[n].out != "" {
		return // it is a leaf of no tree
	}
	place := f.places[n]
	for n := 0; instances > 0; n++ {
		if n == len(w.above) {
			w.above = append(w.above, f.nobody.clone())
		}
		if above := &w.above[n]; !above.has(place) {
			above.set(place)
			instances--
		}
	}
}

// next is the least number of instances, at least n, that some cell may have;
// ok is false if there is none.
func (s *spread) next(n int32) (level int32, ok bool) {
	if w := s.wide; w != nil {
		for ; int(n) < len(w.above); n++ {
			// Cells with n instances are above n−1 and not above n.
			if clear := w.above[n].clear; clear > 0 && (n == 0 || clear > w.above[n-1].clear) {
				return n, true
			}
		}
		return n, int(n) == len(w.above)
	}
	if n == 0 {
		return 0, true
	}
	for i := range s.few {
		if has := s.few[i].instances; has >= n && (!ok || has < level) {
			level, ok = has, true
		}
	}
	return level, ok
}

// A census is the spread of the process at hand, with its instances by zone.
type census struct {
	*spread
	fleet  *fleet
	inZone []int32
	// listed and counts have the instances of a list by zone and by cell.
	listed, counts []int32
}

func newCensus(f *fleet) census {
	return census{fleet: f, listed: make([]int32, f.zones), counts: make([]int32, len(f.cells))}
}

// load makes c the census of s.
func (c *census) load(s *spread) {
	if c.spread == s {
		return
	}
	if c.spread != nil {
		c.forget(c.few)
	}
	c.spread = s
	if s.wide != nil {
		c.inZone = s.wide.inZone
		return
	}
	c.inZone = c.listed
	for i := range s.few {
		h := &s.few[i]
		c.listed[h.zone] += h.instances
		c.counts[h.cell] = h.instances
	}
}

func (c *census) forget(list []host) {
	for i := range list {
		h := &list[i]
		c.listed[h.zone], c.counts[h.cell] = 0, 0
	}
}

// on is the number of instances on cell n, which takes work.
func (c *census) on(n int32) int32 {
	if c.wide != nil {
		return c.wide.on(c.fleet.places[n])
	}
	return c.counts[n]
}

// add counts one more instance of the process at hand.
func (c *census) add(n int32) {
	zone := c.fleet.cells[n].zone
	c.inZone[zone]++
	if c.wide != nil {
		c.wide.add(c.fleet, n, 1)
		return
	}
	list := c.few
	c.spread.list(c.fleet, n, c.counts[n] == 0)
	if c.wide == nil {
		c.counts[n]++
		return
	}
	// The list has become long.
	c.forget(list)
	c.listed[zone] = 0
	c.inZone = c.wide.inZone
}

// marks is a set of cells, by their places among the leaves of all trees.
// Places without a cell are in every set.
type marks struct {
	words []uint64
	// clear is how many places are not in the set.
	clear int
}

const wordBits = 64

// newMarks makes a set without any of the fleet's cells.
func newMarks(f *fleet, places int32) marks {
	m := marks{words: make([]uint64, (places+wordBits-1)/wordBits)}
	for i := range m.words {
		m.words[i] = math.MaxUint64
	}
	for i := range f.cells {
		if place := f.places[i]; f.cells[i].out == "" {
			m.words[place/wordBits] &^= 1 << (place % wordBits)
			m.clear++
		}
	}
	return m
}

func (m *marks) clone() marks { return marks{slices.Clone(m.words), m.clear} }

func (m *marks) has(place int32) bool { return m.words[place/wordBits]>>(place%wordBits)&1 != 0 }

// set adds a place that is not in the set.
func (m *marks) set(place int32) {
	m.words[place/wordBits] |= 1 << (place % wordBits)
	m.clear--
}
