package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// largeEvent is an event of about so many bytes.
func largeEvent(bytes int) storage.Batch {
	e := lrp.Event{Kind: lrp.InstanceCreated, After: unclaimed("p", 0), Cause: lrp.Cause{Detail: strings.Repeat("x", bytes)}}
	return storage.Batch{Events: []storage.Event{{LRP: &e}}}
}

// logBytes is how large the log is in the database.
func logBytes(t testing.TB, s *Store) (n int64) {
	t.Helper()
	if err := dialect.QueryRow(context.Background(), s.read, "SELECT COALESCE(SUM(LENGTH(data)), 0) FROM "+s.table("events"), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A log that an older release has left, or one with other settings, shrinks step
// by step, and so does one that several processes write.
func TestTheRowsOfTheLogAreBoundedByTheirBytes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		const event, most = 16 << 10, 1 << 20
		commit := func(s *Store, n, bytes int) {
			t.Helper()
			for range n {
				if _, err := s.Commit(t.Context(), largeEvent(bytes)); err != nil {
					t.Fatal(err)
				}
			}
		}
		unbounded := mustOpen(t, dsn, Options{})
		commit(unbounded, 100, 1000) // more than are measured at a time
		for range 5 {
			b := largeEvent(event)
			for len(b.Events) < 100 {
				b.Events = append(b.Events, b.Events[0])
			}
			if _, err := unbounded.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if n := logBytes(t, unbounded); n < 5*most {
			t.Fatalf("the log has %d bytes", n)
		}
		a, b := mustOpen(t, dsn, Options{EventBytes: most}), mustOpen(t, dsn, Options{EventBytes: most})
		within := func(when string) {
			t.Helper()
			if n := logBytes(t, a); n < most/2 || n > most*5/4 {
				t.Fatalf("%s the log has %d bytes", when, n)
			}
			x, err := a.Log(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for e, err := range a.Events(t.Context(), x.Oldest-1, storage.EventFilter{}) {
				if n++; err != nil || n == 1 && e.Sequence != x.Oldest {
					t.Fatalf("%s event %d of %+v: %d, %v", when, n, x, e.Sequence, err)
				}
			}
			for _, err := range a.Events(t.Context(), 1, storage.EventFilter{}) {
				if !errors.Is(err, storage.ErrGone) {
					t.Fatalf("%s after event 1: %v", when, err)
				}
			}
		}
		commit(a, 5, event)
		within("after five commits")
		for n := range 50 {
			commit(a, 1+n%3, event)
			commit(b, n%2, event)
			within(fmt.Sprint("in round ", n))
			if n%10 == 9 {
				if err := a.Restored(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A reader that wants one event does not hold those behind it. A server sends all rows
// that a page asks for.
func TestAPageOfTheLogHasFewBytes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		const events, bytes = 10, 2 << 20
		for range events {
			if _, err := s.Commit(t.Context(), largeEvent(bytes)); err != nil {
				t.Fatal(err)
			}
		}
		log, err := s.Log(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		size, asked, position := portionOfLog(), 0, log.Oldest-1
		for last := false; !last; {
			asked += size.rows
			var page []stored
			if page, last, err = s.segments(t.Context(), position, size); err != nil || len(page)*bytes > pageBytes {
				t.Fatalf("got a page of %d events of 2 MiB, %v", len(page), err)
			}
			position += storage.Cursor(len(page))
		}
		if position != log.Newest || asked > events+firstSegments {
			t.Errorf("pages up to event %d of %d ask for %d rows", position, log.Newest, asked)
		}
		want := log.Oldest
		for e, err := range s.Events(t.Context(), log.Oldest-1, storage.EventFilter{}) {
			if err != nil || e.Sequence != want {
				t.Fatalf("got event %d, %v; want %d", e.Sequence, err, want)
			}
			want++
		}
		if want != log.Newest+1 {
			t.Errorf("the list ends before event %d of %d", want, log.Newest)
		}
	})
}

// What is small is measured some rows at a time.
func TestALogOfManyRowsIsMeasuredStepByStep(t *testing.T) {
	s := mustOpen(t, ":memory:", Options{})
	for range measuredRows*2 + 10 {
		if _, err := s.Commit(t.Context(), largeEvent(100)); err != nil {
			t.Fatal(err)
		}
	}
	want := logBytes(t, s)
	s.size = logSize{behind: true} // as in a process that has just begun
	steps := 0
	for ; s.size.behind; steps++ {
		if _, err := s.Commit(t.Context(), storage.Batch{Domains: []storage.DomainWrite{{Name: "d"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if steps != 3 || s.size.bytes != want || len(s.size.spans) != 1 {
		t.Errorf("%d bytes in %d spans after %d steps, want %d in one after 3", s.size.bytes, len(s.size.spans), steps, want)
	}
}

func TestALogSizeHasFewSpansAndTrimsWhatIsTooMuch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l logSize
	const most = 128 << 20
	var sizes []int64
	for n := range int64(200_000) {
		bytes := r.Int64N(4096)
		if n%1000 == 0 {
			bytes = r.Int64N(8 << 20)
		}
		sizes = append(sizes, bytes)
		l.add(n+1, n+1, bytes, most)
		l.behind = false
		l.trim(most)
		if l.behind || len(l.spans) > 3*spansOfLog || l.bytes > most {
			t.Fatalf("event %d: %d bytes in %d spans, behind: %v", n, l.bytes, len(l.spans), l.behind)
		}
		var sum int64
		for _, x := range l.spans {
			sum += x.bytes
		}
		if sum != l.bytes {
			t.Fatalf("event %d: %d bytes, and its spans have %d", n, l.bytes, sum)
		}
	}
	var kept int64
	for _, bytes := range sizes[l.oldest-1:] {
		kept += bytes
	}
	if kept != l.bytes {
		t.Errorf("the log has %d bytes, want %d", kept, l.bytes)
	}
	l.trim(16 << 20)
	if removed := kept - l.bytes; !l.behind || removed < maxTrimBytes || removed > 2*maxTrimBytes {
		t.Errorf("%d bytes were removed at once, behind: %v", removed, l.behind)
	}
}

// A reader that takes long lets SQLite's log grow. Its file must not stay as large
// as that.
func TestTheLogOfSQLiteIsCutWhenAReaderLeaves(t *testing.T) {
	file := filepath.Join(t.TempDir(), "diego.db")
	s := mustOpen(t, "sqlite:"+file, Options{EventBytes: 16 << 20})
	size := func(name string) int64 {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	commit := func(n int) {
		t.Helper()
		for range n {
			if _, err := s.Commit(t.Context(), largeEvent(4<<20)); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := s.View(t.Context(), func(storage.Reader) error {
		commit(25)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := size(file + "-wal"); n < 90<<20 {
		t.Fatalf("the log has %d MiB", n>>20)
	}
	commit(5)
	if n := size(file + "-wal"); n > dialect.MaxWAL {
		t.Errorf("the log stays at %d MiB", n>>20)
	}
	// What leaves the log of events makes room for what comes.
	before := size(file)
	commit(20)
	if after := size(file); after > before+16<<20 {
		t.Errorf("the file grew from %d to %d MiB", before>>20, after>>20)
	}
}
