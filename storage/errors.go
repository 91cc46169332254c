package storage

import (
	"errors"
	"fmt"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// The errors of a Store wrap these.
var (
	// ErrNotFound: there is no such record. The errors of that name in packages
	// lrp and task wrap it.
	ErrNotFound = executor.ErrNotFound
	// ErrExists: the record exists already. task.ErrExists wraps it.
	ErrExists = executor.ErrExists
	// ErrConflict: the record has changed since it was read. Read it again and
	// decide again, as Apply does. A write that finds a record where none should
	// be also wraps ErrExists; one that finds none also wraps ErrNotFound.
	ErrConflict = errors.New("changed since it was read")
	// ErrDuplicate: a batch with this request id was committed before.
	ErrDuplicate = errors.New("request was committed before")
	// ErrHeld: somebody else holds the lease.
	ErrHeld = errors.New("lease is held by another owner")
	// ErrFenced: the lease was acquired again, released or deleted since. Stop
	// everything that you do as its holder.
	ErrFenced = errors.New("lease has a newer holder")
	// ErrCorrupt: a record exists and cannot be decoded.
	ErrCorrupt = errors.New("record cannot be decoded")
	// ErrNewer: a newer release has written the record in an encoding that this
	// release does not know. The error is a *CorruptError too, but the record is
	// not damaged. Leave it where it is.
	ErrNewer = errors.New("a newer release has written it")
	// ErrGone: events after this position have left the log, or the log never
	// reached it. Read the records again and continue from Log.
	ErrGone = errors.New("position is outside the log of events")
)

// A NotFoundError is the answer to a read of one record.
type NotFoundError struct{ Key RecordKey }

func (e *NotFoundError) Error() string { return fmt.Sprintf("%v: %v", e.Key, ErrNotFound) }

// Unwrap makes errors.Is(err, ErrNotFound) true, and for a task or an ActualLRP
// also errors.Is with task.ErrNotFound or lrp.ErrNotFound.
func (e *NotFoundError) Unwrap() error {
	switch e.Key.Kind {
	case TaskRecord:
		return task.ErrNotFound
	case ActualLRPRecord:
		return lrp.ErrNotFound
	}
	return ErrNotFound
}

// An ExistsError refuses to create a record that exists already.
type ExistsError struct{ Key RecordKey }

func (e *ExistsError) Error() string { return fmt.Sprintf("%v: %v", e.Key, ErrExists) }

// Unwrap makes errors.Is(err, ErrExists) true.
func (e *ExistsError) Unwrap() error { return ErrExists }

// A ConflictError names the write that kept a batch from being committed.
type ConflictError struct {
	Key RecordKey
	// Err is ErrExists if the write expected no record, ErrNotFound if it expected
	// one and found none, and otherwise ErrConflict.
	Err error
}

func (e *ConflictError) Error() string { return fmt.Sprintf("%v: %v", e.Key, e.Err) }

// Unwrap makes errors.Is work with ErrConflict and Err.
func (e *ConflictError) Unwrap() []error { return []error{ErrConflict, e.Err} }

// A DuplicateError says that a request was carried out before.
type DuplicateError struct {
	RequestID string
	// Cursor is the result of the first Commit.
	Cursor Cursor
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("request %q: %v, at event %d", e.RequestID, ErrDuplicate, e.Cursor)
}

// Unwrap makes errors.Is(err, ErrDuplicate) true.
func (e *DuplicateError) Unwrap() error { return ErrDuplicate }

// A HeldError says who holds a lease that another owner wants.
type HeldError struct{ Lease Lease }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s lease %q: %v, %q, until %v", e.Lease.Kind, e.Lease.Name, ErrHeld, e.Lease.Owner, e.Lease.ExpiresAt)
}

// Unwrap makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Unwrap() error { return ErrHeld }

// A FencedError says that an epoch of a lease is no longer good.
type FencedError struct {
	Fence Fence
	// Epoch is the lease's newest epoch: Fence.Epoch if the lease was released,
	// and 0 if the Store does not know the lease or has deleted it.
	Epoch int64
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("%s lease %q: %v: epoch %d is no longer good, the newest is %d",
		e.Fence.Kind, e.Fence.Name, ErrFenced, e.Fence.Epoch, e.Epoch)
}

// Unwrap makes errors.Is(err, ErrFenced) true.
func (e *FencedError) Unwrap() error { return ErrFenced }

// A CorruptError names a record that cannot be decoded. Batch.Quarantine moves
// it away.
type CorruptError struct {
	Key RecordKey
	// Err says what is wrong with it.
	Err error
}

func (e *CorruptError) Error() string { return fmt.Sprintf("%v: %v: %v", e.Key, ErrCorrupt, e.Err) }

// Unwrap makes errors.Is work with ErrCorrupt and Err.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }

// A GoneError says that a reader has fallen out of the log.
type GoneError struct {
	After  Cursor
	Extent Extent
	// Gap is the gap in which the position lies, if any: the reader has seen
	// events that the log has lost.
	Gap *Gap
}

func (e *GoneError) Error() string {
	if g := e.Gap; g != nil {
		return fmt.Sprintf("%v: after event %d, which the log has lost when it went back to event %d; it goes on with %d", ErrGone, e.After, g.After, g.First)
	}
	return fmt.Sprintf("%v: after event %d, while the log holds %d to %d", ErrGone, e.After, e.Extent.Oldest, e.Extent.Newest)
}

// Unwrap makes errors.Is(err, ErrGone) true.
func (e *GoneError) Unwrap() error { return ErrGone }
