package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// wantUnseen wants the next commit and the next epochs to be above all that were
// given.
func wantUnseen(t *testing.T, s storage.Store, after storage.Cursor, epoch int64) {
	t.Helper()
	l, err := s.Acquire(t.Context(), storage.Lease{Kind: "kind", Name: "n", Owner: "o"}, time.Minute)
	if err != nil || l.Epoch <= epoch {
		t.Errorf("epoch %d was granted after %d, %v", l.Epoch, epoch, err)
	}
	cursor, err := s.Commit(t.Context(), creation(unclaimed("again", int(time.Now().UnixNano()%1e9))))
	if err != nil || cursor <= after {
		t.Errorf("event %d after %d, %v", cursor, after, err)
	}
}

// grow commits n events, acquires a lease n times, and says how far it got.
func grow(t *testing.T, s storage.Store, guid string, n int) (newest storage.Cursor, epoch int64) {
	t.Helper()
	for i := range n {
		var err error
		if newest, err = s.Commit(t.Context(), creation(unclaimed(guid, i))); err != nil {
			t.Fatal(err)
		}
		l, err := s.Acquire(t.Context(), storage.Lease{Kind: "kind", Name: "n", Owner: "o"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		epoch = l.Epoch
	}
	return newest, epoch
}

func TestOnlyAStoreThatIsMadeByItsOpeningHasNoGap(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		for opening := range 3 {
			s := mustOpen(t, dsn, Options{})
			checkLog(t, s, opening)
			gaps := 0
			for e, err := range s.Events(t.Context(), 0, storage.EventFilter{Kinds: []string{storage.KindLogGap}}) {
				if gaps++; err != nil || e.Gap == nil {
					t.Fatalf("%+v, %v", e, err)
				}
			}
			if gaps != opening {
				t.Errorf("%d gaps after %d openings more", gaps, opening)
			}
			if _, err := s.Commit(t.Context(), creation(unclaimed("p", opening))); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What this process has seen of the log is longer than what it finds.
func TestALogThatGoesBackUnderAnOpenStoreGivesNoNumberTwice(t *testing.T) {
	ways := map[string]func(t *testing.T, s *Store) storage.Store{
		"by a commit":  func(_ *testing.T, s *Store) storage.Store { return s },
		"by a reading": func(_ *testing.T, s *Store) storage.Store { return s },
		"in a transaction of the caller's": func(t *testing.T, s *Store) storage.Store {
			tx, err := s.BeginTx(context.WithoutCancel(t.Context()), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
			})
			return s.WithTx(tx)
		},
	}
	eachDatabase(t, func(t *testing.T, dsn string) {
		for name, way := range ways {
			t.Run(name, func(t *testing.T) {
				o := Options{Prefix: newPrefix()}
				s, writer := mustOpen(t, dsn, o), mustOpen(t, dsn, o)
				grow(t, writer, "shared", 3)
				fallBack := save(t, s)
				if name != "by a reading" {
					writer = s
				}
				newest, epoch := grow(t, writer, "lost", 4)
				if _, err := s.Log(t.Context()); err != nil {
					t.Fatal(err)
				}
				fallBack(t, s)
				if err := s.Wait(t.Context(), newest); err != nil {
					t.Error(err)
				}
				wantUnseen(t, way(t, s), newest, epoch)
			})
		}
	})
}

func TestRestoredIsForStoresThatWerePutBackWhileTheyWereOpen(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s, other := mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{})
		grow(t, s, "shared", 3)
		fallBack := save(t, s)
		newest, epoch := grow(t, s, "lost", 4)
		fallBack(t, s)
		if err := other.Restored(t.Context()); err != nil { // it has seen nothing of what was lost
			t.Fatal(err)
		}
		wantUnseen(t, other, newest, epoch)
		wantUnseen(t, s, newest, epoch)
	})
}

// The process that has seen the newest events is gone with its host, and so are
// they. Those that are left find another server.
func TestAServerThatWasPutBackWhileItWasDownGivesNoNumberTwice(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *testdb.Server{"postgres": testdb.StartPostgres, "mysql": testdb.StartMySQL} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			dsn := server.Database(t)
			if name == "mysql" {
				dsn = "mysql:" + dsn
			}
			left, lost := mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{})
			grow(t, lost, "shared", 3)
			fallBack := server.Save(t)
			newest, epoch := grow(t, lost, "lost", 4)
			if name == "mysql" { // which is known by the second of its start
				if _, err := lost.write.ExecContext(t.Context(), "DO SLEEP(1.1)"); err != nil {
					t.Fatal(err)
				}
			}
			if err := lost.Close(); err != nil {
				t.Fatal(err)
			}
			fallBack(t)
			wantUnseen(t, left, newest, epoch)
		})
	}
}

// A process may end and open the store again for days.
func TestOpeningsPushNothingButGapsOutOfTheLog(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		newest, _ := grow(t, s, "first", 3)
		tx, err := s.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		run := func(calls []dialect.Call) error { return dialect.RunEach(t.Context(), tx, calls) }
		for range storage.MaxGaps + 1 { // in one transaction, as each flush takes its time
			if err := s.writeGap(run, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		x, err := s.Log(t.Context())
		if err != nil || x.Oldest != 1 {
			t.Fatalf("the log is %+v, %v; want it to begin with event 1", x, err)
		}
		var gaps []storage.Event
		at := storage.Cursor(0)
		for e, err := range s.Events(t.Context(), 0, storage.EventFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if g := e.Gap; g != nil {
				if gaps = append(gaps, e); g.After != at || g.First != e.Sequence {
					t.Errorf("event %d ends %+v, behind event %d", e.Sequence, *g, at)
				}
			}
			at = e.Sequence
		}
		if len(gaps) != 2 || at != x.Newest || gaps[0].Gap.After != newest {
			t.Fatalf("%d gaps are left, the last event is %d: %+v", len(gaps), at, gaps)
		}
		for after, gone := range map[storage.Cursor]bool{newest: false, newest + 1: true, gaps[0].Sequence - 2: true, gaps[0].Sequence: false} {
			for _, err := range s.Events(t.Context(), after, storage.EventFilter{}) {
				if errors.Is(err, storage.ErrGone) != gone {
					t.Errorf("after %d: %v", after, err)
				}
				break
			}
		}
		if err := s.Restored(t.Context()); err != nil { // and it goes on
			t.Fatal(err)
		}
		wantUnseen(t, s, x.Newest, 0)
	})
}

// Those who wait for events do not look again and again while the log is shorter
// than this process has known it to be.
func TestNobodyWaitsForEventsThatAreLost(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		newest, _ := grow(t, s, "shared", 3)
		fallBack := save(t, s)
		grow(t, s, "lost", 4)
		fallBack(t, s)
		for e, err := range s.Events(t.Context(), newest, storage.EventFilter{}) {
			t.Fatalf("%+v, %v; want nothing", e, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := s.Wait(ctx, newest); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait says that there is something after event %d: %v", newest, err)
		}
	})
}

// A transaction at REPEATABLE READ sees the log as it was when it began.
func TestALeaseInATransactionThatSeesAnEarlierMomentLeavesNoGap(t *testing.T) {
	dsn := databases[2].database(t)
	s, other := mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{})
	tx, err := s.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var before int64
	if err := tx.QueryRow("SELECT newest FROM " + s.table("log")).Scan(&before); err != nil {
		t.Fatal(err)
	}
	newest, err := other.Commit(t.Context(), creation(unclaimed("p", 0)))
	if log, logErr := s.Log(t.Context()); err != nil || logErr != nil || log.Newest != newest || int64(newest) <= before {
		t.Fatalf("the log ends with %d, and ended with %d: %v, %v", log.Newest, before, err, logErr)
	}
	if _, err := s.WithTx(tx).Acquire(t.Context(), storage.Lease{Kind: "kind", Name: "n", Owner: "o"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if log, err := s.Log(t.Context()); err != nil || log.Newest != newest {
		t.Errorf("the log ends with %d, want %d: %v", log.Newest, newest, err)
	}
}
