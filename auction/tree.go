package auction

import "math"

// A tree is a tournament over the cells of a class, in the order of their ids.
// Node 1 is the root, the children of node n are 2n and 2n+1, and the leaves
// are nodes leaves … 2·leaves−1. Leaves beyond the last cell stay empty.
type tree struct {
	nodes  []node
	leaves int32
	// place is the first of the leaves' places; see marks.
	place int32
}

// A node knows the best cell below it for either kind of work, and for each
// resource the most that any cell below it has left. It fills a cache line.
type node struct {
	best [2]rank // by Kind
	most need
	// containers is the most containers that any cell below has left.
	containers int64
}

// A rank orders cells that offer what an item asks for. The criterion of the
// zone comes before it: cells of different ranks in that one are never compared.
type rank struct {
	score int64
	// level is the number of instances of the process on the cell, or the
	// number of tasks.
	level int32
	cell  int32
}

var last = rank{math.MaxInt64, math.MaxInt32, math.MaxInt32}

func (r rank) before(other rank) bool {
	if r.level != other.level {
		return r.level < other.level
	}
	if r.score != other.score {
		return r.score < other.score
	}
	return r.cell < other.cell
}

// first is the first cell below node i, which has so many places and not none of
// them filled.
func (t *tree) first(i, places int32) int32 { return t.nodes[i*places].best[LRP].cell }

func (n *node) fits(w need) bool { return n.containers >= 1 && w.within(n.most) }

var emptyNode = node{best: [2]rank{last, last}, most: need{-1, -1, -1}, containers: -1}

// grow makes the tree of the given cells. Its leaves take the places from the
// given one on, or from a few later. It returns the first place after them.
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
	for i, n := range cells {
		f.cells[n].leaf, f.cells[n].place = t.leaves+int32(i), t.place+int32(i)
		t.nodes[t.leaves+int32(i)] = f.leaf(n)
	}
	for i := t.leaves - 1; i >= 1; i-- {
		t.nodes[i].play(&t.nodes[2*i], &t.nodes[2*i+1])
	}
	return t.place + t.leaves
}

// leaf is the node of a single cell. Whether it hosts the item's process is
// not known here, so for instances its level is 0.
func (f *fleet) leaf(n int32) node {
	c := &f.cells[n]
	r := &c.state.Remaining
	return node{
		best: [2]rank{
			LRP:  {score: f.score(c, LRP), cell: n},
			Task: {score: f.score(c, Task), level: c.tasks, cell: n},
		},
		most:       need{r.MemoryMB, r.DiskMB, c.pids()},
		containers: r.Containers,
	}
}

// play makes n the parent of a and b.
func (n *node) play(a, b *node) {
	for k := range n.best {
		n.best[k] = a.best[k]
		if b.best[k].before(a.best[k]) {
			n.best[k] = b.best[k]
		}
	}
	n.most.memoryMB = max(a.most.memoryMB, b.most.memoryMB)
	n.most.diskMB = max(a.most.diskMB, b.most.diskMB)
	n.most.pids = max(a.most.pids, b.most.pids)
	n.containers = max(a.containers, b.containers)
}

// refresh replays the matches of a cell whose state has changed.
func (f *fleet) refresh(n int32) {
	c := &f.cells[n]
	t := &f.classes[c.class].tree
	t.nodes[c.leaf] = f.leaf(n)
	for i := c.leaf / 2; i >= 1; i /= 2 {
		t.nodes[i].play(&t.nodes[2*i], &t.nodes[2*i+1])
	}
}
