package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/memory"
)

// An attempt is one transaction of a group.
type attempt struct {
	s     *Store
	items []*item
	// doubt is the outcome of an earlier try that may have been committed: its
	// connection was lost during the commit.
	doubt *outcome

	// joined: the transaction is the caller's. Look-ups lock what they find,
	// because other statements of it may see an earlier moment.
	joined bool

	newest, oldest, now int64
	// trims: this transaction deletes old events from the log, which has these
	// gaps.
	trims bool
	gaps  []storage.Gap
	// end is where the log ended before this transaction.
	end       int64
	tags      map[storage.RecordKey]executor.ModificationTag
	leases    leaseRows // those that fences name
	requests  map[string]storage.Cursor
	committed bool // the doubt is resolved: it happened

	written  map[storage.RecordKey]struct{}
	deferred map[*item]bool
	token    int64
	segments []segment
	aside    []dialect.Call // moves records into quarantine

	lrps, lrpsStaying, lrpsGone, deployments, deploymentsGone, defined, undefined []any
	tasks, tasksGone, domains, requestRows                                        []any
}

// A segment is a row of the log: several events that follow one another.
type segment struct {
	n    int64
	data []byte
}

// The limits of a segment.
const (
	maxSegment      = 256
	maxSegmentBytes = 256 << 10
)

// Kinds of keys that belong to no record.
const (
	domainKey storage.RecordKind = 100 + iota
	requestKey
)

func (a *attempt) reset() {
	*a = attempt{s: a.s, items: a.items, doubt: a.doubt, joined: a.joined}
	a.token = rand.Int64()
	a.tags = make(map[storage.RecordKey]executor.ModificationTag, len(a.items))
	a.written = make(map[storage.RecordKey]struct{}, 2*len(a.items))
	a.leases = make(leaseRows)
	a.requests = make(map[string]storage.Cursor)
	a.deferred = make(map[*item]bool)
}

// onConnection runs the whole transaction.
func (a *attempt) onConnection(ctx context.Context, c *sql.Conn) (err error) {
	s := a.s
	defer func() {
		if err != nil {
			s.rollBack(ctx, c, err)
		}
	}()
	if err := s.identify(ctx, c); err != nil {
		return err
	}
	a.reset()
	if s.trimDue() {
		if err := s.measure(ctx, c); err != nil {
			return err
		}
	}
	if a.isPlain() {
		if g := a.guess(); g != nil {
			err := a.try(ctx, c, g)
			if !s.d.IsWrongGuess(err) {
				return err
			}
			if _, err := c.ExecContext(ctx, "ROLLBACK"); err != nil {
				return err
			}
		}
		a.reset()
	}
	if err := s.run(ctx, c, a.lookups(s.beginCalls())); err != nil {
		return err
	}
	if a.committed {
		a.restore()
		_, err := c.ExecContext(ctx, "ROLLBACK")
		return err
	}
	if a.newest < s.seen.Load() {
		if _, err := c.ExecContext(ctx, "ROLLBACK"); err != nil {
			return err
		}
		return errors.Join(s.leaveGap(ctx, c), errShorter)
	}
	if d := a.doubt; d != nil && d.events > 0 && a.oldest > d.since+1 {
		return errForgotten
	}
	a.doubt = nil // it did not happen
	if err := a.resolveAll(ctx, c); err != nil {
		return err
	}
	writes := a.writes(make([]dialect.Call, 0, 16))
	if len(writes) == 0 {
		_, err := c.ExecContext(ctx, "ROLLBACK")
		return err
	}
	err = s.run(ctx, c, append(writes, dialect.Call{Query: "COMMIT"}))
	if class, _ := s.d.ClassOf(err); err != nil && class == dialect.Lost {
		a.doubt = a.outcome()
	}
	if err == nil {
		a.swept()
	}
	return err
}

// remember updates the memory, and what is known of the log, with what was written.
func (a *attempt) remember() {
	events := int64(0)
	for i := range a.segments {
		events += a.segments[i].n
		a.s.appended += int64(len(a.segments[i].data))
	}
	writes := make([]memory.Write, 0, len(a.items))
	for _, it := range a.items {
		if it.err != nil || a.deferred[it] {
			continue
		}
		for i := range it.records {
			if c := &it.records[i]; !c.check {
				writes = append(writes, memory.Write{Key: c.key, Record: c.plain, Stopping: c.stopping, Deployment: c.bare})
			}
		}
		for i := range it.batch.Quarantine {
			writes = append(writes, memory.Write{Key: it.batch.Quarantine[i].Key, Moved: true})
		}
	}
	a.s.memory.Note(a.newest, events, writes)
}

// errForgotten says that it is unknown whether a commit happened, because the
// events that would show it have left the log.
var errForgotten = errors.New("the connection was lost while committing, and the log has since dropped the events that would tell whether it happened")
