package sqlstore

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"reflect"
	"sync"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// This file leaves a storage.Gap where the log may have lost events:
//
//   - when a store is opened on existing tables;
//   - when a connection leads to another server, or to one that was restarted;
//   - when the log ends before an event that this process has seen.

// A knownServer is the server behind the connections that write.
type knownServer struct {
	mu       sync.Mutex
	identity string
	// connections are the driver's connections to this server.
	connections map[any]struct{}
}

// maxKnown limits the known connections, because some of them have ended.
const maxKnown = 256

// identify checks, before a connection writes for the first time, that its
// server is the one that the store knows. If it is another one, the log may
// have lost events.
func (s *Store) identify(ctx context.Context, c *sql.Conn) error {
	if s.q.identity == "" {
		return nil
	}
	var conn any
	if err := c.Raw(func(driverConn any) error { conn = driverConn; return nil }); err != nil {
		return err
	}
	comparable := reflect.TypeOf(conn).Comparable()
	k := &s.server
	k.mu.Lock()
	known := false
	if comparable {
		_, known = k.connections[conn]
	}
	k.mu.Unlock()
	if known {
		return nil
	}
	moved, identity, err := s.moved(ctx, c)
	if err == nil && moved { // it may have become one of several, too
		if err = s.checkTopology(ctx, c); err == nil {
			err = s.leaveGap(ctx, c)
		}
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.identity != identity || len(k.connections) >= maxKnown {
		k.identity, k.connections = identity, make(map[any]struct{})
	}
	if comparable {
		k.connections[conn] = struct{}{}
	}
	return nil
}

// moved reports whether the server differs from the one that the store knows,
// and which it is. The first server does not count as different.
func (s *Store) moved(ctx context.Context, q dialect.Querier) (moved bool, identity string, err error) {
	if s.q.identity == "" {
		return false, "", nil
	}
	s.server.mu.Lock()
	known := s.server.identity
	s.server.mu.Unlock()
	err = dialect.QueryRow(ctx, q, s.q.identity, &identity)
	return known != "" && identity != known, identity, err
}

// Restored implements storage.Restorer.
func (s *Store) Restored(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.work.Done()
	return s.retry(ctx, "leaving a gap in the log", func() error {
		c, err := s.write.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close() // returns it to the pool
		return s.leaveGap(ctx, c)
	})
}

// leaveGap commits a gap. If its outcome is in doubt, it may be repeated.
func (s *Store) leaveGap(ctx context.Context, c *sql.Conn) error {
	run := func(calls []dialect.Call) error { return dialect.RunEach(ctx, c, calls) }
	err := s.writeGap(run, s.beginCalls(), []dialect.Call{{Query: "COMMIT"}})
	if err != nil {
		s.rollBack(context.WithoutCancel(ctx), c, err)
		return err
	}
	s.notify(0)
	return nil
}

// writeGap locks the log between begin and end, and adds a gap and the event at
// its end. It may merge older gaps.
func (s *Store) writeGap(run func([]dialect.Call) error, begin, end []dialect.Call) error {
	var newest, oldest, now int64
	var gaps []storage.Gap
	err := run(append(begin,
		dialect.Call{Query: s.q.lockLog, Scan: func(r *sql.Rows) error { return r.Scan(&newest, &oldest) }},
		dialect.Call{Query: s.q.clock, Scan: func(r *sql.Rows) error { return r.Scan(&now) }},
		s.readGaps(&gaps)))
	if err != nil {
		return err
	}
	g := storage.NextGap(storage.Cursor(newest), storage.Cursor(s.seen.Load()), executor.Instant(now))
	if newest < oldest { // the log has no events
		oldest = int64(g.First)
	}
	gaps, widened := storage.MergeGaps(append(gaps, g))
	oldest = int64(storage.Extent{Oldest: storage.Cursor(oldest), Newest: g.First}.Keep(s.options.Events, gaps))
	first := int64(g.First)
	calls := []dialect.Call{
		{Query: s.q.insertGap, Args: []any{first, int64(g.After)}},
		{Query: s.q.raiseFloor, Args: []any{first, first}},
		{Query: s.q.setLog, Args: []any{first, oldest}},
		{Query: s.q.trimGaps, Args: []any{oldest}},
	}
	for _, w := range widened {
		after, first := int64(w.After), int64(w.First)
		data, err := s.gapData(w)
		if err != nil {
			return err
		}
		calls = append(calls,
			dialect.Call{Query: s.q.dropGaps, Args: []any{after, first}},
			dialect.Call{Query: s.q.dropEvents, Args: []any{after, first}},
			dialect.Call{Query: s.q.widenGap, Args: []any{after, first}},
			dialect.Call{Query: s.q.changeEvents, Args: []any{data, first}})
	}
	data, err := s.gapData(g)
	if err != nil {
		return err
	}
	calls = s.q.insertEvents.Calls(calls, []any{first, int64(1), now, rand.Int64(), data}, nil)
	return run(append(calls, end...))
}

// gapData is the row of the log at the end of a gap. The row has one event.
func (s *Store) gapData(g storage.Gap) ([]byte, error) {
	data, err := storage.EncodeEvent(&storage.Event{Gap: &g})
	if err != nil {
		return nil, err
	}
	return appendEvent(nil, s.sealer.seal(data, eventPlace)), nil
}

// readGaps reads the gaps of the log in ascending order.
func (s *Store) readGaps(gaps *[]storage.Gap) dialect.Call {
	return dialect.Call{Query: s.q.gaps, Scan: func(r *sql.Rows) error {
		var g storage.Gap
		err := r.Scan(&g.After, &g.First)
		*gaps = append(*gaps, g)
		return err
	}}
}

// saw notes that the log has reached this event.
func (s *Store) saw(newest int64) {
	for {
		seen := s.seen.Load()
		if newest <= seen || s.seen.CompareAndSwap(seen, newest) {
			return
		}
	}
}

// errShorter says that the log ends before an event that this process has seen.
const errShorter = dialect.TransientError("the log of events has become shorter")
