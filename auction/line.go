package auction

import (
	"cmp"
	"slices"
	"sort"
)

// A line has the cells of a class, which are of one size, in the order of their
// scores for instances. Usually two of its first cells can take an item, so a
// search walks along it and needs no tree.
//
// The line is cut into blocks, so a cell that moves shifts few others.
type line struct {
	blocks [][]spot
	// spare are blocks without cells, for reuse.
	spare [][]spot
	// scores has the score of each spot, in the order of the cells' places.
	scores []int64
	// stale cells may not be in their spots.
	stale backlog
}

// A spot is a cell in a line.
type spot struct {
	score       int64
	cell, place int32
}

func (s *spot) before(other *spot) bool {
	return s.score < other.score || s.score == other.score && s.cell < other.cell
}

// maxBlock is the most cells of a block.
const maxBlock = 64

// newLine makes an empty line with room for a number of cells.
func newLine(cells int) *line {
	return &line{scores: make([]int64, cells), stale: backlog{make([]int32, 0, cells/8+1), true}}
}

// form puts the cells in line.
func (l *line) form(f *fleet, cells []int32) {
	spots := make([]spot, len(cells))
	for i, n := range cells {
		l.scores[i] = f.score(&f.cells[n], LRP)
		spots[i] = spot{l.scores[i], n, f.places[n]}
	}
	slices.SortFunc(spots, func(a, b spot) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.cell, b.cell)) })
	for _, b := range l.blocks {
		l.spare = append(l.spare, b[:0])
	}
	l.blocks = l.blocks[:0]
	const half = maxBlock / 2
	if want := (len(cells) + half - 1) / half; len(l.spare) < want { // one allocation for all
		l.blocks, l.spare = slices.Grow(l.blocks, want), slices.Grow(l.spare, want)
		for some := range slices.Chunk(make([]spot, want*maxBlock), maxBlock) {
			l.spare = append(l.spare, some[:0:maxBlock])
		}
	}
	for some := range slices.Chunk(spots, half) {
		l.blocks = append(l.blocks, append(l.empty(), some...))
	}
}

// empty is a block without cells.
func (l *line) empty() []spot {
	if end := len(l.spare) - 1; end >= 0 {
		b := l.spare[end]
		l.spare = l.spare[:end]
		return b
	}
	return make([]spot, 0, maxBlock)
}

// catchUp moves the cells that have changed to where they belong; place is that of
// the first of all cells.
func (l *line) catchUp(f *fleet, cells []int32, place int32) {
	if l.stale.all {
		l.form(f, cells)
	}
	for _, n := range l.stale.cells {
		at := f.places[n]
		old := &l.scores[at-place]
		if s := f.score(&f.cells[n], LRP); s != *old {
			l.remove(spot{*old, n, at})
			l.insert(spot{s, n, at})
			*old = s
		}
	}
	l.stale.clear()
}

// find is where s is or belongs: at i in block b.
func (l *line) find(s spot) (b, i int) {
	b = max(0, sort.Search(len(l.blocks), func(b int) bool { return s.before(&l.blocks[b][0]) })-1)
	block := l.blocks[b]
	return b, sort.Search(len(block), func(i int) bool { return !block[i].before(&s) })
}

func (l *line) remove(s spot) {
	// Usually s is the cell that was chosen last, which is one of the first.
	b, i := 0, slices.Index(l.blocks[0][:min(8, len(l.blocks[0]))], s)
	if i < 0 {
		b, i = l.find(s)
	}
	if l.blocks[b] = slices.Delete(l.blocks[b], i, i+1); len(l.blocks[b]) == 0 {
		l.spare = append(l.spare, l.blocks[b])
		l.blocks = slices.Delete(l.blocks, b, b+1)
	}
}

func (l *line) insert(s spot) {
	if len(l.blocks) == 0 {
		l.blocks = append(l.blocks, append(l.empty(), s))
		return
	}
	b, i := l.find(s)
	if len(l.blocks[b]) == maxBlock {
		half := append(l.empty(), l.blocks[b][maxBlock/2:]...)
		l.blocks[b] = l.blocks[b][:maxBlock/2]
		l.blocks = slices.Insert(l.blocks, b+1, half)
		if i > maxBlock/2 {
			b, i = b+1, i-maxBlock/2
		}
	}
	l.blocks[b] = slices.Insert(l.blocks[b], i, s)
}

// A walk gives up after it has passed over maxClosed cells with too many
// instances, or over maxFull that lack room.
const (
	maxClosed = 128
	maxFull   = 8
)

// walk offers the cells of a line until the rest is no better than the best two.
// It reports whether it got there, and if not, whether closed cells were why.
func (s *search) walk(l *line) (done, crowded bool) {
	closed, full := 0, 0
	for _, block := range l.blocks {
		for i := range block {
			at := &block[i]
			s.fleet.looked++
			r := rank{at.score + s.adds, s.level, at.cell}
			switch {
			case !r.before(s.top[1]):
				return true, false
			case !s.open(at.cell, at.place):
				if closed++; closed > maxClosed {
					return false, true
				}
			case !s.fleet.cells[at.cell].fits(s.demand):
				if full++; full > maxFull {
					return false, false
				}
			default:
				s.offer(r)
			}
		}
	}
	return true, false
}
