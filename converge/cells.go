package converge

import (
	"slices"
	"time"
)

// Cells is what a pass knows of the cells.
type Cells struct {
	present map[string]struct{}
	trusted bool
}

// NewCells is a list of the present cells that is taken at its word: a cell
// that is not in it is missing. An empty list is not believed. Most callers
// want [Guard.Observe] instead.
func NewCells(present []string) Cells {
	c := Cells{present: make(map[string]struct{}, len(present)), trusted: len(present) > 0}
	for _, id := range present {
		c.present[id] = struct{}{}
	}
	return c
}

// Missing reports whether the cell is known to be gone.
func (c Cells) Missing(cellID string) bool { return c.trusted && !c.Present(cellID) }

// Present reports whether the cell is there.
func (c Cells) Present(cellID string) bool {
	_, ok := c.present[cellID]
	return ok
}

// without lists the present cells that the others have not, in order.
func (c Cells) without(others Cells) (ids []string) {
	//lint:maporder the cells are sorted below
	for id := range c.present {
		if !others.Present(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Trusted reports whether the list is believed; if not, no cell is missing.
func (c Cells) Trusted() bool { return c.trusted }

// Guard decides whether a list of present cells can be believed. Losing one
// cell is ordinary; losing half of them at once is more likely a fault of
// whatever keeps the list, and acting on it would restart the fleet.
//
// The zero value means the documented defaults.
type Guard struct {
	// MaxLoss is the share of the cells that may go missing between two
	// observations and be believed at once (default 0.5; 1 or more believes
	// any loss but that of all cells; negative believes none at once).
	MaxLoss float64
	// Grace is how long a larger loss must last to be believed, and how long
	// after the first observation no loss is believed, as the cells may not
	// have announced themselves yet (default 1 min; negative means none). It
	// begins anew when a list was empty: whatever keeps it has lost it, and
	// the first cells to return are not all there are.
	Grace time.Duration
}

const (
	defaultMaxLoss = 0.5
	defaultGrace   = time.Minute
)

// GuardState is what a Guard remembers from one observation to the next. The
// zero value has seen nothing.
type GuardState struct {
	// Known are the cells that were last believed to be there, in order.
	Known []string
	// First is when the first observation was made; while all lists have been
	// empty, when the last was.
	First time.Time
	// LossSince is since when too many of Known have been missing, or when the
	// list was last empty; zero if neither is the case.
	LossSince time.Time
}

// Observe takes the list of present cells, in any order, and says how far it
// is believed. An empty list never is: with no cell there, nothing could be
// placed anyway.
func (g Guard) Observe(s GuardState, present []string, now time.Time) (Cells, GuardState) {
	grace, maxLoss := g.Grace, g.MaxLoss
	if grace == 0 {
		grace = defaultGrace
	}
	if maxLoss == 0 {
		maxLoss = defaultMaxLoss
	}
	if s.First.IsZero() || len(s.Known) == 0 && len(present) == 0 {
		s.First = now
	}
	cells := NewCells(present)
	lost := 0
	for _, id := range s.Known {
		if !cells.Present(id) {
			lost++
		}
	}
	tooMany := float64(lost) > max(maxLoss, 0)*float64(len(s.Known))
	switch {
	case len(present) == 0:
		s.LossSince = now
	case !tooMany:
		s.LossSince = time.Time{}
	case s.LossSince.IsZero():
		s.LossSince = now
	}
	settled := now.Sub(s.First) >= grace
	believed := s.LossSince.IsZero() || now.Sub(s.LossSince) >= grace
	cells.trusted = cells.trusted && settled && believed
	if cells.trusted || s.LossSince.IsZero() {
		s.Known = slices.Compact(slices.Sorted(slices.Values(present)))
		s.LossSince = time.Time{}
	}
	return cells, s
}
