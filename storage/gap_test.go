package storage_test

import (
	"errors"
	"testing"
	"time"

	"github.com/diegosdk/diego/storage"
)

func TestAGapEndsAboveEveryNumberThatWasEverGiven(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name         string
		newest, seen storage.Cursor
		want         storage.Gap
	}{
		{"a log that counts from 1", 480, 480, storage.Gap{After: 480, First: 1795348800000000}},
		{"a log without events", 0, 5, storage.Gap{After: 0, First: 1795348800000000}},
		{"a second gap in the same microsecond", 1795348800000000, 0, storage.Gap{After: 1795348800000000, First: 1795348800000002}},
		{"a clock that was set back", 1795348900000000, 0, storage.Gap{After: 1795348900000000, First: 1795348900000002}},
		{"a clock that was set back while the log was lost", 480, 1795348900000000, storage.Gap{After: 480, First: 1795348900000002}},
	} {
		if got := storage.NextGap(c.newest, c.seen, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestAReaderGoesOnAcrossAGapUnlessItHasSeenLostEvents(t *testing.T) {
	gaps := []storage.Gap{{After: 10, First: 100}, {After: 100, First: 200}, {After: 205, First: 300}}
	x := storage.Extent{Oldest: 5, Newest: 310}
	const good, gone, inGap = "", "gone", "in a gap"
	for after, want := range map[storage.Cursor]string{
		3: gone, 4: good, 9: good, 10: good,
		11: inGap, 98: inGap, 99: good, 100: good,
		101: inGap, 198: inGap, 199: good, 200: good, 204: good, 205: good,
		206: inGap, 298: inGap, 299: good, 300: good, 310: good, 311: gone,
	} {
		err := x.Check(after, gaps)
		var e *storage.GoneError
		got := good
		if errors.As(err, &e) {
			if got = gone; e.Gap != nil {
				got = inGap
			}
			if e.After != after || e.Extent != x {
				t.Errorf("after %d: %+v", after, e)
			}
		}
		if got != want {
			t.Errorf("after %d: %q (%v), want %q", after, got, err, want)
		}
	}
	// Nothing is missed by a reader that has seen all before the gap, even if
	// that has left the log.
	x.Oldest = 100
	for after, ok := range map[storage.Cursor]bool{9: false, 10: true, 99: true, 98: false} {
		if err := x.Check(after, gaps); (err == nil) != ok {
			t.Errorf("after %d, while the log begins with the gap: %v", after, err)
		}
	}
}

func TestTheLogKeepsItsNewestEventsAcrossGaps(t *testing.T) {
	gaps := []storage.Gap{{After: 10, First: 100}, {After: 100, First: 200}, {After: 205, First: 300}}
	x := storage.Extent{Oldest: 1, Newest: 310} // 10 + 1 + 6 + 11 events
	for n, want := range map[int]storage.Cursor{
		1: 310, 11: 300, 12: 205, 17: 200, 18: 100, 19: 10, 27: 2, 28: 1, 1000: 1,
	} {
		if got := x.Keep(n, gaps); got != want {
			t.Errorf("%d events begin with %d, want %d", n, got, want)
		}
	}
	x.Oldest = 100
	if got := x.Keep(1000, gaps); got != 100 {
		t.Errorf("the log begins with %d, want 100, where it began", got)
	}
	if got := (storage.Extent{Oldest: 1}).Keep(5, nil); got != 1 {
		t.Errorf("an empty log begins with %d", got)
	}
	many := make([]storage.Gap, storage.MaxGaps+3)
	for i := range many {
		many[i] = storage.Gap{After: storage.Cursor(10 * i), First: storage.Cursor(10*i + 5)}
	}
	if got := (storage.Extent{Oldest: 1, Newest: 20_000}).Keep(1_000_000, many); got != many[2].First {
		t.Errorf("with %d gaps the log begins with %d, want %d", len(many), got, many[2].First)
	}
}
