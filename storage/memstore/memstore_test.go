package memstore_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/storage/storagetest"
)

// open makes a store with a clock of its own.
func open(t testing.TB, o storagetest.Options) storagetest.Harness {
	var mu sync.Mutex
	now := time.Unix(1_900_000_000, 0)
	s := memstore.New(&memstore.Options{Events: o.Events, EventBytes: o.EventBytes, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	return storagetest.Harness{
		Store:       s,
		BoundsBytes: true,
		Advance: func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(d)
		},
		Corrupt: func(t testing.TB, key storage.RecordKey) {
			if !s.Corrupt(key) {
				t.Fatalf("%v is not there", key)
			}
		},
	}
}

func openInRealTime(t testing.TB, o storagetest.Options) storagetest.Harness {
	return storagetest.Harness{Store: memstore.New(&memstore.Options{Events: o.Events, EventBytes: o.EventBytes}), BoundsBytes: true}
}

func TestContract(t *testing.T) { storagetest.Run(t, open) }

func TestContractInRealTime(t *testing.T) { storagetest.Run(t, openInRealTime) }

func TestMetamorphic(t *testing.T) {
	for seed := range uint64(4) {
		storagetest.RunMetamorphic(t, open, seed, 3000)
	}
}

func TestConcurrent(t *testing.T) { storagetest.RunConcurrent(t, open) }

func TestWaitWaitsWhileThereIsNothingNew(t *testing.T) {
	s := memstore.New(nil)
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if err := s.Wait(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want to wait until the context ends", err)
	}
}

func TestQuarantinedRecordsAreKeptAside(t *testing.T) {
	s := memstore.New(nil)
	var b storage.Batch
	b.Deployments = []storage.DeploymentWrite{{After: deployment("p")}}
	key := storage.DeploymentKey("p")
	if _, err := s.Commit(t.Context(), b); err != nil || !s.Corrupt(key) || s.Corrupt(storage.TaskKey("p")) {
		t.Fatal("cannot damage just the record that is there", err)
	}
	_, err := s.Deployment(t.Context(), "p")
	var corrupt *storage.CorruptError
	if !errors.As(err, &corrupt) {
		t.Fatal(err)
	}
	b = storage.Batch{}
	b.AddQuarantine(corrupt)
	if _, err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := s.Quarantined(); len(got) != 1 || got[0].Key != key || got[0].Reason == "" {
		t.Errorf("aside are %+v", got)
	}
}

func TestManyRestoresPushNothingButGapsOutOfTheLog(t *testing.T) {
	s := memstore.New(nil)
	var b storage.Batch
	b.AddDomain("apps", time.Hour)
	if _, err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	view := s.Save() // shares the log
	for range 3*storage.MaxGaps + 1 {
		if err := s.Restored(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	at, n := storage.Cursor(0), 0
	for e, err := range s.Events(t.Context(), 0, storage.EventFilter{}) {
		if g := e.Gap; err != nil || e.Sequence != at+1 && (g == nil || g.After != at || g.First != e.Sequence) {
			t.Fatalf("event %+v after %d: %v", e, at, err)
		}
		at, n = e.Sequence, n+1
	}
	if n > storage.MaxGaps+1 {
		t.Errorf("the log has %d events", n)
	}
	view()
	if log, err := s.Log(t.Context()); err != nil || log != (storage.Extent{Oldest: 1, Newest: 1}) {
		t.Errorf("what was saved is %+v, %v", log, err)
	}
}

// A list or a view of leases shows none of the changes that are made while it is
// read.
func TestLeasesThatAreBeingReadDoNotChange(t *testing.T) {
	read := map[string]func(*memstore.Store, func(storage.Reader) error) error{
		"list": func(s *memstore.Store, f func(storage.Reader) error) error { return f(s) },
		"view": func(s *memstore.Store, f func(storage.Reader) error) error { return s.View(t.Context(), f) },
	}
	for name, in := range read {
		store := memstore.New(nil)
		for _, cell := range []string{"cell-1", "cell-2", "cell-3"} {
			if _, err := store.Acquire(t.Context(), storage.Lease{Kind: "cell", Name: cell, Owner: "before"}, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		var seen []string
		err := in(store, func(r storage.Reader) error {
			for l, err := range r.Leases(t.Context(), "cell") {
				if err != nil {
					return err
				}
				if seen = append(seen, l.Name+" "+l.Owner+string(l.Value)); len(seen) > 1 {
					continue
				}
				if err := store.Release(t.Context(), l); err != nil {
					return err
				}
				for _, next := range []storage.Lease{{Kind: "cell", Name: "cell-2", Owner: "before", Value: []byte("changed")}, {Kind: "cell", Name: "cell-4", Owner: "after"}} {
					if _, err := store.Acquire(t.Context(), next, time.Hour); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if want := []string{"cell-1 before", "cell-2 before", "cell-3 before"}; err != nil || !slices.Equal(seen, want) {
			t.Errorf("%s: got %q, %v, want %q", name, seen, err, want)
		}
	}
}
