package sqlstore

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

func TestWhatIsCommittedInATransactionOfTheCallersSharesItsFate(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := openDB(t, d.dialect, d.database(t))
			s, err := New(db, d.dialect, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := db.Exec("CREATE TABLE orders (id INTEGER)"); err != nil {
				t.Fatal(err)
			}
			for _, keep := range []bool{false, true} {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec("INSERT INTO orders VALUES (1)"); err != nil {
					t.Fatal(err)
				}
				joined := s.WithTx(tx)
				_, cursor, err := storage.ApplyDeployment(t.Context(), joined, "web", nil, func(d *lrp.Deployment) (lrp.Change, error) {
					if d != nil {
						t.Error("it is there already")
					}
					return lrp.Create(lrp.DeploymentDefinition{
						ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1},
						DefinitionID: "v1", Definition: desired("web", 1).Definitions["web"],
					}, noon)
				})
				if err != nil || cursor != 2 {
					t.Fatalf("cursor %d, error %v", cursor, err)
				}
				// What was committed is seen in the transaction.
				if _, _, err := storage.ApplySlot(t.Context(), joined, "web", 0, nil, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
					return lrp.Step(slot, d, lrp.CreateMissing{}, noon, lrp.Policy{})
				}); err != nil {
					t.Fatal(err)
				}
				if n := count(t, joined, "web"); n != 1 {
					t.Errorf("%d records in the transaction", n)
				}
				// A conflict writes nothing and spoils nothing.
				if _, err := joined.Commit(t.Context(), creation(unclaimed("x", 0))); err != nil {
					t.Fatal(err)
				}
				if _, err := joined.Commit(t.Context(), creation(unclaimed("x", 0))); !errors.Is(err, storage.ErrExists) {
					t.Errorf("a conflict: %v", err)
				}
				if _, err := joined.Acquire(t.Context(), storage.Lease{Kind: "k", Name: "n", Owner: "o"}, time.Hour); err != nil {
					t.Error(err)
				}
				want := 0
				if keep {
					err, want = tx.Commit(), 1
				} else {
					err = tx.Rollback()
				}
				if err != nil {
					t.Fatal(err)
				}
				orders, leases := 0, 0
				if err := db.QueryRow("SELECT COUNT(*) FROM orders").Scan(&orders); err != nil {
					t.Fatal(err)
				}
				for range s.Leases(t.Context(), "k") {
					leases++
				}
				if n := count(t, s, "web"); n != want || orders != want || leases != want {
					t.Errorf("keep %v: %d records, %d orders, %d leases", keep, n, orders, leases)
				}
			}
			checkLog(t, s, 5)
		})
	}
}

func TestATransactionOfTheStoresOwnConnections(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		tx, err := s.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.WithTx(tx).Commit(t.Context(), creation(unclaimed("p", 0))); err != nil {
			t.Fatal(err)
		}
		// Another commit waits until the transaction ends, and then finds what
		// it has left.
		done := make(chan error, 1)
		go func() {
			_, err := s.Commit(t.Context(), creation(unclaimed("p", 0)))
			done <- err
		}()
		if n := count(t, s, "p"); n != 0 {
			t.Errorf("%d records before the commit", n)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, storage.ErrExists) {
			t.Errorf("the other commit: %v", err)
		}
	})
}

// A transaction that sees an old moment cannot overwrite a newer one. Nothing
// but a new transaction helps, so this one is not tried again.
func TestATransactionWhoseMomentHasPassedIsToldSo(t *testing.T) {
	for _, d := range databases[1:] {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{})
			if _, err := s.Commit(t.Context(), creation(unclaimed("p", 0))); err != nil {
				t.Fatal(err)
			}
			tx, err := s.read.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
			if err != nil {
				t.Fatal(err)
			}
			joined := s.WithTx(tx)
			slot, _, err := joined.Slot(t.Context(), "p", 0)
			if err != nil {
				t.Fatal(err)
			}
			before := &slot.Records[0]
			after := *before
			after.ModificationTag = before.ModificationTag.Next()
			if _, err := s.Commit(t.Context(), storage.Batch{ActualLRPs: []lrp.Write{{Before: before, After: &after}}, Events: creation(&after).Events}); err != nil {
				t.Fatal(err)
			}
			_, err = joined.Commit(t.Context(), storage.Batch{ActualLRPs: []lrp.Write{{Before: before}}})
			if !errors.Is(err, storage.ErrConflict) && dialect.StateOf(err) != "40001" {
				t.Errorf("%v, want a conflict or a serialization failure", err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if n := count(t, s, "p"); n != 1 {
				t.Errorf("%d records", n)
			}
		})
	}
}

// A process that stops in a transaction of its own, on a connection of its own,
// holds the lock of the log like any other.
func TestATransactionOfTheCallersThatFallsSilentIsEnded(t *testing.T) {
	for _, d := range databases {
		if d.dialect == SQLite {
			continue // it has no server that could end it
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dsn := d.database(t)
			another, err := open(t.Context(), dsn, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer another.Close()
			db := openDB(t, d.dialect, dsn)
			s, err := New(db, d.dialect, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for name, do := range map[string]func(storage.Store) error{
				"a commit": func(s storage.Store) error {
					_, err := s.Commit(t.Context(), creation(unclaimed("p", 1)))
					return err
				},
				"a lease": func(s storage.Store) error {
					_, err := s.Acquire(t.Context(), storage.Lease{Kind: "k", Name: "n", Owner: "o"}, time.Hour)
					return err
				},
			} {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := do(s.WithTx(tx)); err != nil {
					t.Fatal(name, err)
				}
				began := time.Now()
				_, err = another.Commit(t.Context(), creation(unclaimed(name, 0)))
				if err == nil {
					_, err = another.Acquire(t.Context(), storage.Lease{Kind: "k", Name: "n", Owner: "another"}, time.Hour)
				}
				if took := time.Since(began); err != nil || took > MaxSilence+5*time.Second {
					t.Errorf("%s: another went on after %v: %v", name, took, err)
				}
				if err := tx.Commit(); err == nil {
					t.Errorf("%s: what was silent for too long was committed", name)
				}
				if err := another.Release(t.Context(), storage.Lease{Kind: "k", Name: "n", Owner: "another", Epoch: epochOf(t, another, "k")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func epochOf(t *testing.T, s storage.Store, kind string) (epoch int64) {
	t.Helper()
	for l, err := range s.Leases(t.Context(), kind) {
		if err != nil {
			t.Fatal(err)
		}
		epoch = l.Epoch
	}
	return epoch
}
