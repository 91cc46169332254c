package storage

import (
	"context"
	"time"
)

// A Gap is a part of the log in which no number belongs to an event. A store
// leaves a gap when its log may have lost events, because of a restored backup,
// a power cut or a fail-over. Somebody may have seen the lost events, so their
// numbers must not be given to others. The next number is therefore the present
// time in microseconds since 1970. Every number given before is smaller,
// because no store commits an event each microsecond.
//
// The gap ends with an event of its own, which subscribers see.
type Gap struct {
	// After is the last event before the gap. Readers that have seen nothing later
	// continue across the gap and miss nothing.
	After Cursor `json:"after"`
	// First is the number of the event that ends the gap. Positions between
	// After and First−1 are gone: a reader at one of them has seen lost events.
	First Cursor `json:"first"`
}

// NextGap returns the gap that follows the newest event of a log. seen is the
// greatest number that somebody has seen, and now is the time by the Store's
// clock. After the gap, the epochs of leases begin above First.
func NextGap(newest, seen Cursor, now time.Time) Gap {
	return Gap{After: newest, First: max(max(newest, seen)+2, Cursor(now.UnixMicro()))}
}

// A Restorer is a Store whose log can lose its newest events. Restored may be
// called concurrently with all other methods.
//
// A Store finds that out by itself where it can, and then leaves the same gap
// as Restored: each time it is opened on existing data, when its server has
// another identity than before, and when its log is shorter than it was.
type Restorer interface {
	// Restored must be called if the Store was, or may have been, restored while it
	// was open, in a way that the Store cannot notice. It appends an event with a
	// [Gap]. From then on, no event gets a number and no lease an epoch that was
	// given before, not even one that the Store has lost. It is always safe to
	// call.
	Restored(ctx context.Context) error
}

// Restored calls s.Restored if s is a [Restorer], and otherwise does nothing.
// It is for Stores that wrap another.
func Restored(ctx context.Context, s Store) error {
	if r, is := s.(Restorer); is {
		return r.Restored(ctx)
	}
	return nil
}

// Check returns nil if a reader that has seen the event after, and all before
// it, can continue without missing anything, and otherwise a *[GoneError]. Only
// gaps that begin at or before after and end behind it matter.
func (x Extent) Check(after Cursor, gaps []Gap) error {
	next := after + 1
	for i := range gaps {
		switch g := gaps[i]; {
		case after == g.After || after == g.First-1:
			next = g.First
		case after > g.After && after < g.First:
			return &GoneError{After: after, Extent: x, Gap: &g}
		}
	}
	if after > x.Newest || next < x.Oldest {
		return &GoneError{After: after, Extent: x}
	}
	return nil
}

// MaxGaps is the largest number of gaps in a log. Beyond it, a Store merges gaps
// with [MergeGaps]. If there are still more, it drops the events before the
// oldest gaps from the log.
const MaxGaps = 1000

// MergeGaps returns gaps, which are in ascending order, unchanged if there are at
// most MaxGaps. Otherwise it merges those that follow one another directly: only
// the event that ends the one lies between it and the next. A Store that is
// opened again and again without a commit makes such gaps, and they must not
// push its events out of the log.
//
// Of gaps that follow one another, all but the last become one. The last stays,
// so a reader that has seen the event before it continues and misses nothing.
//
// merged is the new list. widened are those gaps in it that have grown; for each,
// the Store deletes the events inside, and writes the gap into the event that
// ends it.
func MergeGaps(gaps []Gap) (merged, widened []Gap) {
	if len(gaps) <= MaxGaps {
		return gaps, nil
	}
	for i, g := range gaps {
		last := len(merged) - 1
		if last < 0 || merged[last].First != g.After || i+1 == len(gaps) || gaps[i+1].After != g.First {
			merged = append(merged, g)
			continue
		}
		merged[last].First = g.First
		if n := len(widened) - 1; n >= 0 && widened[n].After == merged[last].After {
			widened[n] = merged[last]
		} else {
			widened = append(widened, merged[last])
		}
	}
	return merged, widened
}

// Keep returns the oldest event to keep so that the newest n events stay in the
// log, or a few more. The gaps are in ascending order.
func (x Extent) Keep(n int, gaps []Gap) Cursor {
	oldest := x.Oldest
	if extra := len(gaps) - MaxGaps; extra > 0 {
		oldest = max(oldest, gaps[extra-1].First)
	}
	last, left := x.Newest, Cursor(n)
	for i := len(gaps) - 1; i >= 0 && last-left+1 < gaps[i].First; i-- {
		left -= last - gaps[i].First + 1
		last = gaps[i].After
	}
	return max(oldest, last-left+1)
}
