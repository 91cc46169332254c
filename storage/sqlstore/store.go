package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/group"
	"github.com/diegosdk/diego/storage/sqlstore/internal/guess"
	"github.com/diegosdk/diego/storage/sqlstore/internal/memory"
)

// A Store implements storage.Store, storage.Waiter, storage.Recaller and
// storage.Restorer. All methods may be called concurrently.
type Store struct {
	reader
	d       *dialect.Dialect
	options Options
	sealer  *sealer
	q       queries
	guesses guess.Statements // nil where commits are not guessed
	// beginWrite starts a transaction that commits, beginRead a View.
	beginWrite, beginRead []string
	// txBounds makes the settings of a caller's transaction that commits, if
	// Open did not make them for the connection.
	txBounds []dialect.Call
	batches  atomic.Bool // several statements go in one round trip
	single   bool        // the pool has one connection only
	foreign  bool        // the connections are the caller's, to a server
	pools
	pool  *pool
	close func() error

	commits *group.Group[*item]
	leases  *group.Group[*leaseChange]
	slots   *group.Group[*slotRead]
	lists   *group.Group[*listRead]
	memory  *memory.Memory

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup

	newest atomic.Int64 // the newest event that this process knows to be committed
	wakeMu sync.Mutex
	wake   chan struct{} // closed by the next commit of events; nil if nobody waits

	server knownServer
	seen   atomic.Int64 // how far the log was seen to reach

	size        logSize      // of the log, for trimming it
	appended    int64        // bytes that this process has added to the log since it last trimmed
	wal         string       // the file of the log of a SQLite database
	written     atomic.Int64 // bytes since that was looked at
	trimmed     int64        // where the log ended when this process last deleted events
	swept       int64        // when this process last deleted old requests, by the store's clock
	leasesSwept int64        // and old leases
}

var (
	_ storage.Store    = (*Store)(nil)
	_ storage.Waiter   = (*Store)(nil)
	_ storage.Recaller = (*Store)(nil)
	_ storage.Restorer = (*Store)(nil)
)

// ErrClosed is the error of every method of a closed Store.
var ErrClosed = errors.New("sqlstore: the store is closed")

// readers is how many grouped reads run at once, each on a connection of its
// own.
const readers = 2

func build(ctx context.Context, d *dialect.Dialect, p pools, opts Options, closeAll func() error) (*Store, error) {
	if opts.Now != nil {
		own := *d
		own.Clock = dialect.SQLiteNow
		d = &own
	}
	if opts.clock != "" {
		own := *d
		own.Clock = fmt.Sprintf(opts.clock, d.Clock)
		d = &own
	}
	s := &Store{d: d, options: opts, pools: p, close: closeAll, trimmed: -1}
	s.reader = reader{s: s}
	s.memory = memory.New(opts.Remember)
	s.q, s.guesses = s.newQueries(), guess.New(d, s.table)
	// A list may go on after its caller has committed something.
	s.beginWrite, s.beginRead = d.Begin, d.BeginRead
	if closeAll == nil {
		s.beginWrite, s.beginRead = slices.Concat(d.Isolation, d.Begin, d.Settings, d.Bounds), slices.Concat(d.BeginRead, d.Settings)
		if d.Arrays { // PostgreSQL takes a text without arguments as one round trip, with any driver
			s.beginWrite, s.beginRead = []string{strings.Join(s.beginWrite, "; ")}, []string{strings.Join(s.beginRead, "; ")}
		}
		if len(d.Bounds) > 0 {
			s.txBounds = []dialect.Call{{Query: strings.Join(d.Bounds, "; ")}}
		}
	}
	s.foreign = closeAll == nil && d.Identity != ""
	s.single = p.read == p.write && p.read.Stats().MaxOpenConnections == 1
	s.batches.Store(d.Batch != nil && !opts.OneByOne)
	s.pool = &pool{db: p.read, prepare: d.Prepare && !opts.OneByOne}
	s.commits = &group.Group[*item]{Begin: s.begin, End: s.work.Done, Limit: 1, Most: maxGroup, Gather: true, Run: s.commitGroup}
	s.leases = &group.Group[*leaseChange]{Begin: s.begin, End: s.work.Done, Limit: 1, Most: maxLeases, Run: s.changeLeases}
	s.slots = &group.Group[*slotRead]{Begin: s.begin, End: s.work.Done, Limit: readers, Most: dialect.RowsPerStatement, Run: s.readSlots}
	s.lists = &group.Group[*listRead]{Begin: s.begin, End: s.work.Done, Limit: readers, Most: dialect.RowsPerStatement, Run: s.readLists}
	// SQLite does not wait for another process that opens or closes the file
	// at the same moment. A server that cannot be reached is the caller's.
	if err := s.retryOn(ctx, "opening", func() error { return s.prepareSchema(ctx) }, dialect.Transient); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) prepareSchema(ctx context.Context) error {
	if err := s.write.PingContext(ctx); err != nil {
		return err
	}
	if err := s.checkTopology(ctx, s.write); err != nil {
		return err
	}
	if s.d.Dir == "postgres" && s.batches.Load() {
		// With the old quoting rules, literals would have another meaning.
		var setting string
		if err := dialect.QueryRow(ctx, s.write, "SHOW standard_conforming_strings", &setting); err != nil {
			return err
		}
		s.batches.Store(setting == "on")
	}
	if s.close != nil {
		if err := s.checkBounds(ctx); err != nil {
			return err
		}
	}
	made, err := s.migrate(ctx)
	if err != nil {
		return err
	}
	if err := s.tryWriting(ctx); err != nil {
		return err
	}
	if s.sealer, err = s.newSealer(ctx, s.options.Keys); err != nil {
		return err
	}
	if err := s.findWAL(ctx); err != nil {
		return err
	}
	if err := s.beginLog(ctx, made); err != nil {
		return err
	}
	var newest int64
	if err := dialect.QueryRow(ctx, s.write, "SELECT newest FROM "+s.table("log")+" WHERE id = 1", &newest); err != nil {
		return err
	}
	s.newest.Store(newest)
	s.saw(newest)
	return nil
}

// checkTopology refuses a server that is one of several which take writes,
// unless that is wanted, and sends it one statement at a time.
func (s *Store) checkTopology(ctx context.Context, q dialect.Querier) error {
	if s.d.Topology == nil {
		return nil
	}
	several, err := s.d.Topology(ctx, q, s.options.OneNode)
	if several {
		s.batches.Store(false)
	}
	return err
}

// beginLog leaves a gap in a log that existed before this opening, because it may
// come from a backup.
func (s *Store) beginLog(ctx context.Context, made bool) error {
	c, err := s.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := s.identify(ctx, c); err != nil || made {
		return err
	}
	return s.leaveGap(ctx, c)
}

// tryWriting checks that the database accepts writes, and changes nothing. A
// standby would otherwise notice only when it takes over.
func (s *Store) tryWriting(ctx context.Context) error {
	c, err := s.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	err = dialect.InTransaction(ctx, c, s.beginWrite, func() error {
		if _, err := c.ExecContext(ctx, "UPDATE "+s.table("log")+" SET newest = newest WHERE id = 1"); err != nil {
			return err
		}
		return errTried
	})
	if errors.Is(err, errTried) {
		return nil
	}
	return err
}

// errTried rolls back what was only tried.
var errTried = errors.New("tried")

func (s *Store) table(name string) string { return s.options.Prefix + name }

// Close waits for the commits that have begun, and closes the connections that
// Open made. Other methods fail afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
	s.notify(0)
	s.pool.close()
	if s.close == nil {
		return nil
	}
	return explain(s.d, "closing", s.close())
}

// Recall implements [storage.Recaller].
func (s *Store) Recall(processGUID string, index int) (storage.Recollection, bool) {
	return s.memory.Recall(processGUID, index)
}

// begin notes that an operation has begun, for which Close waits.
func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.work.Add(1)
	return nil
}

// usable returns the error with which every method begins, or nil.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return nil
}

// background is the context of work for which several callers wait. The work
// goes on when one of them leaves, and Close waits for its end. So nothing
// cancels it, and no driver has to watch it.
var background = context.Background()

const (
	minPause = 2 * time.Millisecond
	maxPause = 500 * time.Millisecond
)

// retry calls f again while its error is temporary.
func (s *Store) retry(ctx context.Context, op string, f func() error) error {
	return s.retryOn(ctx, op, f, dialect.Transient, dialect.Lost)
}

// retryOn calls f again while its error is of one of the classes. Pauses double
// from one attempt to the next and are jittered.
func (s *Store) retryOn(ctx context.Context, op string, f func() error, classes ...dialect.Class) error {
	deadline := time.Now().Add(s.options.RetryFor)
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := f()
		if err == nil {
			return nil
		}
		if class, _ := s.d.ClassOf(err); !slices.Contains(classes, class) || ctx.Err() != nil || time.Now().After(deadline) {
			if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
				err = errors.Join(ctx.Err(), err)
			}
			return explain(s.d, op, err)
		}
		if sleep(ctx, pause/2+rand.N(pause/2)) != nil {
			return explain(s.d, op, errors.Join(ctx.Err(), err))
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wait implements [storage.Waiter]. Commits of this process wake it at once; it
// checks for those of others several times a second.
func (s *Store) Wait(ctx context.Context, after storage.Cursor) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		s.wakeMu.Lock()
		if s.wake == nil {
			s.wake = make(chan struct{})
		}
		wake := s.wake
		s.wakeMu.Unlock()
		if err := s.usable(ctx); err != nil {
			return err
		}
		if s.newest.Load() > int64(after) {
			return nil
		}
		log, err := s.Log(ctx)
		if err != nil || log.Newest != after {
			return err
		}
		select {
		case <-wake:
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// notify wakes those who wait for events.
func (s *Store) notify(newest int64) {
	if newest > s.newest.Load() {
		s.newest.Store(newest) // commits are one at a time
	}
	s.saw(newest)
	s.wakeMu.Lock()
	defer s.wakeMu.Unlock()
	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}
