package httpapi

import (
	"context"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/internal/wire"
)

// Arguments of the calls for locks.
type (
	holdArgs struct {
		Lock bbs.Lock `json:"lock"`
		// TTL is in nanoseconds.
		TTL time.Duration `json:"ttl_nanoseconds"`
	}
	locksArgs struct {
		// Name is empty for all locks, which only an operator may list.
		Name string `json:"name,omitempty"`
	}
)

// ofLock makes c a call that a locker may make only for the locks of its certificate.
func ofLock[In, Out any](c *wire.Call[bbs.LocksAPI, In, Out], name func(In) string) *wire.Call[bbs.LocksAPI, In, Out] {
	c.Lock = name
	return c
}

var (
	callAcquireLock = ofLock(ask(call("AcquireLock", "bbs/acquire_lock", lockers, wire.Always,
		"Takes a lock for a time. Answers with its epoch and when it ends."),
		func(ctx context.Context, k bbs.LocksAPI, in holdArgs) (bbs.Lock, error) {
			return k.AcquireLock(ctx, in.Lock, in.TTL)
		}), func(in holdArgs) string { return in.Lock.Name })
	callRenewLock = ofLock(ask(call("RenewLock", "bbs/renew_lock", lockers, wire.Always,
		"Extends a lock that the caller holds, and replaces its value."),
		func(ctx context.Context, k bbs.LocksAPI, in holdArgs) (bbs.Lock, error) {
			return k.RenewLock(ctx, in.Lock, in.TTL)
		}), func(in holdArgs) string { return in.Lock.Name })
	callReleaseLock = ofLock(tell(call("ReleaseLock", "bbs/release_lock", lockers, wire.Always,
		"Releases a lock that the caller holds."),
		func(ctx context.Context, k bbs.LocksAPI, in bbs.Lock) error { return k.ReleaseLock(ctx, in) }),
		func(in bbs.Lock) string { return in.Name })
	callLocks = ofLock(ask(call("Locks", "bbs/locks", lockers, wire.Always,
		"Lists the locks that are held, ordered by name: the one with the given name or, for an operator, all."),
		func(ctx context.Context, k bbs.LocksAPI, in locksArgs) ([]bbs.Lock, error) {
			return k.Locks(ctx, in.Name)
		}), func(in locksArgs) string { return in.Name })
)

var lockCalls = []wire.Endpoint[bbs.LocksAPI]{callAcquireLock, callRenewLock, callReleaseLock, callLocks}
