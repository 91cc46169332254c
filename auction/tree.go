package auction

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// A tree is a tournament over the cells of a class. Node 1 is the root, the
// children of node n are 2n and 2n+1, and the leaves are nodes leaves …
// 2·leaves−1. Leaves beyond the last cell stay empty.
//
// What an item adds to a score depends on the size of the cell. Cells of one size
// keep their order for every item, so a node's best cell is the best for every
// item. With several sizes its score is the least there is without the item, and
// the least weights below bound what the item adds.
type tree struct {
	nodes  []node
	leaves int32
	// place is the first of the leaves' places; see marks.
	place int32
	// weight is the weight of every cell, if sizes is nil.
	weight weight
	// sizes has for every node what its cells' sizes and ids bound.
	sizes []sizes
	// shelves are the columns of every node, width for each; see shelf.
	shelves []shelf
	width   int32
	// stale cells have less room than their leaves say.
	stale backlog
}

// sizes are bounds of the cells below a node.
type sizes struct {
	weight weight // the least
	first  int32  // the least cell
}

// A node knows the best cell below it for either kind of work, and for each
// resource the most that any cell below it has left. It fits into a cache line.
type node struct {
	best [2]rank // by Kind
	most space
}

// leaf is the node of the leaf at a place.
func (t *tree) leaf(place int32) int32 { return t.leaves + place - t.place }

// first is the first cell below node i. There must be one.
func (t *tree) first(i int32) int32 {
	if t.sizes != nil {
		return t.sizes[i].first
	}
	leftmost := i << (bits.Len32(uint32(t.leaves)) - bits.Len32(uint32(i)))
	return t.nodes[leftmost].best[LRP].cell
}

var emptyNode = node{best: [2]rank{last, last}, most: space{need{-1, -1, -1}, -1}}

// grow makes the tree of the given cells, which are in order. Its leaves take
// the places from place on, or from a few later. It returns the first place
// after them.
func (t *tree) grow(f *fleet, cells []int32, place int32) int32 {
	t.leaves = 1
	for int(t.leaves) < len(cells) {
		t.leaves *= 2
	}
	t.place = (place + t.leaves - 1) &^ (t.leaves - 1)
	t.nodes = make([]node, 2*t.leaves)
	for i := range t.nodes {
		t.nodes[i] = emptyNode
	}
	t.weight = f.cells[cells[0]].weight
	t.width = f.width
	t.shelves = slices.Repeat([]shelf{{weight: math.MaxInt64}}, len(t.nodes)*int(t.width))
	if slices.ContainsFunc(cells, func(n int32) bool { return f.unlike(n, cells[0]) }) {
		t.sizes = make([]sizes, 2*t.leaves)
		for i := range t.sizes {
			t.sizes[i] = sizes{weight{math.MaxInt64, math.MaxInt64, math.MaxInt64}, math.MaxInt32}
		}
		f.bySize(cells, t.leaves)
	}
	for i, n := range cells {
		f.places[n] = t.place + int32(i)
		if t.sizes != nil {
			t.sizes[t.leaves+int32(i)] = sizes{f.cells[n].weight, n}
		}
	}
	t.stale.all = true
	t.catchUp(f, cells)
	for i := t.leaves - 1; i >= 1 && t.sizes != nil; i-- {
		a, b := &t.sizes[2*i], &t.sizes[2*i+1]
		t.sizes[i] = sizes{a.weight.least(b.weight), min(a.first, b.first)}
	}
	return t.place + t.leaves
}

// bySize orders cells so that those below one node are of similar size: it
// halves them by the weight that differs most, and then halves the halves. The
// cells take that many places.
func (f *fleet) bySize(cells []int32, places int32) {
	if len(cells) < 2 {
		return
	}
	widest, spread := int32(none), 0.0
	for w := range weights + f.width {
		low, high := int64(math.MaxInt64), int64(0)
		for _, n := range cells {
			low, high = min(low, f.weight(n, w)), max(high, f.weight(n, w))
		}
		if s := float64(high-low) / float64(max(high, 1)); s > spread {
			widest, spread = w, s
		}
	}
	if widest == none {
		return
	}
	slices.SortStableFunc(cells, func(a, b int32) int { return cmp.Compare(f.weight(a, widest), f.weight(b, widest)) })
	places /= 2
	half := min(int(places), len(cells))
	f.bySize(cells[:half], places)
	f.bySize(cells[half:], places)
}

// weights is how many a cell has besides those of its further resources.
const weights = 3

// weight is one of all weights of a cell.
func (f *fleet) weight(n, which int32) int64 {
	c := &f.cells[n]
	switch which {
	case 0:
		return c.weight.memory
	case 1:
		return c.weight.disk
	case 2:
		return c.weight.container
	}
	return c.extraWeight(which - weights)
}

// unlike reports whether two cells differ in one of their weights.
func (f *fleet) unlike(a, b int32) bool {
	for w := range weights + f.width {
		if f.weight(a, w) != f.weight(b, w) {
			return true
		}
	}
	return false
}

// leaf is the node of a single cell. Whether it hosts the item's process is
// not known here, so for instances its level is 0.
func (f *fleet) leaf(n int32) node {
	c := &f.cells[n]
	return node{
		best: [2]rank{
			LRP:  {score: f.score(c, LRP), cell: n},
			Task: {score: f.score(c, Task), level: c.tasks, cell: n},
		},
		most: c.space,
	}
}

// play makes n the parent of a and b, for that many kinds of work.
func (n *node) play(a, b *node, kinds int) {
	for k := range n.best[:kinds] {
		n.best[k] = a.best[k]
		if b.best[k].before(a.best[k]) {
			n.best[k] = b.best[k]
		}
	}
	n.most.memoryMB = max(a.most.memoryMB, b.most.memoryMB)
	n.most.diskMB = max(a.most.diskMB, b.most.diskMB)
	n.most.pids = max(a.most.pids, b.most.pids)
	n.most.containers = max(a.most.containers, b.most.containers)
}

// catchUp replays the matches of the cells that have changed.
func (t *tree) catchUp(f *fleet, cells []int32) {
	if t.stale.all {
		for _, n := range cells {
			t.nodes[t.leaf(f.places[n])] = f.leaf(n)
			t.stack(t.leaf(f.places[n]), &f.cells[n])
		}
		for i := t.leaves - 1; i >= 1; i-- {
			t.play(f, i)
		}
	}
	for _, n := range t.stale.cells {
		leaf := t.leaf(f.places[n])
		t.nodes[leaf] = f.leaf(n)
		t.stack(leaf, &f.cells[n])
		for i := leaf / 2; i >= 1; i /= 2 {
			t.play(f, i)
		}
	}
	t.stale.clear()
}

// play makes node i from its children.
func (t *tree) play(f *fleet, i int32) {
	t.nodes[i].play(&t.nodes[2*i], &t.nodes[2*i+1], f.kinds)
	t.playShelves(i)
}
