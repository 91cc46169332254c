package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// Most groups hold nothing but compare-and-swaps that all succeed. Such a
// group is written in a single round trip, with statements in front that fail
// if the guess is wrong. Nothing is written then, and the group takes the
// usual way.

// isPlain reports whether the group can be guessed.
func (a *attempt) isPlain() bool {
	s := a.s
	if !s.batches || s.d.guard == "" || a.doubt != nil || s.trimDue(s.newest.Load()-int64(s.options.Events)+1) {
		return false
	}
	events := 0
	for _, it := range a.items {
		b := &it.batch
		if it.lease != nil || b.Fence != (storage.Fence{}) || b.RequestID != "" || len(b.Domains)+len(b.Quarantine) > 0 {
			return false
		}
		events += len(it.events)
	}
	return events > 0
}

// errNoEvents is a guess that had to leave all events to the next group, and
// so has nothing by which its outcome could be found again.
var errNoEvents = errors.New("no events are left in the group")

// guess commits the group if every compare-and-swap succeeds. Otherwise its
// error is one that isGuard knows.
func (a *attempt) guess(ctx context.Context, c *sql.Conn, calls []call) error {
	s, q := a.s, &a.s.q
	var base, oldest int64
	calls = append(slices.Clip(calls), call{query: q.lockLog, scan: func(r *sql.Rows) error { return r.Scan(&base, &oldest) }})
	calls = a.guards(calls)
	for _, it := range a.items {
		it.cursor, it.err = 0, nil
		if a.deferred[it] {
			continue
		}
		if a.concernsWritten(it) {
			a.deferred[it] = true
			continue
		}
		a.accept(it)
	}
	if len(a.segments) == 0 {
		return errNoEvents
	}
	calls = a.recordWrites(calls)
	// Sequence numbers count from the end of the log, wherever that is.
	offset := int64(0)
	for i := range a.segments {
		x := &a.segments[i]
		offset += x.n
		calls = append(calls, call{query: q.appendEvent, args: []any{offset, x.n, a.token, x.data}})
	}
	calls = append(calls, call{query: q.moveLog, args: []any{a.newest, int64(s.options.Events), a.newest}}, call{query: "COMMIT"})
	err := s.run(ctx, c, calls)
	if class, _ := s.d.classOf(err); err != nil && class == lost {
		a.doubt = a.outcome()
	}
	if err != nil {
		return err
	}
	for _, it := range a.items {
		if it.cursor > 0 {
			it.cursor += storage.Cursor(base)
		}
	}
	a.newest += base
	return nil
}

// guards adds the statements that fail unless the store holds what the items
// have read. Items that contradict one another are deferred.
func (a *attempt) guards(calls []call) []call {
	q := &a.s.q
	var lrps, newLRPs, deployments, newDeployments, tasks, newTasks []any
	seen := make(map[storage.RecordKey]executor.ModificationTag, len(a.items))
	for _, it := range a.items {
		for i := range it.records {
			c := &it.records[i]
			if tag, known := seen[c.key]; known && tag != c.before {
				a.deferred[it] = true
			}
		}
		if a.deferred[it] {
			continue
		}
		for i := range it.records {
			c := &it.records[i]
			k := &c.key
			if _, known := seen[*k]; known {
				continue
			}
			seen[*k] = c.before
			list, created, key := &tasks, &newTasks, []any{k.GUID}
			switch k.Kind {
			case storage.ActualLRPRecord:
				list, created, key = &lrps, &newLRPs, []any{k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence)}
			case storage.DeploymentRecord:
				list, created = &deployments, &newDeployments
			}
			if c.before.IsZero() {
				*created = append(*created, key...)
			} else {
				*list = append(append(*list, key...), c.before.Epoch, c.before.Index)
			}
		}
	}
	ignore := func(r *sql.Rows) error {
		var result float64
		return r.Scan(&result)
	}
	for _, g := range []struct {
		guard *guard
		rows  []any
	}{
		{&q.sameLRPs, lrps}, {&q.noLRPs, newLRPs}, {&q.sameDeployments, deployments}, {&q.noDeployments, newDeployments},
		{&q.sameTasks, tasks}, {&q.noTasks, newTasks},
	} {
		calls = g.guard.calls(calls, g.rows, ignore)
	}
	return calls
}

// A guard is a statement that fails unless every row of a list is in the
// table, or none is.
type guard struct {
	multi
	all bool
}

// calls are the statements for the list, none for an empty one.
func (g *guard) calls(dst []call, rows []any, scan func(*sql.Rows) error) []call {
	from := len(dst)
	dst = g.multi.calls(dst, rows, scan)
	for i := range dst[from:] {
		c := &dst[from+i]
		n := int64(0)
		if g.all {
			n = int64((len(c.args) + len(c.rows)) / len(g.kinds))
		}
		c.last = []any{n}
	}
	return dst
}

func (d *dialect) guardOf(table string, key []string, kinds []kind, all bool) guard {
	if all {
		key = append(slices.Clone(key), "tag_epoch", "tag_index")
		kinds = append(slices.Clone(kinds), number, number)
	}
	m := d.among("SELECT COUNT(*) AS n FROM "+table, key, kinds)
	m.head = "SELECT " + d.guard + " FROM (" + m.head
	m.tail = ") AS found CROSS JOIN (SELECT CAST(? AS " + d.integer + ") AS want) AS wanted"
	return guard{multi: m.ready(), all: all}
}
