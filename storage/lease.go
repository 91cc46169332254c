package storage

import (
	"context"
	"time"
)

// Kinds of leases that Diego uses. You may add others.
const (
	// CellLease is held by a cell, named by its id, while it is present. Its value
	// says what the cell offers.
	CellLease = "cell"
	// LeaderLease is held by the one active process of a role, for example "bbs".
	LeaderLease = "leader"
	// LockLease is held by a process that is not one of Diego's own; see bbs.Lock.
	LockLease = "lock"
)

// MaxLeaseValueBytes is the longest value of a lease.
const MaxLeaseValueBytes = 32 * 1024

// A Lease is held by one owner until it expires by the Store's clock, or for
// longer while nobody else wants it. A lease that expired more than [KeepFor]
// ago may be deleted, as if it had been released.
//
// The epoch fences off earlier holders. It grows each time the lease is
// acquired and is never used again, not even after the lease was deleted or the
// Store has lost its newest events (see [Gap]). An epoch is good from its
// Acquire until the lease is acquired again, released or deleted. Batches with
// the holder's Batch.Fence are committed only while its epoch is good, however
// long the holder was paused.
type Lease struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Owner string `json:"owner"`
	// Epoch is at least 1.
	Epoch int64 `json:"epoch"`
	// Value is what the owner wants others to know, at most MaxLeaseValueBytes.
	Value []byte `json:"value,omitempty"`
	// ExpiresAt is when the lease is free for others and leaves the list, by the
	// Store's clock.
	ExpiresAt time.Time `json:"expires_at"`
}

// Fence returns the fence of l's epoch, which proves that the holder has not
// been replaced.
func (l *Lease) Fence() Fence { return Fence{Kind: l.Kind, Name: l.Name, Epoch: l.Epoch} }

// A Fence names an epoch of a lease.
type Fence struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Epoch int64  `json:"epoch"`
}

// A Leaser keeps leases. TTLs are at least one millisecond. Values are copied.
// All methods may be called concurrently.
type Leaser interface {
	// Acquire takes the lease with l's Kind and Name, for l.Owner and with
	// l.Value; Epoch and ExpiresAt are ignored. It succeeds if the lease is free,
	// has expired or is held by the same owner. That owner's earlier epoch is then
	// fenced off: a process that starts again under its old name takes over from
	// the one before. Otherwise the error is a *HeldError. The returned Lease has
	// the new epoch.
	Acquire(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Renew extends the lease to ttl from now and replaces its value; its owner
	// stays. It succeeds while l.Epoch is good, even if the lease has expired: a
	// holder that is late keeps the lease unless it was replaced. Otherwise the
	// error is a *FencedError.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release makes the lease free at once. Releasing twice is not an error. A
	// *FencedError says that another owner has acquired the lease since, or that
	// it was deleted; then nothing changes.
	Release(ctx context.Context, l Lease) error
}
