package storage

import (
	"context"
	"iter"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A Store keeps the records of one Diego. All methods may be called at the same
// time from several goroutines and, for a shared store, from several processes.
//
// What a Store returns belongs to the caller as a value: the caller may keep
// it, and nobody may change what it points to. It is the record that was
// committed: times in UTC, empty lists and maps possibly nil.
//
// When its context ends, a method returns an error that wraps the context's.
// Errors that are not of this package come from the database. The Store retries
// deadlocks, serialization failures and a busy database.
type Store interface {
	// The methods of Reader, called on the Store itself, each see the newest
	// commit, and a list sees one moment.
	Reader

	// View calls f with a Reader whose methods all see one moment: everything
	// committed before and nothing committed later. Commits go on meanwhile. The
	// Reader and its lists end with f; only one goroutine at a time may use them.
	// View returns f's error.
	View(ctx context.Context, f func(Reader) error) error

	// Commit writes all of b or nothing. It returns the sequence number of b's
	// last event, or 0 if b has none.
	//
	// The errors are, and if several apply, the first of: an
	// *executor.ValidationError from b.Check; a *DuplicateError if b.RequestID was
	// committed before; a *FencedError if b.Fence is no longer good; a
	// *ConflictError for one of the writes whose version is not the Store's. After
	// any of these, nothing was written. After any other error it is unknown
	// whether the batch was committed; RequestID makes it safe to try again.
	//
	// Events of one batch have consecutive numbers.
	Commit(ctx context.Context, b Batch) (Cursor, error)

	// Remembers reports whether a batch with this RequestID was committed and is
	// still remembered. It is a read: it needs no Fence.
	Remembers(ctx context.Context, requestID string) (bool, error)

	Leaser

	// Close releases the resources of the Store. Other methods fail afterwards;
	// closing twice is not an error.
	Close() error
}

// A Reader reads records. It never changes any. The Reader of a View is for one
// goroutine at a time; a Store may be read concurrently.
//
// Lists are ordered by the bytes of their identifiers, so upper and lower case
// differ. In place of a record that cannot be decoded, a list has a
// *[CorruptError], and goes on. Any other error ends the list. A list reads
// from the start each time it is ranged over; a caller that stops early leaves
// nothing behind. Lists of one Reader may be interleaved (iter.Pull), and the
// memory that they need does not grow with their length.
type Reader interface {
	// Now returns the time by the Store's clock, which leases, domains and events
	// use. In a View it stands still.
	Now(ctx context.Context) (time.Time, error)

	// Deployments lists the deployments that f wants, by process guid. They have
	// no Revisions, so use Deployment to read one that is to be changed.
	Deployments(ctx context.Context, f DeploymentFilter) iter.Seq2[*lrp.Deployment, error]
	// Deployment returns the whole deployment of a process, with its Revisions.
	// The error wraps ErrNotFound if there is none.
	Deployment(ctx context.Context, processGUID string) (*lrp.Deployment, error)

	// ActualLRPs lists the records of instances that f wants, by process guid,
	// index, definition id and presence.
	ActualLRPs(ctx context.Context, f ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error]
	// Slot returns the input of lrp.Step, all from one moment: the records at one
	// index and the [Bare] deployment of the process, nil if there is none. A slot
	// without records is not an error; a record that cannot be decoded is.
	Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, *lrp.Deployment, error)

	// Tasks lists the tasks that f wants, by guid.
	Tasks(ctx context.Context, f TaskFilter) iter.Seq2[*task.Task, error]
	// Task returns one task. The error wraps ErrNotFound if there is none.
	Task(ctx context.Context, guid string) (*task.Task, error)

	// Domains lists all domains by name. Domains that are no longer fresh stay in
	// the list for at least KeepFor; ExpiresAt is by the Store's clock.
	Domains(ctx context.Context) iter.Seq2[lrp.Domain, error]

	// Leases lists the leases of one kind that have not expired, by name.
	Leases(ctx context.Context, kind string) iter.Seq2[Lease, error]

	// Events lists the events after a position that f wants, in ascending order of
	// their sequence numbers. A reader that has seen event n of an unfiltered list
	// has seen all before it: no event ever appears below one that was visible. If
	// events after the position have left the log, if the log never reached the
	// position, or if the position lies in a [Gap], the list is one *GoneError.
	// Events that are committed while the list is read may or may not be in it.
	Events(ctx context.Context, after Cursor, f EventFilter) iter.Seq2[Event, error]
	// Log returns the extent of the log. The next event is Newest+1, unless the
	// log may have lost events: see [Gap]. Oldest is the oldest event in the log,
	// or Newest+1 if there is none; so a reader may start at Oldest−1 or later.
	Log(ctx context.Context) (Extent, error)
}

// KeepFor is how long a Store keeps, at least and by its own clock, what has
// ended: a domain that is no longer fresh, a lease that has expired or was
// released. Some time later it deletes them, so that unused names do not stay
// for ever.
const KeepFor = 24 * time.Hour

// A Cursor is a position in the log of events: the sequence number of the last
// event that was seen. The first event ever has number 1, and 0 is the position
// before it. No number ever belongs to two events, not even after the log has
// lost some: see [Gap].
type Cursor int64

// An Extent says which events the log holds.
type Extent struct {
	Oldest Cursor `json:"oldest"`
	Newest Cursor `json:"newest"`
}

// A Waiter is a Store that knows when there are new events. See [Wait]. Its
// method may be called concurrently with all others.
type Waiter interface {
	// Wait returns nil soon after the log has an event beyond after. It returns at
	// once if there is one already, or if after is beyond the log. It may return
	// nil too early, but never misses an event.
	Wait(ctx context.Context, after Cursor) error
}
