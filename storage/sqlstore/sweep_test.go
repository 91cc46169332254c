package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/storagetest"
)

// rows is how many rows a table has.
func rows(t testing.TB, s *Store, table string) (n int) {
	t.Helper()
	if err := dialect.QueryRow(context.Background(), s.read, "SELECT COUNT(*) FROM "+s.table(table), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Names that come once and never again, as those of cells and of domains do,
// must not fill the tables.
func TestRowsOfWhatEndedLongAgoAreDeleted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		h := opener(dsn, Options{})(t, storagetest.Options{})
		s, ctx := h.Store.(*Store), t.Context()
		for day := range 3 {
			for i := range 20 {
				name := fmt.Sprintf("%d-%d", day, i)
				l, err := s.Acquire(ctx, storage.Lease{Kind: storage.CellLease, Name: name, Owner: "o"}, time.Minute)
				if err == nil && i%2 == 0 {
					err = s.Release(ctx, l)
				}
				if err != nil {
					t.Fatal(err)
				}
				b := storage.Batch{Domains: []storage.DomainWrite{{Name: name, TTL: time.Minute}}, RequestID: name}
				if _, err := s.Commit(ctx, b); err != nil {
					t.Fatal(err)
				}
			}
			h.Advance(storage.KeepFor + time.Hour)
		}
		// Nobody has looked since the last day.
		for table, want := range map[string]int{"domains": 20, "requests": 20, "leases": 20 + 1} {
			if n := rows(t, s, table); n < want || n > want+2 {
				t.Errorf("%d rows in %s, want %d", n, table, want)
			}
		}
		l, err := s.Acquire(ctx, storage.Lease{Kind: storage.CellLease, Name: "0-0", Owner: "o"}, time.Minute)
		if err != nil || l.Epoch < 2 {
			t.Errorf("epoch %d, %v", l.Epoch, err)
		}
		if n := rows(t, s, "leases"); n != 2 {
			t.Errorf("%d rows of leases, want one and that of the forgotten", n)
		}
	})
}

// A transaction of the caller's that began before a lease was forgotten sees
// neither the lease nor that it was there, and must not begin anew.
func TestAnOldTransactionGivesOutNoEpochAgain(t *testing.T) {
	for _, d := range databases[1:] {
		t.Run(d.name, func(t *testing.T) {
			for _, known := range []bool{true, false} {
				t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
					h := opener(d.database(t), Options{})(t, storagetest.Options{})
					s, ctx := h.Store.(*Store), t.Context()
					wanted := storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "a"}
					old := int64(0)
					use := func() {
						for range 3 {
							l, err := s.Acquire(ctx, wanted, time.Minute)
							if err != nil {
								t.Fatal(err)
							}
							old = l.Epoch
						}
					}
					if known {
						use()
					}
					tx, err := s.read.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
					if err != nil {
						t.Fatal(err)
					}
					defer tx.Rollback()
					joined := s.WithTx(tx)
					if _, err := joined.Log(ctx); err != nil { // fixes its moment
						t.Fatal(err)
					}
					if !known {
						use()
					}
					h.Advance(2 * storage.KeepFor)
					if _, err := s.Acquire(ctx, storage.Lease{Kind: "other", Name: "n", Owner: "o"}, time.Minute); err != nil {
						t.Fatal(err)
					}
					if n := rows(t, s, "leases"); n != 2 {
						t.Fatalf("%d rows of leases, want one and that of the forgotten", n)
					}
					if l, err := joined.Acquire(ctx, wanted, time.Minute); err == nil && l.Epoch <= old {
						t.Errorf("epoch %d after %d", l.Epoch, old)
					}
				})
			}
		})
	}
}

func TestALeaseIsRefusedWhenTheRowOfTheForgottenIsLost(t *testing.T) {
	s := mustOpen(t, ":memory:", Options{})
	exec(t, s, "DELETE FROM diego_leases")
	_, err := s.Acquire(t.Context(), storage.Lease{Kind: "k", Name: "n", Owner: "o"}, time.Minute)
	wantError(t, err, "row without kind and name")
}

// What is gone from the log is the same in all stores, so a program that was
// tried on memstore finds nothing new.
func TestTheLogHoldsWhatThatOfMemstoreHolds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		const events = 10
		s, model := mustOpen(t, dsn, Options{Events: events}), memstore.New(&memstore.Options{Events: events})
		for n := range 15 {
			b := storage.Batch{Events: creation(unclaimed("p", 0)).Events}
			for range n % 5 * 6 {
				b.Events = append(b.Events, b.Events[0])
			}
			for _, st := range []storage.Store{s, model} {
				if _, err := st.Commit(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			want, _ := model.Log(t.Context())
			if got, err := s.Log(t.Context()); err != nil || got != want {
				t.Fatalf("the log holds %+v, %v, and that of memstore %+v", got, err, want)
			}
			for after := range want.Newest + 2 {
				length := func(list iter.Seq2[storage.Event, error]) (n int, gone bool) {
					for _, err := range list {
						n++
						gone = errors.Is(err, storage.ErrGone)
					}
					return n, gone
				}
				got, gotGone := length(s.Events(t.Context(), after, storage.EventFilter{}))
				wanted, wantGone := length(model.Events(t.Context(), after, storage.EventFilter{}))
				if got != wanted || gotGone != wantGone {
					t.Fatalf("after %d of %+v: %d, %v; memstore has %d, %v", after, want, got, gotGone, wanted, wantGone)
				}
			}
		}
	})
}
