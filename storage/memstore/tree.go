package memstore

import "slices"

// A tree is an ordered map with free snapshots: a B+ tree whose nodes are
// copied before they change, unless they were made since the last snapshot. To
// take a snapshot, copy the tree and pass another owner to its later changes.
//
// Empty nodes are dropped, but nodes are not merged before: deletions leave the
// order and the depth as they are.
type tree[K, V any] struct {
	compare func(a, b K) int
	root    *node[K, V]
	length  int
}

// An owner marks the nodes that nobody else has seen yet.
type owner struct{ _ byte }

// A node is a leaf with values, or has children. children[i] holds the keys
// from keys[i] up to keys[i+1], without that; the first also holds those below
// keys[0].
type node[K, V any] struct {
	owner    *owner
	keys     []K
	values   []V
	children []*node[K, V]
}

const maxKeys = 64

// search returns the place of k among the keys and whether it is there.
func (t *tree[K, V]) search(n *node[K, V], k K) (int, bool) {
	low, high := 0, len(n.keys)
	for low < high {
		middle := int(uint(low+high) / 2)
		switch c := t.compare(n.keys[middle], k); {
		case c == 0:
			return middle, true
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}

// child is the index of the child that has k if any has.
func (t *tree[K, V]) child(n *node[K, V], k K) int {
	i, found := t.search(n, k)
	if found {
		return i
	}
	return max(i-1, 0)
}

func (t *tree[K, V]) get(k K) (v V, ok bool) {
	n := t.root
	if n == nil {
		return v, false
	}
	for n.children != nil {
		n = n.children[t.child(n, k)]
	}
	if i, found := t.search(n, k); found {
		return n.values[i], true
	}
	return v, false
}

// own returns n if o owns it, and otherwise a copy that o owns.
func (n *node[K, V]) own(o *owner) *node[K, V] {
	if n.owner == o {
		return n
	}
	return &node[K, V]{owner: o, keys: copied(n.keys), values: copied(n.values), children: copied(n.children)}
}

// copied returns a copy with room for one more; nil stays nil.
func copied[T any](s []T) []T {
	if s == nil {
		return nil
	}
	return append(make([]T, 0, len(s)+1), s...)
}

// put adds k or replaces its value, and returns the value it had before.
func (t *tree[K, V]) put(o *owner, k K, v V) (before V) {
	if t.root == nil {
		t.root = &node[K, V]{owner: o}
	}
	t.root = t.root.own(o)
	if right := t.putInto(o, t.root, k, v, &before); right != nil {
		left := t.root
		t.root = &node[K, V]{owner: o, keys: []K{left.keys[0], right.keys[0]}, children: []*node[K, V]{left, right}}
	}
	return before
}

// putInto adds k to n, which o owns, and returns the node that was split off
// to its right, or nil.
func (t *tree[K, V]) putInto(o *owner, n *node[K, V], k K, v V, before *V) *node[K, V] {
	if n.children == nil {
		i, found := t.search(n, k)
		if found {
			*before, n.values[i] = n.values[i], v
			return nil
		}
		n.keys = slices.Insert(n.keys, i, k)
		n.values = slices.Insert(n.values, i, v)
		t.length++
		return n.split(o, i)
	}
	i := t.child(n, k)
	n.children[i] = n.children[i].own(o)
	if right := t.putInto(o, n.children[i], k, v, before); right != nil {
		n.keys = slices.Insert(n.keys, i+1, right.keys[0])
		n.children = slices.Insert(n.children, i+1, right)
		return n.split(o, i+1)
	}
	return nil
}

// split moves the upper part of an overfull node to a new one. If keys arrive
// in order, at the end, it leaves the lower part full.
func (n *node[K, V]) split(o *owner, inserted int) *node[K, V] {
	if len(n.keys) <= maxKeys {
		return nil
	}
	at := len(n.keys) / 2
	if inserted == len(n.keys)-1 {
		at = len(n.keys) - 1
	}
	right := &node[K, V]{owner: o, keys: tail(n.keys, at)}
	n.keys = head(n.keys, at)
	if n.children != nil {
		right.children = tail(n.children, at)
		n.children = head(n.children, at)
	} else {
		right.values = tail(n.values, at)
		n.values = head(n.values, at)
	}
	return right
}

func tail[T any](s []T, at int) []T { return append(make([]T, 0, maxKeys+1), s[at:]...) }

func head[T any](s []T, at int) []T {
	clear(s[at:])
	return s[:at]
}

// remove drops k, if it is there.
func (t *tree[K, V]) remove(o *owner, k K) {
	if _, there := t.get(k); !there {
		return
	}
	t.length--
	t.root = t.root.own(o)
	t.removeFrom(o, t.root, k)
	for len(t.root.children) == 1 {
		t.root = t.root.children[0]
	}
	if len(t.root.keys) == 0 {
		t.root = nil
	}
}

// removeFrom drops k, which is there, from n, which o owns.
func (t *tree[K, V]) removeFrom(o *owner, n *node[K, V], k K) {
	if n.children == nil {
		i, _ := t.search(n, k)
		n.keys = slices.Delete(n.keys, i, i+1)
		n.values = slices.Delete(n.values, i, i+1)
		return
	}
	i := t.child(n, k)
	n.children[i] = n.children[i].own(o)
	t.removeFrom(o, n.children[i], k)
	if len(n.children[i].keys) == 0 {
		n.keys = slices.Delete(n.keys, i, i+1)
		n.children = slices.Delete(n.children, i, i+1)
	}
}

// ascend yields the entries from the key from on, in order, until yield returns
// false.
func (t *tree[K, V]) ascend(from K, yield func(K, V) bool) {
	if t.root != nil {
		t.ascendNode(t.root, from, yield)
	}
}

func (t *tree[K, V]) ascendNode(n *node[K, V], from K, yield func(K, V) bool) bool {
	if n.children == nil {
		i, _ := t.search(n, from)
		for ; i < len(n.keys); i++ {
			if !yield(n.keys[i], n.values[i]) {
				return false
			}
		}
		return true
	}
	for i := t.child(n, from); i < len(n.children); i++ {
		if !t.ascendNode(n.children[i], from, yield) {
			return false
		}
	}
	return true
}
