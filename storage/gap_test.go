package storage_test

import (
	"errors"
	"slices"
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

func TestGapsWithNothingBetweenThemAreMergedBeforeEventsLeaveTheLog(t *testing.T) {
	var apart []storage.Gap // with events between them
	for i := range storage.MaxGaps - 4 {
		apart = append(apart, storage.Gap{After: storage.Cursor(10*i + 8), First: storage.Cursor(10*i + 15)})
	}
	next := apart[len(apart)-1].First
	run := func(n int) (gaps []storage.Gap) {
		for i := range storage.Cursor(n) {
			gaps = append(gaps, storage.Gap{After: next + i*10, First: next + i*10 + 10})
		}
		return gaps
	}
	gap := func(after, first storage.Cursor) storage.Gap { return storage.Gap{After: after, First: first} }
	for _, c := range []struct {
		name            string
		gaps            []storage.Gap
		merged, widened []storage.Gap // behind those that are apart
	}{
		{"few", run(3), run(3), nil},
		{"as many as there may be", append(run(3), gap(next+50, next+60)), append(run(3), gap(next+50, next+60)), nil},
		// The last one that is apart is the first of the run.
		{"a run", run(5), []storage.Gap{gap(apart[len(apart)-1].After, next+40), gap(next+40, next+50)}, []storage.Gap{gap(apart[len(apart)-1].After, next+40)}},
		{"pairs only", []storage.Gap{gap(next+1, next+5), gap(next+5, next+9), gap(next+10, next+12), gap(next+12, next+14), gap(next+15, next+17)},
			[]storage.Gap{gap(next+1, next+5), gap(next+5, next+9), gap(next+10, next+12), gap(next+12, next+14), gap(next+15, next+17)}, nil},
		{"two runs", append(run(3), gap(next+50, next+51), gap(next+51, next+52), gap(next+52, next+53)),
			[]storage.Gap{gap(apart[len(apart)-1].After, next+20), gap(next+20, next+30), gap(next+50, next+52), gap(next+52, next+53)},
			[]storage.Gap{gap(apart[len(apart)-1].After, next+20), gap(next+50, next+52)}},
	} {
		all := slices.Concat(apart, c.gaps)
		merged, widened := storage.MergeGaps(all)
		want := slices.Concat(apart, c.merged)
		if len(c.widened) > 0 {
			want = slices.Concat(apart[:len(apart)-1], c.merged)
		}
		if !slices.Equal(merged, want) || !slices.Equal(widened, c.widened) {
			t.Errorf("%s: %v and %v; want %v and %v", c.name, merged[len(apart)-1:], widened, want[len(apart)-1:], c.widened)
		}
	}
}
