package sqlstore

import "github.com/diegosdk/diego/storage/sqlstore/internal/dialect"

// The sizes of pages. The first one is small, because most lists are short.
const (
	firstPage = 256  // rows
	laterPage = 2048 // rows
	// pageBytes is how much stored data a page keeps before it ends. One more record
	// goes into it, however large it is.
	pageBytes = 4 << 20
)

// A portion is the size of the pages of a list. A server sends all rows that a statement
// asks for, even if the page ends before. So the pages after a short one ask for fewer.
type portion struct {
	rows  int // that the present page asks for
	later int // that later pages ask for
	seen  int // rows of the present page
	bytes int // that it keeps
	short bool
}

func newPortion(later int) *portion { return &portion{rows: firstPage, later: later} }

// took counts a row and the bytes that are kept of it. It fails with ErrEnough if the
// page ends.
func (p *portion) took(bytes int) error {
	p.seen++
	if p.bytes += bytes; p.bytes >= pageBytes {
		p.short = true
		return dialect.ErrEnough
	}
	return nil
}

// shorten ends the page after the first n rows.
func (p *portion) shorten(n int) { p.seen, p.short = n, true }

// next begins the next page, and reports whether there is none.
func (p *portion) next() (last bool) {
	last = !p.short && p.seen < p.rows
	switch {
	case p.short:
		p.rows = p.seen
	case p.rows < firstPage:
		p.rows = min(2*p.rows, firstPage)
	default:
		p.rows = p.later
	}
	p.seen, p.bytes, p.short = 0, 0, false
	return last
}
