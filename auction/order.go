package auction

import (
	"cmp"
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

// An entry is an item in the order of work, with everything that placing it
// needs: items are scattered in memory, entries are contiguous.
type entry struct {
	group int64 // see below
	need  need
	item  int32
	owner int32
	// wants is none for an invalid item.
	wants int32
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
	wants   []wants
	offers  []offer
}

// bundle is what an entry takes of further resources.
func (b *batch) bundle(e *entry) *bundle {
	if e.wants == none {
		return nil
	}
	return b.wants[e.wants].extra
}

// demand is all that an entry takes.
func (b *batch) demand(e *entry) demand { return demand{e.need, b.bundle(e)} }

func newBatch(items []Item, f *fleet) *batch {
	b := &batch{items: items, entries: make([]entry, len(items))}
	owners := [2]map[string]int32{{}, {}}
	interned := newInterner(b, f)
	var o, w int32
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
		e := entry{group: item.group(), need: item.need(), item: int32(i), owner: o, wants: none}
		if item.Validate(&v); v.Err() != nil {
			v = executor.Validator{}
			b.entries[i] = e
			continue
		}
		if len(b.wants) == 0 || !b.wants[w].of(item) {
			w = interned.wants(item)
		}
		e.wants = w
		b.entries[i] = e
	}
	f.classify(b.offers)
	b.findHosts(f, owners[LRP])
	b.sort()
	return b
}

// findHosts counts the instances on the cells for the processes in the batch.
func (b *batch) findHosts(f *fleet, processes map[string]int32) {
	// Each item adds at most one host, so one allocation serves nearly all.
	room := make([]host, len(b.items))
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

// sort puts the entries in the order of work and drops duplicates. It first
// orders them by owner, and within each owner by key. That brings duplicates
// together and is also the order of ties.
func (b *batch) sort() {
	byGUID := make([]int32, len(b.owners))
	for i := range byGUID {
		byGUID[i] = int32(i)
	}
	// A process and a task of the same GUID are never in the same group.
	slices.SortFunc(byGUID, func(x, y int32) int { return strings.Compare(b.owners[x].guid, b.owners[y].guid) })
	next := make([]int, len(b.owners))
	total := 0
	for _, o := range byGUID {
		next[o] = total
		total += b.owners[o].items
	}
	sorted := make([]entry, total)
	for _, e := range b.entries {
		sorted[next[e.owner]] = e
		next[e.owner]++
	}
	kept := sorted[:0]
	for _, o := range byGUID {
		end := next[o]
		own := sorted[end-b.owners[o].items : end]
		slices.SortFunc(own, func(x, y entry) int { return compareWithinOwner(&b.items[x.item], &b.items[y.item]) })
		for i, e := range own {
			if i == 0 || b.items[e.item].Key != b.items[own[i-1].item].Key {
				kept = append(kept, e)
			}
		}
	}
	b.entries = b.entries[:len(kept)]
	b.bySize(kept)
}

// A size is what the order of work goes by before the key.
type size struct {
	group, memoryMB int64
	extra           *bundle
}

// bySize puts entries that are in the order of their keys into the order of work,
// as b.entries. There are far fewer sizes than entries, so only the sizes are
// sorted.
func (b *batch) bySize(entries []entry) {
	known := map[size]int32{}
	var sizes []size
	var next []int // by size, at first the number of entries
	numbers := make([]int32, len(entries))
	for i := range entries {
		e := &entries[i]
		s := size{e.group, e.need.memoryMB, b.bundle(e)}
		n, ok := known[s]
		if !ok {
			n = int32(len(sizes))
			known[s] = n
			sizes, next = append(sizes, s), append(next, 0)
		}
		numbers[i] = n
		next[n]++
	}
	order := make([]int32, len(sizes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &sizes[a], &sizes[b]
		switch {
		case x.group != y.group:
			return cmp.Compare(x.group, y.group)
		case x.memoryMB != y.memoryMB:
			return cmp.Compare(y.memoryMB, x.memoryMB)
		}
		return x.extra.larger(y.extra)
	})
	total := 0
	for _, n := range order {
		next[n], total = total, total+next[n]
	}
	for i, n := range numbers {
		b.entries[next[n]] = entries[i]
		next[n]++
	}
}
