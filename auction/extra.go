package auction

import (
	"cmp"
	"slices"

	"github.com/diegosdk/diego/executor"
)

// This file counts further resources (executor.Amounts). A name that an item of
// the batch asks for and a cell has gets a column. A batch that asks for none has
// no columns, and its trees and searches do without.

// A stock is what a cell has of one further resource.
type stock struct {
	name string
	// column is none if no item of the batch takes any.
	column      int32
	total, left int64
	weight      int64 // as in a weight
}

// stock notes what the cell has of further resources. Their names have no column
// until an item asks for one.
func (f *fleet) stock(c *cell) {
	if len(c.total.Extra) == 0 {
		return
	}
	if f.columns == nil {
		f.columns = map[string]int32{}
	}
	for _, name := range c.total.Extra.Names() {
		if total := c.total.Extra[name]; total > 0 {
			s := stock{name, none, total, c.state.Remaining.Extra[name], 1 << scoreBits / total}
			c.stocks = append(c.stocks, s)
			c.use += (s.total - s.left) * s.weight
			f.columns[name] = none
		}
	}
}

// in is the cell's stock of a column, nil if it has none.
func (c *cell) in(column int32) *stock {
	for i := range c.stocks {
		if c.stocks[i].column == column && column != none {
			return &c.stocks[i]
		}
	}
	return nil
}

// left is what is left of a column on the cell.
func (c *cell) left(column int32) int64 {
	if s := c.in(column); s != nil {
		return s.left
	}
	return 0
}

// extraWeight is the weight of a column on the cell, 0 if it has none.
func (c *cell) extraWeight(column int32) int64 {
	if s := c.in(column); s != nil {
		return s.weight
	}
	return 0
}

// column is that of a name which an item asks for, or none if no cell has it.
func (f *fleet) column(name string) int32 {
	n, ok := f.columns[name]
	if ok && n == none {
		n = f.width
		f.width++
		f.columns[name] = n
	}
	if !ok {
		return none
	}
	return n
}

// number tells the stocks of all cells their columns, once all are known.
func (f *fleet) number() {
	for i := range f.cells {
		for n := range f.cells[i].stocks {
			s := &f.cells[i].stocks[n]
			s.column = f.columns[s.name]
		}
	}
}

// A want is how much an item takes of one further resource; more than 0.
type want struct {
	name string
	// column is none if no cell has any.
	column int32
	amount int64
}

// A bundle is what items take of further resources, in the order of the names.
// Items of a batch that take the same share one, so bundles compare by their
// pointers. A nil bundle is nothing.
type bundle struct{ wants []want }

// A demand is all that an item takes from a cell besides one container.
type demand struct {
	need
	extra *bundle
}

func (d demand) within(other demand) bool {
	return d.need.within(other.need) && d.extra.within(other.extra)
}

func (b *bundle) list() []want {
	if b == nil {
		return nil
	}
	return b.wants
}

// of is how much b takes of the named resource.
func (b *bundle) of(name string) int64 {
	for _, w := range b.list() {
		if w.name == name {
			return w.amount
		}
	}
	return 0
}

// within reports whether b nowhere takes more than other.
func (b *bundle) within(other *bundle) bool {
	return b == nil || b == other || !slices.ContainsFunc(b.wants, func(w want) bool { return w.amount > other.of(w.name) })
}

// larger orders bundles for the order of work: by name, the larger amount first.
func (b *bundle) larger(other *bundle) int {
	x, y := b.list(), other.list()
	for i := 0; i < len(x) && i < len(y); i++ {
		// Of the first name that one of them has alone, the other takes nothing.
		if c := cmp.Or(cmp.Compare(x[i].name, y[i].name), cmp.Compare(y[i].amount, x[i].amount)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(y), len(x))
}

// fits reports whether the cell has enough left.
func (b *bundle) fits(c *cell) bool {
	return b == nil || !slices.ContainsFunc(b.wants, func(w want) bool { return w.amount > c.left(w.column) })
}

// adds is what the bundle adds to the score of the cell.
func (b *bundle) adds(c *cell) (score int64) {
	for _, w := range b.list() {
		score += w.amount * c.extraWeight(w.column)
	}
	return score
}

// take takes the bundle from the cell.
func (b *bundle) take(c *cell) {
	for _, w := range b.list() {
		s := c.in(w.column)
		s.left -= w.amount
	}
}

// use is the sum of the uses of the cell's further resources with the bundle on
// it.
func (b *bundle) use(c *cell) (sum float64) {
	for _, s := range c.stocks {
		sum += use(s.total, s.left-b.of(s.name))
	}
	return sum
}

// lacks is what b takes beyond what is left of each column.
func (b *bundle) lacks(left func(column int32) int64) executor.Amounts {
	var lacks executor.Amounts
	for _, w := range b.list() {
		if lack := w.amount - left(w.column); lack > 0 {
			if lacks == nil {
				lacks = executor.Amounts{}
			}
			lacks[w.name] = lack
		}
	}
	return lacks
}

// distance measures that in parts of what b takes, in millionths or so.
func (b *bundle) distance(left func(column int32) int64) (sum int64) {
	for _, w := range b.list() {
		sum += max(0, w.amount-left(w.column)) << 20 / w.amount
	}
	return sum
}

// A shelf is what is known of a column below a node of a tree.
type shelf struct {
	most   int64 // the most that any cell has left
	weight int64 // the least of the cells
}

// shelf is that of node i, empty for a column that no cell has.
func (t *tree) shelf(i, column int32) shelf {
	if column == none {
		return shelf{}
	}
	return t.shelves[i*t.width+column]
}

// fitsBelow reports whether the cells below node i may have enough left.
func (b *bundle) fitsBelow(t *tree, i int32) bool {
	for _, w := range b.wants {
		if w.amount > t.shelf(i, w.column).most {
			return false
		}
	}
	return true
}

// addsBelow is the least that the bundle adds to the score of a cell below node i.
func (b *bundle) addsBelow(t *tree, i int32) (score int64) {
	for _, w := range b.list() {
		score += w.amount * t.shelf(i, w.column).weight
	}
	return score
}

// stack fills the shelves of the leaf of cell c.
func (t *tree) stack(leaf int32, c *cell) {
	for column := range t.width {
		t.shelves[leaf*t.width+column] = shelf{c.left(column), c.extraWeight(column)}
	}
}

// playShelves makes the shelves of node i from those of its children.
func (t *tree) playShelves(i int32) {
	for column := range t.width {
		a, b := t.shelf(2*i, column), t.shelf(2*i+1, column)
		t.shelves[i*t.width+column] = shelf{max(a.most, b.most), min(a.weight, b.weight)}
	}
}
