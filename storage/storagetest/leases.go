package storagetest

import (
	"errors"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

var leaseCases = []testCase{
	{sentence: "a lease that is acquired is listed with its owner, value and expiry", check: func(f *fixture) {
		before := f.storeNow()
		value := []byte("{\"zone\":\"z1\"}\x00\xff" + strings.Repeat("v", storage.MaxLeaseValueBytes-16))
		lease := f.acquire("n", "o", string(value))
		if lease.ExpiresAt.Before(before.Add(time.Hour)) || lease.ExpiresAt.After(f.storeNow().Add(time.Hour)) || lease.Epoch < 1 {
			f.Errorf("acquired at %v for an hour: %+v", before, lease)
		}
		f.same("leases", all(f, f.Store.Leases(f.ctx, "kind")), []storage.Lease{lease})
		f.same("value", lease.Value, value)
		if lease.ExpiresAt.Location() != time.UTC {
			f.Errorf("it expires at %v, want that in UTC", lease.ExpiresAt)
		}
	}},
	{sentence: "the value of a lease is copied: a caller that writes over it changes nothing in the store", check: func(f *fixture) {
		value := func() string { return string(all(f, f.Store.Leases(f.ctx, "kind"))[0].Value) }
		mine := []byte("first")
		got, err := f.Store.Acquire(f.ctx, storage.Lease{Kind: "kind", Name: "n", Owner: "o", Value: mine}, time.Hour)
		f.must(err)
		copy(mine, "!!!!!")
		f.same("after Acquire", value(), "first")
		mine = []byte("second")
		got.Value = mine
		_, err = f.Store.Renew(f.ctx, got, time.Hour)
		f.must(err)
		copy(mine, "!!!!!!")
		f.same("after Renew", value(), "second")
	}},
	{sentence: "leases are listed by kind and ordered by name", check: func(f *fixture) {
		for _, name := range []string{"b", "B", "a"} {
			f.acquire(name, "o", "")
		}
		other, err := f.Store.Acquire(f.ctx, storage.Lease{Kind: "Kind", Name: "a", Owner: "another"}, time.Hour)
		f.must(err)
		name := func(l storage.Lease) string { return l.Name }
		f.same("kind", names(all(f, f.Store.Leases(f.ctx, "kind")), name), "B a b")
		f.same("Kind", all(f, f.Store.Leases(f.ctx, "Kind")), []storage.Lease{other})
		f.same("no kind", len(all(f, f.Store.Leases(f.ctx, "no kind"))), 0)
	}},
	{sentence: "a lease that another owner holds is ErrHeld and says by whom", check: func(f *fixture) {
		lease := f.acquire("n", "Owner", "value")
		_, err := f.Store.Acquire(f.ctx, storage.Lease{Kind: "kind", Name: "n", Owner: "owner"}, time.Hour)
		var held *storage.HeldError
		if !errors.Is(err, storage.ErrHeld) || !errors.As(err, &held) {
			f.Fatalf("acquire: %v, want a *HeldError", err)
		}
		f.same("holder", held.Lease, lease)
	}},
	{sentence: "a lease that has expired leaves the list and is free, with a greater epoch", check: func(f *fixture) {
		first := f.acquireBriefly("n", "a")
		f.pass(f.ttl())
		f.same("leases", len(all(f, f.Store.Leases(f.ctx, "kind"))), 0)
		if second := f.acquire("n", "b", ""); second.Epoch <= first.Epoch {
			f.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
		}
	}},
	{sentence: "the same owner may acquire again, which fences its earlier epoch off", check: func(f *fixture) {
		first := f.acquire("n", "a", "")
		second := f.acquire("n", "a", "")
		if second.Epoch <= first.Epoch {
			f.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
		}
		f.fenced(first, second.Epoch)
		f.good(second)
	}},
	{sentence: "a renewal moves the expiry and replaces the value, and the owner stays", check: func(f *fixture) {
		lease := f.acquireBriefly("n", "a")
		lease.Value, lease.Owner = []byte("new"), "b"
		renewed, err := f.Store.Renew(f.ctx, lease, time.Hour)
		f.must(err)
		f.same("epoch", renewed.Epoch, lease.Epoch)
		f.pass(f.ttl() * 2)
		f.same("leases", all(f, f.Store.Leases(f.ctx, "kind")), []storage.Lease{renewed})
		f.same("value", string(renewed.Value), "new")
		f.same("owner", renewed.Owner, "a")
	}},
	{sentence: "a late holder goes on unless it was replaced", check: func(f *fixture) {
		lease := f.acquireBriefly("n", "a")
		f.pass(f.ttl() * 2)
		f.good(lease)
		_, err := f.Store.Renew(f.ctx, lease, time.Hour)
		f.must(err)
		f.same("leases", len(all(f, f.Store.Leases(f.ctx, "kind"))), 1)
		_, err = f.Store.Renew(f.ctx, lease, f.ttl())
		f.must(err)
		f.pass(f.ttl() * 2)
		next := f.acquire("n", "b", "")
		f.fenced(lease, next.Epoch)
		f.good(next)
	}},
	{sentence: "a released lease is free at once, and its epoch is never good or used again", check: func(f *fixture) {
		lease := f.acquire("n", "a", "")
		f.must(f.Store.Release(f.ctx, lease))
		f.same("leases", len(all(f, f.Store.Leases(f.ctx, "kind"))), 0)
		f.fenced(lease, lease.Epoch)
		if next := f.acquire("n", "b", ""); next.Epoch <= lease.Epoch {
			f.Errorf("epoch %d after %d", next.Epoch, lease.Epoch)
		}
	}},
	{sentence: "releasing twice is not an error, and releasing what another has acquired changes nothing", check: func(f *fixture) {
		lease := f.acquire("n", "a", "")
		f.must(f.Store.Release(f.ctx, lease))
		f.must(f.Store.Release(f.ctx, lease))
		next := f.acquire("n", "b", "")
		if err := f.Store.Release(f.ctx, lease); !errors.Is(err, storage.ErrFenced) {
			f.Errorf("release: %v, want ErrFenced", err)
		}
		f.same("leases", all(f, f.Store.Leases(f.ctx, "kind")), []storage.Lease{next})
	}},
	{sentence: "a lease that nobody ever had is fenced", check: func(f *fixture) {
		f.fenced(storage.Lease{Kind: "kind", Name: "n", Owner: "a", Epoch: 1}, 0)
		if err := f.Store.Release(f.ctx, storage.Lease{Kind: "kind", Name: "n", Owner: "a", Epoch: 1}); !errors.Is(err, storage.ErrFenced) {
			f.Errorf("release: %v, want ErrFenced", err)
		}
	}},
	{sentence: "an epoch is never used again, not even after KeepFor", needs: needsAdvance, check: func(f *fixture) {
		held := f.acquire("held", "a", "")
		past := map[string][]storage.Lease{}
		for round := range 4 {
			for name, times := range map[string]int{"released": 3, "expired": 1, "rare": (round + 1) % 2} {
				for range times {
					lease := f.acquire(name, "a", "")
					if n := len(past[name]); n > 0 && lease.Epoch <= past[name][n-1].Epoch {
						f.Fatalf("%s: epoch %d after %d", name, lease.Epoch, past[name][n-1].Epoch)
					}
					past[name] = append(past[name], lease)
				}
			}
			f.must(f.Store.Release(f.ctx, past["released"][len(past["released"])-1]))
			for range 2 { // the holder is never late by KeepFor
				f.Advance(storage.KeepFor/2 + enough)
				f.good(held)
				_, err := f.Store.Renew(f.ctx, held, time.Hour)
				f.must(err)
			}
		}
		f.same("leases", len(all(f, f.Store.Leases(f.ctx, "kind"))), 1)
		for name := range past {
			now := f.acquire(name, "b", "")
			for _, lease := range past[name] {
				f.fenced(lease, now.Epoch)
			}
		}
		f.good(held)
	}},
	{sentence: "a clock that is set back changes neither the order of events nor what an epoch is worth", needs: needsAdvance, check: func(f *fixture) {
		old := f.acquire("n", "a", "")
		event := storage.Batch{Events: []storage.Event{created(unclaimed("p", 0))}}
		f.commit(event)
		f.Advance(-12 * time.Hour)
		f.same("cursor", f.commit(event), storage.Cursor(2))
		f.good(old)
		held := f.acquire("n", "a", "")
		if held.Epoch <= old.Epoch {
			f.Errorf("epoch %d after %d", held.Epoch, old.Epoch)
		}
		f.fenced(old, held.Epoch)
		f.Advance(24 * time.Hour)
		f.good(held)
		f.same("events", len(f.events(0, storage.EventFilter{})), 2)
	}},
	{sentence: "a lease with a name that cannot be is one that nobody holds", check: func(f *fixture) {
		held := f.acquire("n", "a", "")
		for _, name := range []string{"n\x00", "\xf0\x9f", strings.Repeat("n", storage.MaxIdentifierBytes+1)} {
			l := storage.Lease{Kind: "kind", Name: name, Owner: "a", Epoch: held.Epoch}
			if err := f.Store.Release(f.ctx, l); !errors.Is(err, storage.ErrFenced) {
				f.Errorf("releasing %q: %v", name, err)
			}
			f.refused(storage.Batch{Fence: l.Fence(), Domains: []storage.DomainWrite{{Name: "d"}}}, storage.ErrFenced)
			b := lrpWrite(nil, unclaimed("p", 0))
			b.Fence, b.Events = l.Fence(), []storage.Event{created(unclaimed("p", 0))}
			f.refused(b, storage.ErrFenced)
		}
		f.good(held)
	}},
	{sentence: "an ill-formed lease is a validation error", check: func(f *fixture) {
		ok := storage.Lease{Kind: "kind", Name: "n", Owner: "o"}
		for what, change := range map[string]func(*storage.Lease) time.Duration{
			"no kind":  func(l *storage.Lease) time.Duration { l.Kind = ""; return time.Minute },
			"no name":  func(l *storage.Lease) time.Duration { l.Name = ""; return time.Minute },
			"no owner": func(l *storage.Lease) time.Duration { l.Owner = ""; return time.Minute },
			"a long value": func(l *storage.Lease) time.Duration {
				l.Value = make([]byte, storage.MaxLeaseValueBytes+1)
				return time.Minute
			},
			"no TTL": func(*storage.Lease) time.Duration { return 0 },
		} {
			l := ok
			ttl := change(&l)
			_, acquire := f.Store.Acquire(f.ctx, l, ttl)
			_, renew := f.Store.Renew(f.ctx, l, ttl)
			if !errors.Is(acquire, executor.ErrInvalid) || !errors.Is(renew, executor.ErrInvalid) {
				f.Errorf("%s: %v and %v, want validation errors", what, acquire, renew)
			}
		}
	}},
}

func (f *fixture) acquire(name, owner, value string) storage.Lease {
	f.Helper()
	lease, err := f.Store.Acquire(f.ctx, storage.Lease{Kind: "kind", Name: name, Owner: owner, Value: []byte(value)}, time.Hour)
	f.must(err)
	return lease
}

func (f *fixture) acquireBriefly(name, owner string) storage.Lease {
	f.Helper()
	lease, err := f.Store.Acquire(f.ctx, storage.Lease{Kind: "kind", Name: name, Owner: owner}, f.ttl())
	f.must(err)
	return lease
}

// good wants a commit with the lease's fence to succeed.
func (f *fixture) good(l storage.Lease) {
	f.Helper()
	f.commit(storage.Batch{Fence: l.Fence(), Domains: []storage.DomainWrite{{Name: "d"}}})
}

// fenced wants a commit with the lease's fence, and its renewal, to fail and
// to name the newest epoch.
func (f *fixture) fenced(l storage.Lease, newest int64) {
	f.Helper()
	before := f.everything()
	err := f.refused(storage.Batch{Fence: l.Fence(), Domains: []storage.DomainWrite{{Name: "fenced"}}}, storage.ErrFenced)
	_, renewErr := f.Store.Renew(f.ctx, l, time.Hour)
	for what, err := range map[string]error{"commit": err, "renew": renewErr} {
		var fenced *storage.FencedError
		if !errors.As(err, &fenced) || fenced.Epoch != newest || fenced.Fence != l.Fence() {
			f.Errorf("%s: %v, want a *FencedError with epoch %d", what, err, newest)
		}
	}
	f.same("everything", f.everything(), before)
}
