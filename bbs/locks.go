package bbs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// Limits of locks.
const (
	// MaxLockNameBytes leaves room for "diego-lock:" in the 64 characters of an
	// organizational unit.
	MaxLockNameBytes  = 53
	MaxLockOwnerBytes = 200
	MaxLockValueBytes = 4 << 10
	MinLockTTL        = time.Second
	MaxLockTTL        = 10 * time.Minute
)

// A Lock lets only one of several processes of your own act at a time: for example
// the one of several routers that writes a DNS record. Diego's own leases are not
// locks. [HoldLock] acquires and renews a lock for you.
//
// Nobody else acquires a lock that is held before its TTL has passed by the store's
// clock. Each time it is acquired, its epoch is greater than all before. Any BBS
// answers calls for locks, whether it leads or not.
//
// A lock does not promise that a former holder has stopped. Two processes may
// believe for a moment that they hold it if one was paused, if the store's clock
// jumps ahead, or if the store has lost its last writes. Where that would do harm,
// pass the epoch to what the holder changes, and let it refuse an epoch smaller
// than one that it has seen.
type Lock struct {
	// Name has letters, digits, ".", "_", "-" and "/", begins with a letter or a
	// digit, and has at most MaxLockNameBytes. A caller's certificate says which
	// locks it may use.
	Name string `json:"name"`
	// Owner names this run of the holder, in 1 to MaxLockOwnerBytes. Two processes
	// with the same owner take the lock from each other; [HoldLock] makes owners
	// unique.
	Owner string `json:"owner"`
	// Value is what the owner wants others to know, such as its address, in at most
	// MaxLockValueBytes.
	Value string `json:"value,omitempty"`
	// Epoch grows each time the lock is acquired and is never used again.
	Epoch int64 `json:"epoch,omitempty"`
	// ExpiresAt is when the lock is free unless it is renewed, by the store's clock.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// ErrLockLost is wrapped by every [LockLostError].
var ErrLockLost = errors.New("the lock is lost")

// A LockLostError says that a lock was acquired again or released since its holder
// had it. The holder must stop what only one may do.
type LockLostError struct {
	Name  string `json:"name"`
	Epoch int64  `json:"epoch"`
}

func (e *LockLostError) Error() string {
	return fmt.Sprintf("lock %q with epoch %d: %v: it was acquired again or released since; stop what needs it", e.Name, e.Epoch, ErrLockLost)
}

// Unwrap makes errors.Is(err, ErrLockLost) true.
func (e *LockLostError) Unwrap() error { return ErrLockLost }

// LocksAPI has the calls for locks: of [Locks], or of another process through a
// httpapi.RemoteBBS. Its methods may be called at the same time. Errors wrap
// executor.ErrInvalid for arguments outside their limits. After any other error
// it is unknown whether the call was carried out, and it may be repeated.
type LocksAPI interface {
	// AcquireLock takes a lock for ttl, from MinLockTTL to MaxLockTTL. Epoch and
	// ExpiresAt of l are ignored; the answer has the new ones. The error is a
	// *storage.HeldError while another owner has it.
	AcquireLock(ctx context.Context, l Lock, ttl time.Duration) (Lock, error)
	// RenewLock extends a lock to ttl from now and replaces its value. It succeeds
	// after its end, too, unless somebody else has acquired it. The error is a
	// *LockLostError if the epoch is not the latest.
	RenewLock(ctx context.Context, l Lock, ttl time.Duration) (Lock, error)
	// ReleaseLock makes a lock free at once. The error is a *LockLostError if it
	// was acquired again since.
	ReleaseLock(ctx context.Context, l Lock) error
	// Locks lists the locks that are held, ordered by name: the one with that name,
	// or all if name is empty.
	Locks(ctx context.Context, name string) ([]Lock, error)
}

// Locks keeps locks in a store. Its methods may be called at the same time.
type Locks struct{ store storage.Store }

var _ LocksAPI = (*Locks)(nil)

// NewLocks returns the locks of a store, which may not be nil. All processes with
// the same store have the same locks; none has to lead.
func NewLocks(store storage.Store) *Locks { return &Locks{store} }

var lockName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

func checkLock(v *executor.Validator, l *Lock) {
	v.Check(lockName.MatchString(l.Name) && len(l.Name) <= MaxLockNameBytes, "name", l.Name,
		fmt.Sprintf("letters, digits, ., _, - and /, beginning with a letter or a digit, at most %d bytes", MaxLockNameBytes))
	v.Check(l.Owner != "" && len(l.Owner) <= MaxLockOwnerBytes, "owner", fmt.Sprintf("%d bytes", len(l.Owner)), fmt.Sprintf("1 to %d bytes", MaxLockOwnerBytes))
	v.OneLine("owner", l.Owner)
	v.Check(len(l.Value) <= MaxLockValueBytes && utf8.ValidString(l.Value), "value", fmt.Sprintf("%d bytes", len(l.Value)),
		fmt.Sprintf("at most %d bytes of UTF-8", MaxLockValueBytes))
}

func checkHold(l *Lock, ttl time.Duration) error {
	var v executor.Validator
	checkLock(&v, l)
	v.Check(ttl >= MinLockTTL && ttl <= MaxLockTTL, "ttl", ttl, fmt.Sprintf("%v to %v", MinLockTTL, MaxLockTTL))
	return v.Err()
}

func (l *Lock) lease() storage.Lease {
	return storage.Lease{Kind: storage.LockLease, Name: l.Name, Owner: l.Owner, Epoch: l.Epoch, Value: []byte(l.Value)}
}

func lockOf(l storage.Lease) Lock {
	return Lock{Name: l.Name, Owner: l.Owner, Value: string(l.Value), Epoch: l.Epoch, ExpiresAt: l.ExpiresAt}
}

// AcquireLock implements [LocksAPI].
func (k *Locks) AcquireLock(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	if err := checkHold(&l, ttl); err != nil {
		return Lock{}, err
	}
	lease, err := k.store.Acquire(ctx, l.lease(), ttl)
	return lockOf(lease), err
}

// RenewLock implements [LocksAPI].
func (k *Locks) RenewLock(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	if err := checkHold(&l, ttl); err != nil {
		return Lock{}, err
	}
	lease, err := k.store.Renew(ctx, l.lease(), ttl)
	return lockOf(lease), lost(&l, err)
}

// ReleaseLock implements [LocksAPI].
func (k *Locks) ReleaseLock(ctx context.Context, l Lock) error {
	var v executor.Validator
	checkLock(&v, &l)
	if err := v.Err(); err != nil {
		return err
	}
	return lost(&l, k.store.Release(ctx, l.lease()))
}

// lost is err, or that l was lost if the store says so. To others, a fenced call
// would mean that the leader was replaced.
func lost(l *Lock, err error) error {
	var fenced *storage.FencedError
	if errors.As(err, &fenced) && fenced.Fence.Kind == storage.LockLease {
		return &LockLostError{Name: l.Name, Epoch: l.Epoch}
	}
	return err
}

// Locks implements [LocksAPI].
func (k *Locks) Locks(ctx context.Context, name string) ([]Lock, error) {
	list := []Lock{}
	for lease, err := range k.store.Leases(ctx, storage.LockLease) {
		if err != nil {
			return nil, err
		}
		if name == "" || lease.Name == name {
			list = append(list, lockOf(lease))
		}
	}
	return list, nil
}
