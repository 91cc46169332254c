package sqlstore

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/storage"
)

// Two processes that share a file share a virtual clock, too.
func TestNowEndsTheLeasesOfASQLiteFile(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	o := Options{Now: func() time.Time { return time.Unix(0, now.Load()) }}
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "diego.db")
	first, second := mustOpen(t, dsn, o), mustOpen(t, dsn, o)
	lease := func(s *Store, owner string) error {
		_, err := s.Acquire(t.Context(), storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: owner}, 15*time.Second)
		return err
	}
	if err := lease(first, "a"); err != nil {
		t.Fatal(err)
	}
	now.Add(int64(15*time.Second) - 1)
	if err := lease(second, "b"); !errors.Is(err, storage.ErrHeld) {
		t.Errorf("just before its end the lease of another is granted: %v", err)
	}
	now.Add(1)
	if err := lease(second, "b"); err != nil {
		t.Errorf("the lease has ended and is not granted: %v", err)
	}
	if got, err := first.Now(t.Context()); err != nil || got.UnixNano() != now.Load() {
		t.Errorf("the store's clock is %s (%v), want %s", got, err, time.Unix(0, now.Load()))
	}
}

func TestNowIsRefusedForADatabaseThatHasAClock(t *testing.T) {
	o := Options{Now: time.Now}
	for _, dsn := range []string{"postgres://u:p@127.0.0.1:1/d", "mysql://u:p@127.0.0.1:1/d"} {
		if _, err := Open(t.Context(), dsn, &o); !errors.Is(err, errNow) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	if _, err := New(nil, SQLite, &o); !errors.Is(err, errNow) {
		t.Errorf("New: %v", err)
	}
}
