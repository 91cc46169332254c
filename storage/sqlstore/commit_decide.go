package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/memory"
)

// This file reads what the items of a transaction concern, and decides which of
// them go ahead.

// lookups adds the statements that lock the log, which keeps every other commit
// out, and that read the records which the items concern.
func (a *attempt) lookups(calls []dialect.Call) []dialect.Call {
	q := &a.s.q
	calls = append(calls,
		dialect.Call{Query: q.lockLog, Scan: func(r *sql.Rows) error { return r.Scan(&a.newest, &a.oldest) }},
		dialect.Call{Query: q.clock, Scan: func(r *sql.Rows) error { return r.Scan(&a.now) }})
	if a.trims = !a.joined && a.s.trimDue(); a.trims {
		calls = append(calls, a.s.readGaps(&a.gaps))
	}
	if d := a.doubt; d != nil {
		find, args := q.findMarker, []any{d.token}
		if d.events > 0 {
			find, args = q.findSegment, []any{d.since, d.token}
		}
		calls = append(calls, dialect.Call{Query: find, Args: args, Scan: func(r *sql.Rows) error {
			err := r.Scan(&d.found)
			a.committed = d.found > 0
			return err
		}})
	}
	var lrps, deployments, tasks, leases, requests []any
	for _, it := range a.items {
		for i := range it.records {
			k := &it.records[i].key
			if isImpossible(k.GUID) || isImpossible(k.DefinitionID) {
				continue // it is not there
			}
			switch k.Kind {
			case storage.ActualLRPRecord:
				lrps = append(lrps, k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence))
			case storage.DeploymentRecord:
				deployments = append(deployments, k.GUID)
			case storage.TaskRecord:
				tasks = append(tasks, k.GUID)
			}
		}
		if f := it.batch.Fence; f != (storage.Fence{}) && !isImpossible(f.Kind) && !isImpossible(f.Name) {
			leases = append(leases, f.Kind, f.Name)
		}
		if id := it.batch.RequestID; id != "" {
			requests = append(requests, id)
		}
	}
	from := len(calls)
	calls = q.lookLRPs.Calls(calls, lrps, func(r *sql.Rows) error {
		k := storage.RecordKey{Kind: storage.ActualLRPRecord}
		var tag executor.ModificationTag
		err := r.Scan(&k.GUID, &k.Index, &k.DefinitionID, &k.Presence, &tag.Epoch, &tag.Index)
		a.tags[k] = tag
		return err
	})
	scanTag := func(kind storage.RecordKind) func(r *sql.Rows) error {
		return func(r *sql.Rows) error {
			k := storage.RecordKey{Kind: kind}
			var tag executor.ModificationTag
			err := r.Scan(&k.GUID, &tag.Epoch, &tag.Index)
			a.tags[k] = tag
			return err
		}
	}
	calls = q.lookDeployments.Calls(calls, deployments, scanTag(storage.DeploymentRecord))
	calls = q.lookTasks.Calls(calls, tasks, scanTag(storage.TaskRecord))
	fences := &q.lookFences
	if a.joined {
		fences = &q.lookLeases // locked like all else
	}
	calls = fences.Calls(calls, leases, a.leases.scan)
	calls = q.lookRequests.Calls(calls, requests, func(r *sql.Rows) error {
		var id string
		var cursor int64
		err := r.Scan(&id, &cursor)
		a.requests[id] = storage.Cursor(cursor)
		return err
	})
	if a.joined {
		for i := range calls[from:] {
			calls[from+i].Query += a.s.d.Lock
		}
	}
	return calls
}

// resolveAll decides about each item in turn.
func (a *attempt) resolveAll(ctx context.Context, q dialect.Querier) error {
	a.end = a.newest
	for _, it := range a.items {
		it.cursor, it.err = 0, nil
		if a.concernsWritten(it) {
			a.deferred[it] = true
			continue
		}
		err := a.refusal(it)
		if err == nil && len(it.batch.Quarantine) > 0 {
			err = a.quarantine(ctx, q, it)
		}
		var databaseError *Error
		if errors.As(err, &databaseError) {
			return databaseError.Err
		}
		if it.err = err; err == nil {
			a.accept(it)
		} else if it.origin != nil && a.end == a.s.memory.LogEnd() {
			a.s.memory.Doubt(it.origin)
		}
	}
	return nil
}

// concernsWritten reports whether the item looks at or writes a record that an
// earlier item of this transaction writes.
func (a *attempt) concernsWritten(it *item) bool {
	if len(a.written) == 0 {
		return false
	}
	is := func(k storage.RecordKey) bool {
		_, written := a.written[k]
		return written
	}
	for i := range it.records {
		if is(it.records[i].key) {
			return true
		}
	}
	for i := range it.batch.Domains {
		if is(storage.RecordKey{Kind: domainKey, GUID: it.batch.Domains[i].Name}) {
			return true
		}
	}
	for i := range it.batch.Quarantine {
		if is(it.batch.Quarantine[i].Key) {
			return true
		}
	}
	if o := it.origin; o != nil && (is(o.Key.Record()) || is(storage.DeploymentKey(o.Key.GUID))) {
		return true
	}
	return it.batch.RequestID != "" && is(storage.RecordKey{Kind: requestKey, GUID: it.batch.RequestID})
}

// refusal returns why the item cannot be committed, or nil.
func (a *attempt) refusal(it *item) error {
	if err := a.repeatedRequest(it); err != nil {
		return err
	}
	if err := a.fence(it.batch.Fence); err != nil {
		return err
	}
	if it.origin != nil && (a.joined || a.end != a.s.memory.LogEnd() || !a.s.memory.Holds(it.origin)) {
		return &storage.ConflictError{Key: it.origin.Key.Record(), Err: storage.ErrConflict}
	}
	for i := range it.records {
		c := &it.records[i]
		tag, there := a.tags[c.key]
		switch {
		case c.before.IsZero() && there:
			return &storage.ConflictError{Key: c.key, Err: storage.ErrExists}
		case !c.before.IsZero() && !there:
			return &storage.ConflictError{Key: c.key, Err: storage.ErrNotFound}
		case tag != c.before:
			return &storage.ConflictError{Key: c.key, Err: storage.ErrConflict}
		}
	}
	return nil
}

// quarantine checks that the record to be moved away cannot be decoded, and
// prepares the move.
func (a *attempt) quarantine(ctx context.Context, q dialect.Querier, it *item) error {
	s := a.s
	for _, entry := range it.batch.Quarantine {
		k := entry.Key
		if isImpossible(k.GUID) || isImpossible(k.DefinitionID) {
			return &storage.ConflictError{Key: k, Err: storage.ErrNotFound}
		}
		found, corrupt, err := s.reader.examine(ctx, q, k)
		switch {
		case err != nil:
			return &Error{Op: "reading what is to be quarantined", Err: err}
		case !found:
			return &storage.ConflictError{Key: k, Err: storage.ErrNotFound}
		case !corrupt:
			return &storage.ConflictError{Key: k, Err: storage.ErrConflict}
		}
	}
	for _, entry := range it.batch.Quarantine {
		k := entry.Key
		args := []any{a.now, legible(entry.Reason), k.GUID}
		switch k.Kind {
		case storage.ActualLRPRecord:
			key := []any{k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence)}
			a.aside = append(a.aside, dialect.Call{Query: s.q.asideLRP, Args: append(args[:2:2], key...)})
			a.lrpsGone = append(a.lrpsGone, key...)
		case storage.DeploymentRecord:
			a.aside = append(a.aside, dialect.Call{Query: s.q.asideDeployment, Args: args}, dialect.Call{Query: s.q.asideDefinition, Args: args})
			a.deploymentsGone = append(a.deploymentsGone, k.GUID)
		case storage.TaskRecord:
			a.aside = append(a.aside, dialect.Call{Query: s.q.asideTask, Args: args})
			a.tasksGone = append(a.tasksGone, k.GUID)
		}
		a.wrote(&k)
	}
	return nil
}

// wrote notes that a record changes, and with it its slot.
func (a *attempt) wrote(k *storage.RecordKey) {
	a.written[*k] = struct{}{}
	if k.Kind == storage.ActualLRPRecord {
		a.written[memory.SlotKey{GUID: k.GUID, Index: k.Index}.Record()] = struct{}{}
	}
}

// legible makes text that every database accepts: a reason may quote damaged
// data.
func legible(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// accept adds what the item writes.
func (a *attempt) accept(it *item) {
	for i := range it.records {
		c := &it.records[i]
		if c.check {
			continue
		}
		k := &c.key
		a.wrote(k)
		switch k.Kind {
		case storage.ActualLRPRecord:
			switch {
			case c.row == nil:
				a.lrpsGone = append(a.lrpsGone, k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence))
			case c.stays:
				a.lrpsStaying = append(a.lrpsStaying, c.row...)
			default:
				a.lrps = append(a.lrps, c.row...)
			}
		case storage.DeploymentRecord:
			if c.row == nil {
				a.deploymentsGone = append(a.deploymentsGone, k.GUID)
			}
			a.deployments = append(a.deployments, c.row...)
			a.defined = append(a.defined, c.defined...)
			a.undefined = append(a.undefined, c.undefined...)
		case storage.TaskRecord:
			if c.row == nil {
				a.tasksGone = append(a.tasksGone, k.GUID)
			}
			a.tasks = append(a.tasks, c.row...)
		}
	}
	for _, d := range it.batch.Domains {
		a.domains = append(a.domains, d.Name, expiry(a.now, d.TTL))
		a.written[storage.RecordKey{Kind: domainKey, GUID: d.Name}] = struct{}{}
	}
	for _, e := range it.events {
		a.addEvent(e)
	}
	if len(it.events) > 0 {
		it.cursor = storage.Cursor(a.newest)
	}
	a.rememberRequest(it)
}
