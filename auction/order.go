package auction

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
)

// An owner holds what all items with one GUID have in common.
type owner struct {
	guid  string
	kind  Kind
	items int
	// spread is where the process has instances.
	spread spread
}

// An entry is an item in the order of work. Items are large and scattered in
// memory; entries are small and contiguous.
type entry struct {
	group              int64 // see below
	item, owner, shape int32
}

func (e *entry) kind() Kind {
	if e.group == taskGroup {
		return Task
	}
	return LRP
}

const taskGroup = 1

// group is the position of the item's group in the order of work: index 0,
// tasks, index 1, index 2 … (000 §Auction Work Prioritization).
func (i *Item) group() int64 {
	switch {
	case i.Kind != LRP:
		return taskGroup
	case i.Index == 0:
		return 0
	}
	return int64(i.Index) + 1
}

// A batch is the work in order, without duplicates.
type batch struct {
	items   []Item
	entries []entry
	owners  []owner
	shapes  []shape
	wants   []wants
	offers  []offer
}

// newBatch puts the items in the specification's order of work or, with turns, in
// that in which the domains take turns.
func newBatch(items []Item, f *fleet, turns bool) *batch {
	b := &batch{items: items, entries: make([]entry, len(items))}
	owners := [2]map[string]int32{{}, {}}
	interned := newInterner(b, f)
	var o int32
	var v executor.Validator
	for i := range items {
		item := &items[i]
		kind := min(item.Kind, Task)
		// Items of one process usually come together and are alike.
		if i == 0 || item.GUID != items[i-1].GUID || kind != b.owners[o].kind {
			var ok bool
			if o, ok = owners[kind][item.GUID]; !ok {
				o = int32(len(b.owners))
				owners[kind][item.GUID] = o
				b.owners = append(b.owners, owner{guid: item.GUID, kind: kind})
			}
		}
		b.owners[o].items++
		e := entry{group: item.group(), item: int32(i), owner: o}
		if item.Validate(&v); v.Err() != nil {
			v = executor.Validator{}
			e.shape = interned.invalid(item)
		} else {
			e.shape = interned.shape(item)
		}
		b.entries[i] = e
	}
	f.kinds = 1 + min(len(owners[Task]), 1)
	f.classify(b.offers)
	b.findHosts(f, owners[LRP])
	b.sort(turns)
	return b
}

// findHosts counts the instances on the cells for the processes in the batch.
func (b *batch) findHosts(f *fleet, processes map[string]int32) {
	// Each item adds at most one host, so one allocation serves nearly all.
	hosts := 0
	for i := range b.owners {
		hosts += min(b.owners[i].items, maxFew+1)
	}
	room := make([]host, hosts)
	for i := range b.owners {
		o := &b.owners[i]
		n := min(o.items, maxFew+1)
		o.spread.few, room = room[:0:n], room[n:]
	}
	if len(processes) == 0 {
		return
	}
	for n := range f.cells {
		c := &f.cells[n]
		if c.out == Invalid || c.out == Evacuating {
			continue
		}
		for i := range c.state.LRPs {
			p, ok := processes[c.state.LRPs[i].ProcessGUID]
			if !ok {
				continue
			}
			hosts := &b.owners[p].spread.few
			if end := len(*hosts) - 1; end >= 0 && (*hosts)[end].cell == int32(n) {
				(*hosts)[end].instances++
			} else {
				*hosts = append(*hosts, host{int32(n), c.zone, 1})
			}
		}
	}
	for i := range b.owners {
		b.owners[i].spread.widen(f)
	}
}

// sort puts the entries in the order of work and drops duplicates. It sorts by
// the weakest criterion first, the key: by owner, and then within each owner.
// That brings duplicates together. Turns are the strongest criterion within a group.
func (b *batch) sort(turns bool) {
	owners := ranks(len(b.owners), func(x, y int32) int {
		x1, y1 := &b.owners[x], &b.owners[y]
		return cmp.Or(strings.Compare(x1.guid, y1.guid), cmp.Compare(x1.kind, y1.kind))
	})
	sizes := ranks(len(b.shapes), func(x, y int32) int {
		x1, y1 := &b.shapes[x], &b.shapes[y]
		return cmp.Or(cmp.Compare(y1.memoryMB, x1.memoryMB), x1.extra.larger(y1.extra))
	})
	s := sorter{entries: b.entries, spare: make([]entry, len(b.entries))}
	s.by(func(e *entry) int64 { return int64(owners[e.owner]) })
	s.entries = b.unique(s.entries)
	s.by(func(e *entry) int64 { return int64(sizes[e.shape]) })
	s.by(func(e *entry) int64 { return e.group })
	if turns {
		b.takeTurns(&s)
	}
	b.entries = s.entries
}

// takeTurns lets the domains take turns within each group. An item's turn is its
// number among those of its domain in the specification's order. In each turn the
// domains with the least work in the group come first; among domains with equally
// much, the specification's order holds.
func (b *batch) takeTurns(s *sorter) {
	type share struct { // the work of a domain in a group
		group  int64
		domain string
	}
	numbers := map[share]int32{}
	var items []int64                                                         // by number of share
	shares, turns := make([]int32, len(b.items)), make([]int64, len(b.items)) // by item
	for i := range s.entries {
		e := &s.entries[i]
		key := share{e.group, b.items[e.item].Domain}
		n, known := numbers[key]
		if !known {
			n = int32(len(items))
			numbers[key] = n
			items = append(items, 0)
		}
		shares[e.item], turns[e.item] = n, items[n]
		items[n]++
	}
	s.by(func(e *entry) int64 { return items[shares[e.item]] })
	s.by(func(e *entry) int64 { return turns[e.item] })
	s.by(func(e *entry) int64 { return e.group })
}

// unique sorts entries that are in the order of their owners by key, and drops
// duplicates.
func (b *batch) unique(entries []entry) []entry {
	kept := entries[:0]
	for len(entries) > 0 {
		n := b.owners[entries[0].owner].items
		own := entries[:n]
		entries = entries[n:]
		slices.SortFunc(own, func(x, y entry) int {
			if x.group != y.group { // the usual case needs no look at the items
				return cmp.Compare(x.group, y.group)
			}
			return compareWithinOwner(&b.items[x.item], &b.items[y.item])
		})
		for _, e := range own {
			if end := len(kept) - 1; end >= 0 && kept[end].group == e.group && b.items[kept[end].item].Key == b.items[e.item].Key {
				continue
			}
			kept = append(kept, e)
		}
	}
	return kept
}

// ranks returns for each of the numbers 0 … n−1 its rank in an order. Equals
// share a rank.
func ranks(n int, compare func(x, y int32) int) []int32 {
	order, ranks := make([]int32, n), make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, compare)
	for i := 1; i < n; i++ {
		ranks[order[i]] = ranks[order[i-1]]
		if compare(order[i-1], order[i]) != 0 {
			ranks[order[i]]++
		}
	}
	return ranks
}

// A sorter sorts entries by small integers, without comparing entries.
type sorter struct {
	entries []entry
	spare   []entry // at least as many
	next    []int
}

// by sorts the entries by a key, and leaves those with equal keys in their order.
// It distributes them by one digit of the key after the other, the least
// significant digit first.
func (s *sorter) by(key func(*entry) int64) {
	if len(s.entries) == 0 {
		return
	}
	least, most := key(&s.entries[0]), key(&s.entries[0])
	for i := range s.entries {
		k := key(&s.entries[i])
		least, most = min(least, k), max(most, k)
	}
	digit := min(bits.Len(uint(len(s.entries))), 16) // in bits
	s.next = slices.Grow(s.next[:0], 1<<digit)[:1<<digit]
	for shift := 0; uint64(most-least)>>shift > 0; shift += digit {
		at := func(e *entry) *int { return &s.next[uint64(key(e)-least)>>shift&(1<<digit-1)] }
		clear(s.next)
		for i := range s.entries {
			*at(&s.entries[i])++
		}
		before := 0
		for i, n := range s.next {
			s.next[i], before = before, before+n
		}
		sorted := s.spare[:len(s.entries)]
		for i := range s.entries {
			n := at(&s.entries[i])
			sorted[*n] = s.entries[i]
			*n++
		}
		s.entries, s.spare = sorted, s.entries
	}
}
