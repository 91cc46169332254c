package bbs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

const lockTTL = 15 * time.Second

func TestALockOutsideItsLimitsIsRefusedAndNothingIsTaken(t *testing.T) {
	locks := bbs.NewLocks(memstore.New(nil))
	fits := bbs.Lock{Name: strings.Repeat("n", bbs.MaxLockNameBytes), Owner: strings.Repeat("o", bbs.MaxLockOwnerBytes), Value: strings.Repeat("v", bbs.MaxLockValueBytes)}
	with := func(change func(*bbs.Lock)) bbs.Lock {
		l := fits
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		lock  bbs.Lock
		ttl   time.Duration
		field string
	}{
		"no name":              {with(func(l *bbs.Lock) { l.Name = "" }), lockTTL, "name"},
		"a long name":          {with(func(l *bbs.Lock) { l.Name += "n" }), lockTTL, "name"},
		"a name with a space":  {with(func(l *bbs.Lock) { l.Name = "a b" }), lockTTL, "name"},
		"a name with a break":  {with(func(l *bbs.Lock) { l.Name = "a\n" }), lockTTL, "name"},
		"a name of signs":      {with(func(l *bbs.Lock) { l.Name = "../a" }), lockTTL, "name"},
		"no owner":             {with(func(l *bbs.Lock) { l.Owner = "" }), lockTTL, "owner"},
		"a long owner":         {with(func(l *bbs.Lock) { l.Owner += "o" }), lockTTL, "owner"},
		"an owner of lines":    {with(func(l *bbs.Lock) { l.Owner = "a\nb" }), lockTTL, "owner"},
		"a long value":         {with(func(l *bbs.Lock) { l.Value += "v" }), lockTTL, "value"},
		"a value that is none": {with(func(l *bbs.Lock) { l.Value = "\xff" }), lockTTL, "value"},
		"a short ttl":          {fits, bbs.MinLockTTL - 1, "ttl"},
		"a long ttl":           {fits, bbs.MaxLockTTL + 1, "ttl"},
	} {
		for call, f := range map[string]func(context.Context, bbs.Lock, time.Duration) (bbs.Lock, error){"acquire": locks.AcquireLock, "renew": locks.RenewLock} {
			if _, err := f(t.Context(), c.lock, c.ttl); !errors.Is(err, executor.ErrInvalid) || !strings.Contains(err.Error(), c.field) {
				t.Errorf("%s, %s: %v", call, name, err)
			}
		}
		if err := locks.ReleaseLock(t.Context(), c.lock); c.field != "ttl" && !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("release, %s: %v", name, err)
		}
	}
	if list, err := locks.Locks(t.Context(), ""); len(list) > 0 || err != nil {
		t.Errorf("there are %v, %v", list, err)
	}
	for _, ttl := range []time.Duration{bbs.MinLockTTL, bbs.MaxLockTTL} {
		if _, err := locks.AcquireLock(t.Context(), fits, ttl); err != nil {
			t.Error(ttl, err)
		}
	}
}

func TestALockIsItsOwnersUntilItIsReleasedOrItsTTLHasPassed(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		store := memstore.New(nil)
		locks, ctx := bbs.NewLocks(store), t.Context()
		// Diego's own leases are not locks, and cannot be had as one.
		if _, err := store.Acquire(ctx, storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "bbs-1"}, time.Hour); err != nil {
			t.Fatal(err)
		}
		acquire := func(name, owner string) bbs.Lock {
			t.Helper()
			l, err := locks.AcquireLock(ctx, bbs.Lock{Name: name, Owner: owner, Value: "at " + owner, Epoch: 77}, lockTTL)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		refused := func(name, owner string) {
			t.Helper()
			_, err := locks.AcquireLock(ctx, bbs.Lock{Name: name, Owner: owner}, lockTTL)
			var held *storage.HeldError
			if !errors.As(err, &held) || !errors.Is(err, storage.ErrHeld) || held.Lease.Owner == owner {
				t.Fatalf("%s gets %v", owner, err)
			}
		}
		lost := func(err error, l bbs.Lock) {
			t.Helper()
			var lost *bbs.LockLostError
			if !errors.As(err, &lost) || !errors.Is(err, bbs.ErrLockLost) || errors.Is(err, storage.ErrFenced) || *lost != (bbs.LockLostError{Name: l.Name, Epoch: l.Epoch}) {
				t.Fatalf("got %v", err)
			}
		}
		a := acquire("bbs", "a")
		if want := (bbs.Lock{Name: "bbs", Owner: "a", Value: "at a", Epoch: 1, ExpiresAt: time.Now().Add(lockTTL)}); a.Epoch != 1 || !a.ExpiresAt.Equal(want.ExpiresAt) || a.Value != want.Value {
			t.Errorf("got %+v, want %+v", a, want)
		}
		acquire("other", "b")
		time.Sleep(lockTTL - 1)
		refused("bbs", "b")
		a.Value = "elsewhere"
		renewed, err := locks.RenewLock(ctx, a, lockTTL)
		if err != nil || renewed.Epoch != a.Epoch || renewed.Value != "elsewhere" || !renewed.ExpiresAt.Equal(time.Now().Add(lockTTL)) {
			t.Errorf("renewed to %+v, %v", renewed, err)
		}
		time.Sleep(lockTTL - 1)
		refused("bbs", "b")
		if list, err := locks.Locks(ctx, ""); err != nil || len(list) != 1 || list[0].Name != "bbs" || list[0].Owner != "a" || list[0].Value != "elsewhere" {
			t.Errorf("the list is %+v, %v", list, err) // other has ended
		}
		time.Sleep(time.Second)
		if list, err := locks.Locks(ctx, "bbs"); len(list) > 0 || err != nil {
			t.Errorf("it has ended, and the list is %+v, %v", list, err)
		}
		b := acquire("bbs", "b")
		_, err = locks.RenewLock(ctx, a, lockTTL)
		lost(err, a)
		lost(locks.ReleaseLock(ctx, a), a)
		refused("bbs", "a")
		for range 2 {
			if err := locks.ReleaseLock(ctx, b); err != nil {
				t.Error(err)
			}
		}
		_, err = locks.RenewLock(ctx, b, lockTTL)
		lost(err, b)
		if c := acquire("bbs", "a"); !(a.Epoch < b.Epoch && b.Epoch < c.Epoch) {
			t.Errorf("the epochs are %d, %d, %d", a.Epoch, b.Epoch, c.Epoch)
		}
		if leases := slices.Collect(func(yield func(string) bool) {
			for l, err := range store.Leases(ctx, storage.LeaderLease) {
				if err != nil || !yield(l.Owner) {
					return
				}
			}
		}); !slices.Equal(leases, []string{"bbs-1"}) {
			t.Errorf("the leader is %v", leases)
		}
	})
}

// unsteadyLocks answer late, or not at all, before or after a call is carried
// out.
type unsteadyLocks struct {
	bbs.LocksAPI
	mu     sync.Mutex
	random *rand.Rand
	// away is until when nobody answers.
	away time.Time
}

var errAway = errors.New("the store is away")

func (u *unsteadyLocks) call(ctx context.Context, f func(context.Context) (bbs.Lock, error)) (bbs.Lock, error) {
	u.mu.Lock()
	n, before, after := u.random.IntN(100), time.Duration(u.random.Int64N(int64(lockTTL/12))), time.Duration(u.random.Int64N(int64(lockTTL/12)))
	if n == 0 {
		u.away = time.Now().Add(time.Duration(u.random.Int64N(int64(2 * lockTTL))))
	}
	away := time.Until(u.away) > 0
	u.mu.Unlock()
	switch {
	case away && n%2 == 0:
		return bbs.Lock{}, errAway
	case away, n < 20: // slow: it may be carried out after the caller has given up
		before *= 10
	case n < 30:
		after *= 10
	}
	var l bbs.Lock
	var err error
	answer := make(chan struct{})
	go func() {
		defer close(answer)
		time.Sleep(before)
		l, err = f(context.WithoutCancel(ctx))
		time.Sleep(after)
	}()
	select {
	case <-answer:
		return l, err
	case <-ctx.Done():
		return bbs.Lock{}, ctx.Err()
	}
}

func (u *unsteadyLocks) AcquireLock(ctx context.Context, l bbs.Lock, ttl time.Duration) (bbs.Lock, error) {
	return u.call(ctx, func(ctx context.Context) (bbs.Lock, error) { return u.LocksAPI.AcquireLock(ctx, l, ttl) })
}

func (u *unsteadyLocks) RenewLock(ctx context.Context, l bbs.Lock, ttl time.Duration) (bbs.Lock, error) {
	return u.call(ctx, func(ctx context.Context) (bbs.Lock, error) { return u.LocksAPI.RenewLock(ctx, l, ttl) })
}

func TestTwoHoldersOfALockNeverActAtOnceHoweverUnsteadyTheirStoreIs(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				store := &unsteadyLocks{LocksAPI: bbs.NewLocks(memstore.New(nil)), random: rand.New(rand.NewPCG(seed, 0))}
				ctx, end := context.WithTimeout(t.Context(), time.Hour)
				defer end()
				var mu sync.Mutex
				acting, epoch, turns, losses := 0, int64(0), map[int]int{}, 0
				work := func(who int) func(context.Context, bbs.Lock) error {
					return func(ctx context.Context, l bbs.Lock) error {
						store.mu.Lock()
						long := time.Duration(store.random.Int64N(int64(10 * lockTTL)))
						store.mu.Unlock()
						mu.Lock()
						if acting++; acting > 1 || l.Epoch <= epoch {
							t.Errorf("at %v %d act, with the epochs %d and %d", time.Now(), acting, epoch, l.Epoch)
						}
						epoch = l.Epoch
						turns[who]++
						mu.Unlock()
						select {
						case <-ctx.Done():
							time.Sleep(lockTTL/3 - 1) // it takes its time
						case <-time.After(long):
						}
						mu.Lock()
						acting--
						mu.Unlock()
						return nil
					}
				}
				var holders sync.WaitGroup
				for who := range 3 {
					holders.Go(func() {
						for ctx.Err() == nil {
							// All have one name.
							err := bbs.HoldLock(ctx, bbs.HoldOptions{Locks: store, Name: "router", Owner: "me", TTL: lockTTL}, work(who))
							mu.Lock()
							if errors.Is(err, bbs.ErrLockLost) {
								losses++
							}
							mu.Unlock()
							time.Sleep(time.Second)
						}
					})
				}
				holders.Wait()
				time.Sleep(2 * lockTTL) // for calls that nobody waits for
				if len(turns) != 3 || losses == 0 {
					t.Errorf("turns %v, losses %d: the test shows little", turns, losses)
				}
			})
		})
	}
}

// A gate fails or holds up renewals.
type gate struct {
	bbs.LocksAPI
	renew func(context.Context) error
}

func (g *gate) RenewLock(ctx context.Context, l bbs.Lock, ttl time.Duration) (bbs.Lock, error) {
	if err := g.renew(ctx); err != nil {
		return bbs.Lock{}, err
	}
	return g.LocksAPI.RenewLock(ctx, l, ttl)
}

func TestWorkEndsBeforeTheTTLOfALockThatIsNotRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		renew func(ctx context.Context, since time.Duration) error
		after time.Duration // from the acquisition
		says  string
	}{
		"the store is away at once": {func(context.Context, time.Duration) error { return errAway }, lockTTL * 2 / 3, "could not be renewed for 10s: the store is away"},
		"the store is away for good, after two renewals": {func(_ context.Context, since time.Duration) error {
			if since > lockTTL/3 {
				return errAway
			}
			return nil
		}, lockTTL/3 + lockTTL*2/3, "could not be renewed for 10s: the store is away"},
		"nobody answers":       {func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() }, lockTTL * 2 / 3, "could not be renewed for 10s: context deadline exceeded"},
		"a call does not end":  {func(ctx context.Context, _ time.Duration) error { time.Sleep(10 * lockTTL); return errAway }, lockTTL * 2 / 3, "renewal was not answered for 10s"},
		"somebody else has it": {func(context.Context, time.Duration) error { return &bbs.LockLostError{Name: "router", Epoch: 1} }, lockTTL / 6, "acquired again or released"},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				began := time.Now()
				locks := &gate{bbs.NewLocks(memstore.New(nil)), func(ctx context.Context) error { return c.renew(ctx, time.Since(began)) }}
				failed := errors.New("the work has failed")
				err := bbs.HoldLock(t.Context(), bbs.HoldOptions{Locks: locks, Name: "router", Owner: "me", TTL: lockTTL}, func(ctx context.Context, _ bbs.Lock) error {
					<-ctx.Done()
					if after := time.Since(began); after != c.after {
						t.Errorf("it ends after %v, not %v", after, c.after)
					}
					if cause := context.Cause(ctx); !errors.Is(cause, bbs.ErrLockLost) || !strings.Contains(cause.Error(), c.says) {
						t.Errorf("the cause is %v", cause)
					}
					return failed
				})
				if !errors.Is(err, failed) || !errors.Is(err, bbs.ErrLockLost) {
					t.Errorf("HoldLock says %v", err)
				}
			})
		})
	}
}

func TestALockIsKeptUntilSlowWorkHasEndedAndThenReleased(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		locks := bbs.NewLocks(memstore.New(nil))
		ctx, cancel := context.WithCancel(t.Context())
		err := bbs.HoldLock(ctx, bbs.HoldOptions{Locks: locks, Name: "router", Owner: "me", Value: "here"}, func(working context.Context, l bbs.Lock) error {
			cancel()
			<-working.Done()
			if cause := context.Cause(working); !errors.Is(cause, context.Canceled) || errors.Is(cause, bbs.ErrLockLost) {
				t.Errorf("the cause is %v", cause)
			}
			time.Sleep(10 * lockTTL)
			if list, err := locks.Locks(t.Context(), "router"); err != nil || len(list) != 1 || list[0].Epoch != l.Epoch || list[0].Value != "here" || !strings.HasPrefix(list[0].Owner, "me ") {
				t.Errorf("meanwhile there are %+v, %v", list, err)
			}
			return working.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if list, err := locks.Locks(t.Context(), ""); len(list) > 0 || err != nil {
			t.Errorf("after it there are %+v, %v", list, err)
		}
	})
}

// An unanswered store acquires locks, and answers nobody.
type unanswered struct{ bbs.LocksAPI }

func (u unanswered) AcquireLock(ctx context.Context, l bbs.Lock, ttl time.Duration) (bbs.Lock, error) {
	if _, err := u.LocksAPI.AcquireLock(ctx, l, ttl); err != nil {
		return bbs.Lock{}, err
	}
	<-ctx.Done()
	return bbs.Lock{}, ctx.Err()
}

func TestALockIsReleasedThatWasAcquiredWithoutAnAnswer(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		locks := bbs.NewLocks(memstore.New(nil))
		// Cancelled at once, or after an attempt that nobody has answered in time.
		for _, after := range []time.Duration{lockTTL / 2, lockTTL} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			err := bbs.HoldLock(ctx, bbs.HoldOptions{Locks: unanswered{locks}, Name: "router", Owner: "me", TTL: lockTTL}, nil)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("HoldLock says %v", err)
			}
			if list, err := locks.Locks(t.Context(), ""); len(list) > 0 || err != nil {
				t.Errorf("after %v there are %+v, %v", after, list, err)
			}
		}
		other, err := locks.AcquireLock(t.Context(), bbs.Lock{Name: "router", Owner: "other"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := bbs.HoldLock(ctx, bbs.HoldOptions{Locks: unanswered{locks}, Name: "router", Owner: "me", TTL: lockTTL}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("HoldLock says %v", err)
		}
		if list, err := locks.Locks(t.Context(), ""); err != nil || len(list) != 1 || list[0].Epoch != other.Epoch {
			t.Errorf("of another's lock there is %+v, %v", list, err)
		}
	})
}

func TestHoldLockWaitsForALockThatIsHeldAndForNothingElseAtFirst(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		store := memstore.New(nil)
		locks := bbs.NewLocks(store)
		held, err := locks.AcquireLock(t.Context(), bbs.Lock{Name: "router", Owner: "first"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var reasons []error
		o := bbs.HoldOptions{Locks: locks, Name: "router", Owner: "second", Waiting: func(err error) { reasons = append(reasons, err) }}
		began, worked := time.Now(), false
		work := func(_ context.Context, l bbs.Lock) error { worked = l.Epoch > held.Epoch; return nil }
		if err := bbs.HoldLock(t.Context(), o, work); err != nil || !worked {
			t.Error(err, worked)
		}
		if after := time.Since(began); after < time.Minute || after > time.Minute+lockTTL/6 || len(reasons) != 24 || !errors.Is(reasons[0], storage.ErrHeld) {
			t.Errorf("it begins after %v; %d times it said %v", after, len(reasons), reasons)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := locks.AcquireLock(t.Context(), bbs.Lock{Name: "router", Owner: "first"}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := bbs.HoldLock(short, o, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its context it says %v", err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := bbs.HoldLock(t.Context(), o, nil); err == nil || errors.Is(err, storage.ErrHeld) {
			t.Errorf("without a store it says %v", err)
		}
		o.Owner = ""
		if err := bbs.HoldLock(t.Context(), o, nil); !errors.Is(err, executor.ErrInvalid) || !strings.Contains(err.Error(), "owner") {
			t.Errorf("without an owner it says %v", err)
		}
	})
}
