package storage

import (
	"context"
	"time"
)

// A Gap is a part of the log in which no number belongs to an event. A store
// leaves one when its log may have gone back to an earlier moment, because of a
// restored backup, a power cut or a fail-over. Events that it has lost may have
// been seen, and their numbers must not come again for others. So the next
// number is the present time in microseconds since 1970, and every number that
// was ever given lies below it, since no store commits an event each
// microsecond.
//
// The gap ends with an event of its own, which subscribers see.
type Gap struct {
	// After is the last event before the gap. Readers that have seen nothing
	// later go on across the gap and miss nothing.
	After Cursor `json:"after"`
	// First is the number of the event that ends the gap. Positions between
	// After and First−1 are gone: a reader at one of them has seen lost events.
	First Cursor `json:"first"`
}

// NextGap is the gap that follows the newest event of a log, which was seen to
// reach further, or not, at a time by the Store's clock. After it the epochs of
// leases begin above First.
func NextGap(newest, seen Cursor, now time.Time) Gap {
	return Gap{After: newest, First: max(max(newest, seen)+2, Cursor(now.UnixMicro()))}
}

// A Restorer is a Store whose log can go back to an earlier moment.
//
// A Store finds out by itself as often as it can, and leaves the same gap as
// Restored does: each time that it is opened on data that were there before,
// when its server has another identity than before, and when it finds its log
// shorter than it was.
type Restorer interface {
	// Restored is to be called when the Store was put back while it was open, or
	// may have been, in a way that it does not find out. It appends an event with a [Gap]. From
	// then on no event has a number and no lease an epoch that was given
	// before, not even one that the Store has lost. It is always safe to call.
	Restored(ctx context.Context) error
}

// Restored asks s if s is a [Restorer], and otherwise does nothing. It is for
// Stores that wrap another.
func Restored(ctx context.Context, s Store) error {
	if r, is := s.(Restorer); is {
		return r.Restored(ctx)
	}
	return nil
}

// Check is nil if a reader that has seen the event after, and all before it,
// misses nothing by going on. Otherwise it is a *[GoneError]. Of the log's gaps
// only those matter that begin at after or before, and end behind it.
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

// MaxGaps is how many gaps a log has at most. With more of them, those are
// merged that [MergeGaps] can merge. If there are still more, the events before
// the oldest ones leave the log.
const MaxGaps = 1000

// MergeGaps merges gaps if there are more than MaxGaps, so that a Store which is
// opened again and again pushes no event out of its log. It merges those between
// which there is nothing but the events that end them. The last gap of such a run
// stays, so only readers miss something that have not read on since the last but
// one. The gaps are in ascending order.
//
// A Store drops the events within the widened gaps, and widens them in the events
// that end them.
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

// Keep is the oldest event of the log if only its newest n events stay, or
// some more. The gaps are in ascending order.
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
