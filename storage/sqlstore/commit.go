package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// maxGroup is the most commits that share a transaction, maxGroupBytes about
// the most data.
const (
	maxGroup      = 256
	maxGroupBytes = 4 << 20
)

// Commit implements storage.Store.
//
// Commits that come at the same time share a transaction. One that fails has
// no part in it, and the others go on. When ctx ends while the transaction is
// under way, the batch may still be committed.
func (s *Store) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	if err := b.Check(); err != nil {
		return 0, err
	}
	it, err := s.newItem(b)
	if err != nil {
		return 0, err
	}
	if err := s.commits.do(ctx, it); err != nil {
		return 0, err
	}
	return it.cursor, it.err
}

// commitGroup commits a batch of the group, in as many transactions as it
// takes.
func (s *Store) commitGroup(items []*item) {
	for len(items) > 0 {
		n, size := 0, 0
		for n < len(items) && (n == 0 || size+items[n].size <= maxGroupBytes) {
			size += items[n].size
			n++
		}
		deferred := s.commitTogether(items[:n:n])
		items = append(deferred, items[n:]...)
	}
}

// commitTogether commits items in one transaction and tells their callers. It
// returns those that have to wait for the next transaction, as they concern
// what this one has written.
func (s *Store) commitTogether(items []*item) []*item {
	a := &attempt{s: s, items: items}
	err := s.retry(s.background, "committing", func() error { return a.onConnection() })
	if class, _ := s.d.classOf(err); err != nil && class == permanent && len(items) > 1 {
		// It may be the fault of one of them.
		for i := range items {
			s.commitTogether(items[i : i+1])
		}
		return nil
	}
	if err == nil {
		s.notify(a.newest)
	}
	for _, it := range items {
		if err != nil {
			it.cursor, it.err = 0, err
		}
		if err != nil || !a.deferred[it] {
			close(it.done)
		}
	}
	var deferred []*item
	for _, it := range items {
		if a.deferred[it] {
			deferred = append(deferred, it)
		}
	}
	return deferred
}

// An attempt is one transaction of a group.
type attempt struct {
	s     *Store
	items []*item
	// doubt is the outcome of an earlier try whose connection was lost during
	// the commit: it may be the truth.
	doubt *outcome

	// joined: the transaction is the caller's. Look-ups lock what they find, as
	// others may see an earlier moment.
	joined bool

	newest, oldest, now int64
	tags                map[storage.RecordKey]executor.ModificationTag
	leases              map[leaseID]*leaseRow
	requests            map[string]storage.Cursor
	committed           bool // the doubt is resolved: it happened

	written  map[storage.RecordKey]struct{}
	deferred map[*item]bool
	token    int64
	segments []segment
	aside    []call // moves records into quarantine

	lrps, lrpsGone, deployments, deploymentsGone, defined, undefined []any
	tasks, tasksGone, domains, leaseRows, requestRows                []any
}

type leaseID struct{ kind, name string }

// An outcome is what a transaction would have told the callers.
type outcome struct {
	token    int64
	events   int64 // how many it had
	since    int64 // an event before them
	found    int64 // the last of them in the log, or the number of markers
	newest   int64 // the last of them as far as the attempt knew
	cursors  []storage.Cursor
	errs     []error
	leases   []storage.Lease
	deferred map[*item]bool
}

// A segment is a row of the log: several events that follow one another.
type segment struct {
	n    int64
	data []byte
}

// Bounds of a segment.
const (
	maxSegment      = 256
	maxSegmentBytes = 256 << 10
)

// Kinds of keys that are no records.
const (
	domainKey storage.RecordKind = 100 + iota
	leaseKey
	requestKey
)

func (a *attempt) reset() {
	*a = attempt{s: a.s, items: a.items, doubt: a.doubt, joined: a.joined}
	a.token = rand.Int64()
	a.tags = make(map[storage.RecordKey]executor.ModificationTag, len(a.items))
	a.written = make(map[storage.RecordKey]struct{}, 2*len(a.items))
	a.leases = make(map[leaseID]*leaseRow)
	a.requests = make(map[string]storage.Cursor)
	a.deferred = make(map[*item]bool)
}

// onConnection runs the whole transaction.
func (a *attempt) onConnection() (err error) {
	s, ctx := a.s, a.s.background
	c, err := s.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			if _, rollbackErr := c.ExecContext(ctx, "ROLLBACK"); rollbackErr != nil && !isNoTransaction(rollbackErr) {
				discard(c)
			}
		}
		c.Close() // returns it to the pool
	}()
	a.reset()
	calls := make([]call, 0, 16)
	for _, statement := range s.beginWrite {
		calls = append(calls, call{query: statement})
	}
	if a.isPlain() {
		err := a.guess(ctx, c, calls)
		if !s.d.isGuard(err) {
			return err
		}
		if _, err := c.ExecContext(ctx, "ROLLBACK"); err != nil {
			return err
		}
		a.reset()
	}
	if err := s.run(ctx, c, a.lookups(calls)); err != nil {
		return err
	}
	if a.committed {
		a.restore()
		_, err := c.ExecContext(ctx, "ROLLBACK")
		return err
	}
	if err := a.resolveAll(ctx, c); err != nil {
		return err
	}
	writes := a.writes(make([]call, 0, 16))
	if len(writes) == 0 {
		_, err := c.ExecContext(ctx, "ROLLBACK")
		return err
	}
	err = s.run(ctx, c, append(writes, call{query: "COMMIT"}))
	if class, _ := s.d.classOf(err); err != nil && class == lost {
		a.doubt = a.outcome()
	}
	if err == nil {
		a.swept()
	}
	return err
}

// isNoTransaction reports whether a ROLLBACK failed because the transaction
// was over already, as it is after some errors of SQLite.
func isNoTransaction(err error) bool {
	return err != nil && err.Error() == "cannot rollback - no transaction is active"
}

// lookups adds the statements that lock the log, and so keep every other
// commit out, and read what the items are about.
func (a *attempt) lookups(calls []call) []call {
	q := &a.s.q
	calls = append(calls,
		call{query: q.lockLog, scan: func(r *sql.Rows) error { return r.Scan(&a.newest, &a.oldest) }},
		call{query: q.clock, scan: func(r *sql.Rows) error { return r.Scan(&a.now) }})
	if d := a.doubt; d != nil {
		find, args := q.findMarker, []any{d.token}
		if d.events > 0 {
			find, args = q.findSegment, []any{d.since, d.token}
		}
		calls = append(calls, call{query: find, args: args, scan: func(r *sql.Rows) error {
			err := r.Scan(&d.found)
			a.committed = d.found > 0
			return err
		}})
	}
	var lrps, deployments, tasks, leases, requests []any
	for _, it := range a.items {
		for i := range it.records {
			switch k := &it.records[i].key; k.Kind {
			case storage.ActualLRPRecord:
				lrps = append(lrps, k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence))
			case storage.DeploymentRecord:
				deployments = append(deployments, k.GUID)
			case storage.TaskRecord:
				tasks = append(tasks, k.GUID)
			}
		}
		if f := it.batch.Fence; f != (storage.Fence{}) {
			leases = append(leases, f.Kind, f.Name)
		}
		if l := it.lease; l != nil {
			leases = append(leases, l.lease.Kind, l.lease.Name)
		}
		if id := it.batch.RequestID; id != "" {
			requests = append(requests, id)
		}
	}
	from := len(calls)
	calls = q.lookLRPs.calls(calls, lrps, func(r *sql.Rows) error {
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
	calls = q.lookDeployments.calls(calls, deployments, scanTag(storage.DeploymentRecord))
	calls = q.lookTasks.calls(calls, tasks, scanTag(storage.TaskRecord))
	calls = q.lookLeases.calls(calls, leases, func(r *sql.Rows) error {
		var id leaseID
		row := new(leaseRow)
		err := r.Scan(&id.kind, &id.name, &row.owner, &row.epoch, &row.expires, &row.value)
		a.leases[id] = row
		return err
	})
	calls = q.lookRequests.calls(calls, requests, func(r *sql.Rows) error {
		var id string
		var cursor int64
		err := r.Scan(&id, &cursor)
		a.requests[id] = storage.Cursor(cursor)
		return err
	})
	if a.joined && a.s.d.lock != "" {
		for i := range calls[from:] {
			calls[from+i].query += a.s.d.lock
		}
	}
	return calls
}

// resolveAll decides about the items one after another.
func (a *attempt) resolveAll(ctx context.Context, q querier) error {
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
		if err == nil && it.lease != nil {
			err = a.changeLease(it)
		}
		var databaseError *Error
		if errors.As(err, &databaseError) {
			return databaseError.Err
		}
		if it.err = err; err == nil {
			a.accept(it)
		}
	}
	return nil
}

// concernsWritten reports whether it looks at or writes what an item before it
// writes in this transaction.
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
	f := it.batch.Fence
	return f != (storage.Fence{}) && is(leaseRecord(f.Kind, f.Name)) ||
		it.lease != nil && is(leaseRecord(it.lease.lease.Kind, it.lease.lease.Name)) ||
		it.batch.RequestID != "" && is(storage.RecordKey{Kind: requestKey, GUID: it.batch.RequestID})
}

func leaseRecord(kind, name string) storage.RecordKey {
	return storage.RecordKey{Kind: leaseKey, GUID: kind, DefinitionID: name}
}

// refusal is why the item cannot be committed, or nil.
func (a *attempt) refusal(it *item) error {
	if id := it.batch.RequestID; id != "" {
		if cursor, before := a.requests[id]; before {
			return &storage.DuplicateError{RequestID: id, Cursor: cursor}
		}
	}
	if f := it.batch.Fence; f != (storage.Fence{}) {
		if row := a.leases[leaseID{f.Kind, f.Name}]; row == nil || row.epoch != f.Epoch || row.owner == "" {
			return fenced(f, row)
		}
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

// quarantine makes sure that what the item moves away cannot be decoded, and
// prepares the move.
func (a *attempt) quarantine(ctx context.Context, q querier, it *item) error {
	s := a.s
	for _, entry := range it.batch.Quarantine {
		k := entry.Key
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
		args := []any{a.now, entry.Reason, k.GUID}
		switch k.Kind {
		case storage.ActualLRPRecord:
			key := []any{k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence)}
			a.aside = append(a.aside, call{query: s.q.asideLRP, args: append(args[:2:2], key...)})
			a.lrpsGone = append(a.lrpsGone, key...)
		case storage.DeploymentRecord:
			a.aside = append(a.aside, call{query: s.q.asideDeployment, args: args}, call{query: s.q.asideDefinition, args: args})
			a.deploymentsGone = append(a.deploymentsGone, k.GUID)
		case storage.TaskRecord:
			a.aside = append(a.aside, call{query: s.q.asideTask, args: args})
			a.tasksGone = append(a.tasksGone, k.GUID)
		}
		a.written[k] = struct{}{}
	}
	return nil
}

func (a *attempt) changeLease(it *item) error {
	l := it.lease
	wanted := l.lease
	id := leaseID{wanted.Kind, wanted.Name}
	row, err := l.apply(a.leases[id], a.now)
	if row != nil {
		a.leases[id] = row
		a.leaseRows = append(a.leaseRows, id.kind, id.name, row.owner, row.epoch, row.expires, row.value)
		a.written[leaseRecord(id.kind, id.name)] = struct{}{}
	}
	return err
}

// accept adds what the item writes.
func (a *attempt) accept(it *item) {
	for i := range it.records {
		c := &it.records[i]
		if c.check {
			continue
		}
		a.written[c.key] = struct{}{}
		k := &c.key
		switch k.Kind {
		case storage.ActualLRPRecord:
			if c.row == nil {
				a.lrpsGone = append(a.lrpsGone, k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence))
			}
			a.lrps = append(a.lrps, c.row...)
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
	if id := it.batch.RequestID; id != "" {
		a.requestRows = append(a.requestRows, id, int64(it.cursor), a.now)
		a.written[storage.RecordKey{Kind: requestKey, GUID: id}] = struct{}{}
	}
}

func (a *attempt) addEvent(data []byte) {
	if n := len(a.segments); n == 0 || a.segments[n-1].n == maxSegment || len(a.segments[n-1].data)+len(data) > maxSegmentBytes {
		size := 0
		for _, it := range a.items {
			size += it.size
		}
		a.segments = append(a.segments, segment{data: make([]byte, 0, min(size, maxSegmentBytes))})
	}
	last := &a.segments[len(a.segments)-1]
	last.n++
	last.data = appendEvent(last.data, data)
	a.newest++
}

// recordWrites adds the statements that write what was accepted, but for the
// events.
func (a *attempt) recordWrites(calls []call) []call {
	q := &a.s.q
	calls = append(calls, a.aside...)
	calls = q.deleteLRPs.calls(calls, a.lrpsGone, nil)
	calls = q.upsertLRPs.calls(calls, a.lrps, nil)
	calls = q.deleteDeployments.calls(calls, a.deploymentsGone, nil)
	calls = q.deleteAllDefinitions.calls(calls, a.deploymentsGone, nil)
	calls = q.deleteDefinitions.calls(calls, a.undefined, nil)
	calls = q.upsertDeployments.calls(calls, a.deployments, nil)
	calls = q.insertDefinitions.calls(calls, a.defined, nil)
	calls = q.deleteTasks.calls(calls, a.tasksGone, nil)
	calls = q.upsertTasks.calls(calls, a.tasks, nil)
	calls = q.upsertDomains.calls(calls, a.domains, nil)
	calls = q.upsertLeases.calls(calls, a.leaseRows, nil)
	return q.insertRequests.calls(calls, a.requestRows, nil)
}

// writes adds the statements that write all that was accepted; none if nothing
// was.
func (a *attempt) writes(calls []call) []call {
	q := &a.s.q
	calls = a.recordWrites(calls)
	if len(a.segments) > 0 {
		rows := make([]any, 0, 5*len(a.segments))
		last := a.newest
		for i := len(a.segments) - 1; i >= 0; i-- {
			rows = append(rows, last, a.segments[i].n, a.now, a.token, a.segments[i].data)
			last -= a.segments[i].n
		}
		calls = q.insertEvents.calls(calls, rows, nil)
		a.oldest = max(a.oldest, a.newest-int64(a.s.options.Events)+1)
		calls = append(calls, call{query: q.setLog, args: []any{a.newest, a.oldest}})
	} else if len(calls) > 0 && !a.joined {
		calls = append(calls, call{query: q.insertMarker, args: []any{a.token, a.now}})
	}
	if len(calls) > 0 && !a.joined {
		calls = a.sweep(calls)
	}
	return calls
}

const sweepEvery = int64(time.Minute)

// sweep adds statements, now and then, that delete what is too old.
func (a *attempt) sweep(calls []call) []call {
	s := a.s
	if s.trimDue(a.oldest) {
		calls = append(calls, call{query: s.q.trimEvents, args: []any{a.oldest}})
	}
	if age := a.now - s.swept; age > sweepEvery || age < 0 {
		calls = append(calls, call{query: s.q.sweepRequests, args: []any{a.now - int64(s.options.Requests)}},
			call{query: s.q.sweepMarkers, args: []any{a.now - int64(s.options.Requests)}})
	}
	return calls
}

// trimDue reports whether enough events lie before the oldest that counts.
func (s *Store) trimDue(oldest int64) bool {
	return s.trimmed < 0 || oldest-s.trimmed > max(16, int64(s.options.Events)/16)
}

// swept notes that what sweep has added is done.
func (a *attempt) swept() {
	s := a.s
	if s.trimDue(a.oldest) {
		s.trimmed = a.oldest
	}
	if age := a.now - s.swept; age > sweepEvery || age < 0 {
		s.swept = a.now
	}
}

// outcome is what the items were told by this attempt.
func (a *attempt) outcome() *outcome {
	o := &outcome{token: a.token, newest: a.newest, since: a.s.newest.Load(), deferred: a.deferred}
	for i := range a.segments {
		o.events += a.segments[i].n
	}
	for _, it := range a.items {
		o.cursors, o.errs = append(o.cursors, it.cursor), append(o.errs, it.err)
		lease := storage.Lease{}
		if it.lease != nil {
			lease = it.lease.lease
		}
		o.leases = append(o.leases, lease)
	}
	return o
}

// restore tells the items what the attempt in doubt has told them.
func (a *attempt) restore() {
	d := a.doubt
	a.newest, a.deferred = d.newest, d.deferred
	moved := storage.Cursor(0)
	if d.events > 0 {
		a.newest, moved = d.found, storage.Cursor(d.found-d.newest)
	}
	for i, it := range a.items {
		it.cursor, it.err = d.cursors[i], d.errs[i]
		if it.cursor > 0 {
			it.cursor += moved
		}
		if it.lease != nil {
			it.lease.lease = d.leases[i]
		}
	}
}
