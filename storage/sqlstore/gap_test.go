package sqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/storage"
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
			if err := lost.Close(); err != nil {
				t.Fatal(err)
			}
			fallBack(t)
			wantUnseen(t, left, newest, epoch)
		})
	}
}
