package converge

import (
	"cmp"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
)

// Cells is what a pass knows of the cells. A cell is present, missing, or
// neither: it is gone, and that is not believed. It is a value that nothing
// changes, so goroutines may share it.
type Cells struct {
	// ids are the cells that are present, in order; present is the same as a
	// set.
	ids     []string
	present map[string]struct{}
	// gone are the known cells that are not present. Every other cell that is
	// not present has been gone since since.
	gone  map[string]goneCell
	since time.Time
	// settled is true if cells can be missing at all, trusted if none is
	// doubted then.
	settled, trusted bool
	taskGrace        time.Duration
}

type goneCell struct {
	since   time.Time
	doubted bool
}

// NewCells is a list of the present cells that is taken at its word: a cell
// that is not in it is missing, and its tasks fail at once. An empty list is
// not believed. Most callers want [Guard.Observe] instead.
func NewCells(present []string) Cells {
	c := Cells{ids: inOrder(present), present: make(map[string]struct{}, len(present)), settled: len(present) > 0, trusted: len(present) > 0}
	for _, id := range present {
		c.present[id] = struct{}{}
	}
	return c
}

// inOrder is a list of its own, sorted and without duplicates.
func inOrder(ids []string) []string {
	ids = slices.Clone(ids)
	if !slices.IsSorted(ids) {
		slices.Sort(ids)
	}
	return slices.Compact(ids)
}

// Missing reports whether the cell is believed to be lost. One that was never
// seen is, unless the loss of others is doubted.
func (c Cells) Missing(cellID string) bool {
	if gone, known := c.gone[cellID]; known {
		return c.settled && !gone.doubted
	}
	return c.trusted && !c.Present(cellID)
}

// Present reports whether the cell is there.
func (c Cells) Present(cellID string) bool {
	_, ok := c.present[cellID]
	return ok
}

// Doubted lists the cells that are gone together with so many others that
// their loss is not believed yet, in order.
func (c Cells) Doubted() (ids []string) {
	//lint:maporder the cells are sorted below
	for id, gone := range c.gone {
		if gone.doubted {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (c Cells) doubts(cellID string) bool { return c.gone[cellID].doubted }

// Trusted reports whether the list is believed as it is: every cell that is
// not present is missing. If not, that is so for some, or for none.
func (c Cells) Trusted() bool { return c.trusted }

// losesTask reports whether the cell's tasks fail, if it was heard of at heard.
func (c Cells) losesTask(cellID string, heard time.Time, alarm *executor.Alarm) bool {
	if !c.Missing(cellID) {
		return false
	}
	since := c.since
	if gone, known := c.gone[cellID]; known {
		since = gone.since
	}
	return alarm.Reached(later(since, heard).Add(c.taskGrace))
}

// changed lists the cells that are no longer what they were before: present,
// missing or neither. It is not ok if that may have changed for cells that
// neither list names.
func (c Cells) changed(before Cells) (ids []string, ok bool) {
	for now, then := c.ids, before.ids; len(now)+len(then) > 0; {
		switch {
		case len(then) == 0 || len(now) > 0 && now[0] < then[0]:
			ids, now = append(ids, now[0]), now[1:]
		case len(now) == 0 || then[0] < now[0]:
			ids, then = append(ids, then[0]), then[1:]
		default:
			now, then = now[1:], then[1:]
		}
	}
	for _, pair := range [...][2]Cells{{c, before}, {before, c}} {
		one, other := pair[0], pair[1]
		//lint:maporder the cells are sorted below
		for id := range one.gone {
			if one.Missing(id) != other.Missing(id) || one.doubts(id) != other.doubts(id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), c.settled == before.settled && c.trusted == before.trusted
}

// Guard decides how far a list of present cells is believed. Losing one cell is
// ordinary. Losing half of them within a short time is more likely a fault of
// what keeps the list, or of the way to it, and acting on it would restart the
// fleet.
//
// Losses are judged together: those of the last Grace, of cells that came back
// too, against the cells that were known when it began. While they are few,
// each cell is missing as soon as it is gone. Once they are too many, none of
// the cells that are gone is believed to be lost, until it is back or has been
// gone for Grace itself.
//
// The zero value means the documented defaults.
type Guard struct {
	// MaxLoss is the share of the cells that may be lost within Grace and be
	// believed at once (default 0.5; 1 or more believes any loss but that of
	// all cells; negative believes none at once).
	MaxLoss float64
	// Grace is how long a cell must be gone to be missing, if it is one of too
	// many, and how long after the first observation no cell is missing,
	// because cells may not have announced themselves yet (default 1 min;
	// negative means none). While a list is empty it begins anew for all cells:
	// the first to return are not all there are.
	Grace time.Duration
	// TaskGrace is how long a missing cell must have been gone before its tasks
	// fail, however few cells are lost, because that cannot be undone (default
	// 1 min; negative means none).
	TaskGrace time.Duration
}

func (g Guard) withDefaults() Guard {
	return Guard{
		MaxLoss:   max(cmp.Or(g.MaxLoss, 0.5), 0),
		Grace:     max(cmp.Or(g.Grace, time.Minute), 0),
		TaskGrace: max(cmp.Or(g.TaskGrace, time.Minute), 0),
	}
}

// GuardState is what a Guard remembers from one observation to the next. The
// zero value has seen nothing.
type GuardState struct {
	// Since is when the first observation was made; while all lists have been
	// empty, when the last was.
	Since time.Time
	// Known are the cells that were seen, in order. A cell that has been gone
	// for longer than both graces is forgotten unless others are doubted.
	Known []KnownCell
}

// A KnownCell is what a Guard remembers of one cell.
type KnownCell struct {
	ID string
	// Seen is since when it is known.
	Seen time.Time
	// Lost is when it was last found to be gone; zero if never.
	Lost time.Time
	// Gone is true from then until it is back.
	Gone bool
	// Doubted is true while it is gone and that is not believed.
	Doubted bool
}

// Observe takes the list of present cells, in any order, and says how far it
// is believed. An empty list never is: with no cell there, nothing could be
// placed anyway.
func (g Guard) Observe(s GuardState, present []string, now time.Time) (Cells, GuardState) {
	g = g.withDefaults()
	cells := NewCells(present)
	if s.Since.IsZero() || len(s.Known) == 0 && len(present) == 0 {
		s.Since = now
	}
	s.Known = g.update(s.Known, cells.ids, now)
	if g.tooMany(s, now) || len(present) == 0 {
		for i := range s.Known {
			if k := &s.Known[i]; k.Gone {
				k.Doubted = g.recent(k, now)
			}
		}
	}
	if !slices.ContainsFunc(s.Known, func(k KnownCell) bool { return k.Doubted }) {
		s.Known = slices.DeleteFunc(s.Known, func(k KnownCell) bool { return k.Gone && now.Sub(k.Lost) >= max(g.Grace, g.TaskGrace) })
	}
	cells.since, cells.taskGrace = s.Since, g.TaskGrace
	cells.settled = cells.settled && now.Sub(s.Since) >= g.Grace
	cells.trusted = cells.settled
	cells.gone = map[string]goneCell{}
	for _, k := range s.Known {
		if k.Gone {
			cells.gone[k.ID] = goneCell{since: k.Lost, doubted: k.Doubted}
			cells.trusted = cells.trusted && !k.Doubted
		}
	}
	return cells, s
}

// update notes which cells have come and gone. Both lists are in order. It
// returns a new one, unless nothing has changed and no cell is gone.
func (g Guard) update(known []KnownCell, present []string, now time.Time) []KnownCell {
	if slices.EqualFunc(known, present, func(k KnownCell, id string) bool { return k.ID == id && !k.Gone }) {
		return known
	}
	empty := len(present) == 0
	next := make([]KnownCell, 0, max(len(known), len(present)))
	for len(known)+len(present) > 0 {
		switch {
		case len(known) == 0 || len(present) > 0 && present[0] < known[0].ID:
			next = append(next, KnownCell{ID: present[0], Seen: now})
			present = present[1:]
		case len(present) == 0 || known[0].ID < present[0]:
			next = append(next, g.missed(known[0], empty, now))
			known = known[1:]
		default:
			next = append(next, g.met(known[0], now))
			known, present = known[1:], present[1:]
		}
	}
	return next
}

// missed is a known cell that is not present, nor is any other if empty.
func (g Guard) missed(k KnownCell, empty bool, now time.Time) KnownCell {
	lately := g.recent(&k, now)
	if !k.Gone || empty && (lately || k.Doubted) {
		k.Gone, k.Lost = true, now
		return k
	}
	k.Doubted = k.Doubted && lately
	return k
}

// met is a known cell that is present. One that was gone for the grace is a new
// one.
func (g Guard) met(k KnownCell, now time.Time) KnownCell {
	if k.Gone && !g.recent(&k, now) {
		return KnownCell{ID: k.ID, Seen: now}
	}
	k.Gone, k.Doubted = false, false
	return k
}

// tooMany judges the losses of the last grace.
func (g Guard) tooMany(s GuardState, now time.Time) bool {
	start := later(now.Add(-g.Grace), s.Since)
	known, lost := 0, 0
	for i := range s.Known {
		k := &s.Known[i]
		recent := g.recent(k, now)
		if recent {
			lost++
		}
		if !k.Seen.After(start) && (recent || !k.Gone) {
			known++
		}
	}
	return g.MaxLoss < 1 && float64(lost) > g.MaxLoss*float64(known)
}

// recent reports whether the cell was lost within the last grace.
func (g Guard) recent(k *KnownCell, now time.Time) bool {
	return !k.Lost.IsZero() && now.Sub(k.Lost) < g.Grace
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
