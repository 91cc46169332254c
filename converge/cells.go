package converge

import (
	"cmp"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
)

// Cells is what a pass knows about the cells. A cell is present, missing, or
// neither. It is neither if it is gone and its loss is not believed. Cells
// never change, so goroutines may share them.
type Cells struct {
	// ids are the present cells, in order; present has the same cells as a set.
	ids     []string
	present map[string]struct{}
	// gone are the known cells that are not present. Every other absent cell has
	// been gone since the time since.
	gone  map[string]goneCell
	since time.Time
	// settled is true if cells can be missing at all. trusted is true if also no
	// cell is doubted.
	settled, trusted bool
	taskGrace        time.Duration
}

type goneCell struct {
	since   time.Time
	doubted bool
}

// NewCells makes Cells from a list of the present cells and believes the list:
// a cell that is not in it is missing, and its tasks fail at once. Only an
// empty list is not believed. Most callers want [Guard.Observe] instead.
func NewCells(present []string) Cells {
	c := Cells{ids: inOrder(present), present: make(map[string]struct{}, len(present)), settled: len(present) > 0, trusted: len(present) > 0}
	for _, id := range present {
		c.present[id] = struct{}{}
	}
	return c
}

// inOrder returns a sorted copy without duplicates.
func inOrder(ids []string) []string {
	ids = slices.Clone(ids)
	if !slices.IsSorted(ids) {
		slices.Sort(ids)
	}
	return slices.Compact(ids)
}

// Missing reports whether the cell is believed to be lost. A cell that was
// never seen is missing too, unless the loss of others is doubted.
func (c Cells) Missing(cellID string) bool {
	if gone, known := c.gone[cellID]; known {
		return c.settled && !gone.doubted
	}
	return c.trusted && !c.Present(cellID)
}

// Present reports whether the cell is present.
func (c Cells) Present(cellID string) bool {
	_, ok := c.present[cellID]
	return ok
}

// Doubted lists, in order, the cells whose loss is not believed yet because too
// many others are gone with them.
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

// Trusted reports whether every cell that is not present is missing. If it is
// false, the loss of at least some absent cells is not believed.
func (c Cells) Trusted() bool { return c.trusted }

// losesTask reports whether the tasks of a cell that was last heard of at heard
// fail.
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

// changed lists the cells whose status (present, missing or neither) differs
// from before. ok is false if it may also differ for cells that neither list
// names.
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

// Guard decides how far to believe a list of present cells. Losing one cell is
// ordinary. If half of them vanish within a short time, the source of the list
// or the network is more likely at fault, and acting on the list would restart
// the fleet.
//
// It judges losses together: it compares the losses of the last Grace,
// including cells that came back, with the cells that were known when that time
// began. While the losses are few, each cell is missing as soon as it is gone.
// Once they are too many, no absent cell is believed to be lost until it is
// back or has itself been gone for Grace.
//
// The zero value means the documented defaults.
type Guard struct {
	// MaxLoss is the share of the cells that may be lost within Grace and be
	// believed lost at once (default 0.5; 1 or more believes any loss but that of
	// all cells; negative believes none at once).
	MaxLoss float64
	// Grace is how long a cell must be gone to be missing if it is one of too
	// many. For the same time after the first observation no cell is missing,
	// because cells may not have announced themselves yet (default 1 min; negative
	// means none). While the list is empty, this time starts again for all cells,
	// because the first cells to return are not all of them.
	Grace time.Duration
	// TaskGrace is how long a missing cell must have been gone before its tasks
	// fail, even if few cells are lost, because a failure cannot be undone
	// (default 1 min; negative means none).
	TaskGrace time.Duration
}

func (g Guard) withDefaults() Guard {
	return Guard{
		MaxLoss:   max(cmp.Or(g.MaxLoss, 0.5), 0),
		Grace:     max(cmp.Or(g.Grace, time.Minute), 0),
		TaskGrace: max(cmp.Or(g.TaskGrace, time.Minute), 0),
	}
}

// GuardState is what a Guard remembers between observations. The zero value has
// seen nothing.
type GuardState struct {
	// Since is the time of the first observation or, as long as every list was
	// empty, of the last one.
	Since time.Time
	// Known are the cells that were seen, in order of their ids. A cell that has
	// been gone for longer than both grace periods is forgotten unless others are
	// doubted.
	Known []KnownCell
}

// A KnownCell is what a Guard remembers about one cell.
type KnownCell struct {
	ID string
	// Seen is the time since which the cell is known.
	Seen time.Time
	// Lost is when the cell was last found to be gone; zero if never.
	Lost time.Time
	// Gone is true from Lost until the cell is back.
	Gone bool
	// Doubted is true while the cell is gone and its loss is not believed.
	Doubted bool
}

// Observe takes the list of present cells, in any order, and decides how far to
// believe it. An empty list is never believed, because nothing could be placed
// without a cell. s is not changed; pass the result to the next call.
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
// returns a new list, unless nothing has changed and no cell is gone.
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

// missed updates a known cell that is absent; empty says that all cells are.
func (g Guard) missed(k KnownCell, empty bool, now time.Time) KnownCell {
	lately := g.recent(&k, now)
	if !k.Gone || empty && (lately || k.Doubted) {
		k.Gone, k.Lost = true, now
		return k
	}
	k.Doubted = k.Doubted && lately
	return k
}

// met updates a known cell that is present. After being gone for Grace it
// counts as a new one.
func (g Guard) met(k KnownCell, now time.Time) KnownCell {
	if k.Gone && !g.recent(&k, now) {
		return KnownCell{ID: k.ID, Seen: now}
	}
	k.Gone, k.Doubted = false, false
	return k
}

// tooMany reports whether the cells lost within the last Grace are too many.
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

// recent reports whether the cell was lost within the last Grace.
func (g Guard) recent(k *KnownCell, now time.Time) bool {
	return !k.Lost.IsZero() && now.Sub(k.Lost) < g.Grace
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
