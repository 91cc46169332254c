package bbs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/storage"
)

// HoldOptions are the options of [HoldLock]. Zero values mean the defaults.
type HoldOptions struct {
	// Locks and Name are required.
	Locks LocksAPI
	Name  string
	// Owner says who holds the lock, for people. It is required. HoldLock adds
	// something random, so that two processes with one Owner exclude each other.
	Owner string
	// Value is what others may read.
	Value string
	// TTL is how long the lock stays with a process that has died (default 15 s),
	// from MinLockTTL to MaxLockTTL.
	TTL time.Duration
	// Waiting is called after each further attempt that failed, with the reason,
	// and after the first one if another owner has the lock; that reason wraps
	// storage.ErrHeld. It may be nil.
	Waiting func(error)
}

// HoldLock waits for a lock, calls work once it has it, renews it until work has
// returned, and releases it. It tries and renews six times in the TTL.
//
// The context of work ends when ctx does or when the lock is lost: as soon as
// the store says that another process has it, or when it could not be renewed
// for two thirds of the TTL. Then context.Cause of it wraps [ErrLockLost], and
// work has the last third of the TTL to return before another process can have
// the lock. [Lock] says what is not promised. It does not matter what the clock
// of this process shows, only that it runs.
//
// If the first attempt fails, and not because another owner has the lock,
// HoldLock returns its error. Otherwise it tries until ctx ends, and then
// returns ctx's error. An attempt that is not answered fails after two thirds
// of the TTL. It may have acquired the lock all the same, so HoldLock checks
// that before it returns an error, and releases the lock. The check takes up to
// a third of the TTL, so the error of the first attempt comes after one TTL at
// the latest. Once work was called, HoldLock returns what work returned, joined
// with an error that wraps ErrLockLost if the lock was lost. To wait again
// after a loss, call it again.
func HoldLock(ctx context.Context, o HoldOptions, work func(context.Context, Lock) error) error {
	o.TTL = cmp.Or(o.TTL, 15*time.Second)
	k := &lockKeeper{HoldOptions: o, every: o.TTL / 6}
	l := Lock{Name: o.Name, Owner: o.Owner, Value: o.Value}
	if l.Owner != "" {
		l.Owner += " " + rand.Text()[:8]
	}
	if err := checkHold(&l, o.TTL); err != nil {
		return err
	}
	if err := k.acquire(ctx, l); err != nil {
		k.abandon(ctx, l)
		return err
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	lost := make(chan error, 1)
	lose := func(err error) {
		select {
		case lost <- err:
		default: // the first reason counts
		}
		stop(err)
	}
	k.late = time.AfterFunc(time.Until(k.until), func() { lose(k.notRenewed()) })
	defer k.late.Stop()
	// Work that ends slowly is still alone.
	renewing := parallel.During(context.WithoutCancel(ctx), func(ctx context.Context) { k.renew(ctx, lose) })
	defer renewing() // work may panic
	err := work(working, k.lock)
	k.late.Stop()
	renewing()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.TTL/3)
	defer cancel()
	_ = o.Locks.ReleaseLock(last, k.lock) // else it ends by itself
	select {
	case wrong := <-lost:
		return errors.Join(err, wrong)
	default:
		return err
	}
}

// A lockKeeper is one call of [HoldLock].
type lockKeeper struct {
	HoldOptions
	every time.Duration
	lock  Lock
	until time.Time   // when to stop if it is never renewed
	late  *time.Timer // ends the work

	mu     sync.Mutex
	failed error // why the last renewal failed
}

// safe is when to stop after an attempt that began then: with a third of the TTL
// to spare.
func (k *lockKeeper) safe(began time.Time) time.Time { return began.Add(k.TTL * 2 / 3) }

// acquire tries until it has the lock. An attempt whose answer came too late for
// any work is repeated.
func (k *lockKeeper) acquire(ctx context.Context, l Lock) error {
	ticker := time.NewTicker(k.every)
	defer ticker.Stop()
	for first := true; ; first = false {
		began := time.Now()
		attempt, cancel := context.WithDeadline(ctx, k.safe(began))
		held, err := k.Locks.AcquireLock(attempt, l, k.TTL)
		cancel()
		switch {
		case err == nil && time.Now().Before(k.safe(began)):
			k.lock, k.until = held, k.safe(began)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
		case first && !errors.Is(err, storage.ErrHeld):
			return err
		case k.Waiting != nil:
			k.Waiting(err)
		}
		if !ticks(ctx, ticker) {
			return ctx.Err()
		}
	}
}

// abandon releases the lock if an attempt that was not answered has acquired it.
// If that fails, the lock ends by itself.
func (k *lockKeeper) abandon(ctx context.Context, l Lock) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.TTL/3)
	defer cancel()
	list, _ := k.Locks.Locks(last, l.Name)
	for _, held := range list {
		if held.Owner == l.Owner {
			_ = k.Locks.ReleaseLock(last, held)
		}
	}
}

// renew renews the lock until ctx ends or another process has it, and calls lose
// then.
func (k *lockKeeper) renew(ctx context.Context, lose func(error)) {
	ticker := time.NewTicker(k.every)
	defer ticker.Stop()
	for ticks(ctx, ticker) {
		began := time.Now()
		attempt, cancel := context.WithTimeout(ctx, k.TTL/3) // there is time for another one
		_, err := k.Locks.RenewLock(attempt, k.lock, k.TTL)
		cancel()
		switch {
		case err == nil:
			k.late.Reset(time.Until(k.safe(began)))
		case errors.Is(err, ErrLockLost):
			lose(err)
			return
		}
		k.mu.Lock()
		k.failed = err
		k.mu.Unlock()
	}
}

// ticks waits for the next tick. It is false once ctx has ended.
func ticks(ctx context.Context, t *time.Ticker) bool {
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// notRenewed is the cause of a loss that no store has confirmed.
func (k *lockKeeper) notRenewed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed == nil {
		return fmt.Errorf("lock %q: %w: its renewal was not answered for %v", k.Name, ErrLockLost, k.TTL*2/3)
	}
	return fmt.Errorf("lock %q: %w: it could not be renewed for %v: %w", k.Name, ErrLockLost, k.TTL*2/3, k.failed)
}
