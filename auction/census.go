package auction

import (
	"math"
	"math/bits"
	"slices"
	"sort"
)

// A host is a cell, its zone, and how many instances of a process are on it.
type host struct{ cell, zone, instances int32 }

// A spread says where the instances of one process are. A list serves while
// there are few hosts; from then on sets of cells do, which a search can skip
// whole parts of a tree by.
type spread struct {
	few  []host
	wide *wide
}

// maxFew is the longest list that is looked through faster than a set.
const maxFew = 64

// A wide spread has one set of cells for each number of instances.
type wide struct {
	// above[n] are the cells with more than n instances.
	above []marks
	// inZone counts the instances by zone.
	inZone []int32
}

// list counts one more instance on cell n in the list. The cell has none of them
// yet if first says so.
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

// on is the number of instances on a cell by its place.
func (w *wide) on(place int32) int32 {
	return int32(sort.Search(len(w.above), func(i int) bool { return !w.above[i].has(place) }))
}

func (w *wide) add(f *fleet, n, instances int32) {
	c := &f.cells[n]
	if c.out != "" {
		return // it is a leaf of no tree
	}
	for level := 0; instances > 0; level++ {
		if level == len(w.above) {
			w.above = append(w.above, f.nobody.clone())
		}
		if !w.above[level].has(c.place) {
			w.above[level].set(c.place)
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
			if w.above[n].clear > 0 && (n == 0 || w.above[n].clear > w.above[n-1].clear) {
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
		return c.wide.on(c.fleet.cells[n].place)
	}
	return c.counts[n]
}

// at is the number of instances in the zone of cell n and on it; 0 for a task.
func (c *census) at(n int32, k Kind) (inZone, onCell int32) {
	if k == Task {
		return 0, 0
	}
	return c.inZone[c.fleet.cells[n].zone], c.on(n)
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

// marks is a set of cells by their places among the leaves of all trees. Places
// without a cell are in every set.
type marks struct {
	words []uint64
	// full has a bit for each word of which all bits are set.
	full []uint64
	// clear is how many places are not in the set.
	clear int
}

// newMarks is the set without any of the fleet's cells.
func newMarks(f *fleet, places int32) marks {
	m := marks{words: make([]uint64, (places+63)/64)}
	for i := range f.cells {
		if c := &f.cells[i]; c.out == "" {
			m.words[c.place>>6] |= 1 << (c.place & 63)
			m.clear++
		}
	}
	m.full = make([]uint64, (len(m.words)+63)/64)
	for w := range m.words {
		if m.words[w] = ^m.words[w]; m.words[w] == math.MaxUint64 {
			m.full[w>>6] |= 1 << (w & 63)
		}
	}
	return m
}

func (m *marks) clone() marks {
	return marks{slices.Clone(m.words), slices.Clone(m.full), m.clear}
}

func (m *marks) has(place int32) bool { return m.words[place>>6]>>(place&63)&1 != 0 }

// set adds a place that is not in the set.
func (m *marks) set(place int32) {
	w := place >> 6
	m.words[w] |= 1 << (place & 63)
	m.clear--
	if m.words[w] == math.MaxUint64 {
		m.full[w>>6] |= 1 << (w & 63)
	}
}

// cover reports whether all of the size places from place on are in the set.
// size is a power of two and place a multiple of it. For more than 4,096 places
// the answer is always no.
func (m *marks) cover(place, size int32) bool {
	switch {
	case size <= 64:
		return ones(m.words[place>>6]>>(place&63), size)
	case size <= 64*64:
		return ones(m.full[place>>12]>>(place>>6&63), size>>6)
	}
	return false
}

// ones reports whether the lowest n bits of the word are set.
func ones(word uint64, n int32) bool { return int32(bits.TrailingZeros64(^word)) >= n }
