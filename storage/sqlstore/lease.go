package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/sqlstore/internal/group"
)

// Leases change without the lock of the log, so a process that holds that lock
// keeps no leader from being replaced. A change reads the lease, decides, and
// writes it in one round trip if the lease still is what was read; otherwise it
// starts again. Nothing is locked while a client thinks. A commit with a fence
// locks the lease that it names until its end, so the commit and an acquisition
// that fences it off never run at once.
//
// A transaction of the store first locks the row of the deleted leases, then
// leases in the order of their names, and never the log.

type leaseVerb uint8

const (
	acquire leaseVerb = iota
	renew
	release
)

// A leaseChange is one change of a lease on its way through a group.
type leaseChange struct {
	group.Ticket
	verb  leaseVerb
	lease storage.Lease // what was asked for; then what came of it
	ttl   time.Duration
	err   error
}

func (c *leaseChange) id() leaseID { return leaseID{c.lease.Kind, c.lease.Name} }

type leaseID struct{ kind, name string }

// maxLeases is how many leases change in one transaction.
const maxLeases = 64

// A leaseRow is a stored lease. After a release it has no owner, and its expiry
// is the time of the release.
//
// The row without kind, name and owner stands for all leases that the store has
// deleted, or may have lost with the newest events: its epoch is at least the
// greatest of theirs. Every new epoch begins above it, so no epoch is used
// twice.
type leaseRow struct {
	owner   string
	epoch   int64
	expires int64
	value   []byte
}

// Acquire implements storage.Leaser.
func (s *Store) Acquire(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	return s.changeLease(ctx, acquire, l, ttl)
}

// Renew implements storage.Leaser.
func (s *Store) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	return s.changeLease(ctx, renew, l, ttl)
}

// Release implements storage.Leaser.
func (s *Store) Release(ctx context.Context, l storage.Lease) error {
	_, err := s.changeLease(ctx, release, l, 0)
	return err
}

func (s *Store) changeLease(ctx context.Context, verb leaseVerb, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	c, err := newLeaseChange(verb, l, ttl)
	if err == nil {
		err = s.leases.Do(ctx, c)
	}
	if err == nil {
		err = c.err
	}
	if err != nil {
		return storage.Lease{}, err
	}
	return c.lease, nil
}

func newLeaseChange(verb leaseVerb, l storage.Lease, ttl time.Duration) (*leaseChange, error) {
	if verb != release {
		if err := storage.CheckLease(&l, ttl); err != nil {
			return nil, err
		}
	}
	l.Value = append([]byte{}, l.Value...)
	return &leaseChange{Ticket: group.NewTicket(), verb: verb, lease: l, ttl: ttl}, nil
}

// changeLeases makes the changes of a batch and finishes its members. Each
// change is idempotent: the same owner acquires and renews again and again. So
// a lost connection leaves no doubt. If a lost statement reaches the server
// later, it does nothing, because the lease has another version by then.
func (s *Store) changeLeases(batch []*leaseChange) {
	slices.SortFunc(batch, func(a, b *leaseChange) int {
		return cmp.Or(strings.Compare(a.lease.Kind, b.lease.Kind), strings.Compare(a.lease.Name, b.lease.Name))
	})
	waiting := batch
	err := s.retry(background, "changing a lease", func() error {
		return s.onConn(s.lease, func(ctx context.Context, c *sql.Conn) error {
			if err := s.identify(ctx, c); err != nil {
				return err
			}
			t := leaseTransaction{s: s, begin: s.beginCalls(), end: []dialect.Call{{Query: "COMMIT"}}, sweeps: true}
			t.run = func(calls []dialect.Call) error { return s.run(ctx, c, calls) }
			var err error
			if waiting, err = t.change(waiting); err != nil {
				s.rollBack(ctx, c, err)
				if errors.Is(err, errShorter) {
					err = errors.Join(s.leaveGap(ctx, c), errShorter)
				}
			} else if len(waiting) > 0 {
				err = errLeaseMoved
			}
			return err
		})
	})
	for _, c := range waiting {
		c.err = err
	}
	for _, c := range batch {
		c.Finish()
	}
}

// errLeaseMoved says that a lease has changed after it was read.
const errLeaseMoved = dialect.TransientError("others are changing the lease")

// A leaseTransaction changes leases, in a transaction of the store or of the
// caller.
type leaseTransaction struct {
	s          *Store
	run        func([]dialect.Call) error
	begin, end []dialect.Call
	lock       string // makes reading lock the leases
	sweeps     bool
}

// change makes the changes that meet no conflict. It returns the others.
func (t *leaseTransaction) change(changes []*leaseChange) (waiting []*leaseChange, err error) {
	var newest, oldest, gap, now int64
	seen := t.s.seen.Load()
	found, wanted, written := make(leaseRows), make(leaseRows), make(leaseRows)
	calls := []dialect.Call{{Query: t.s.q.log, Scan: func(r *sql.Rows) error { return r.Scan(&newest, &oldest, &gap, &now) }}}
	if err := t.run(t.look(calls, changes, found)); err != nil {
		return changes, err
	}
	if newest < seen && t.lock != "" { // the caller's transaction may see an earlier moment
		if err := t.run([]dialect.Call{{Query: t.s.q.lockLog, Scan: func(r *sql.Rows) error { return r.Scan(&newest, &oldest) }}}); err != nil {
			return changes, err
		}
	}
	if newest < seen {
		return changes, errShorter
	}
	var tried []*leaseChange
	var writes []dialect.Call
	for _, c := range changes {
		id := c.id()
		if wanted[id] != nil {
			waiting = append(waiting, c)
			continue
		}
		var row *leaseRow
		if row, c.err = c.apply(found[id], found[leaseID{}], now); row != nil {
			tried, wanted[id] = append(tried, c), row
			writes = append(writes, t.s.q.writeLease(id, found, row))
		}
	}
	if len(tried) == 0 {
		return waiting, nil
	}
	calls = slices.Clone(t.begin)
	if t.sweeps {
		calls = t.s.sweepLeases(calls, now)
	}
	calls = t.look(append(calls, writes...), tried, written)
	if err := t.run(append(calls, t.end...)); err != nil {
		return changes, err
	}
	if t.sweeps {
		t.s.sweptLeases(now)
	}
	for _, c := range tried {
		if !written[c.id()].equal(wanted[c.id()]) {
			waiting = append(waiting, c)
		}
	}
	return waiting, nil
}

type leaseRows map[leaseID]*leaseRow

// look adds statements that read the leases of the changes.
func (t *leaseTransaction) look(calls []dialect.Call, changes []*leaseChange, found leaseRows) []dialect.Call {
	keys := []any{"", ""} // the row of the forgotten ones
	for _, c := range changes {
		if id := c.id(); !isImpossible(id.kind) && !isImpossible(id.name) {
			keys = append(keys, id.kind, id.name)
		}
	}
	from := len(calls)
	calls = t.s.q.lookLeases.Calls(calls, keys, found.scan)
	for i := range calls[from:] {
		calls[from+i].Query += t.lock
	}
	return calls
}

func (rows leaseRows) scan(r *sql.Rows) error {
	var id leaseID
	row := new(leaseRow)
	err := r.Scan(&id.kind, &id.name, &row.owner, &row.epoch, &row.expires, &row.value)
	rows[id] = row
	return err
}

// equal reports whether both are the same version of a lease.
func (r *leaseRow) equal(other *leaseRow) bool {
	return r != nil && r.owner == other.owner && r.epoch == other.epoch && r.expires == other.expires && bytes.Equal(r.value, other.value)
}

// writeLease writes a lease if neither it nor the row of the deleted leases has
// changed since they were read.
func (q *queries) writeLease(id leaseID, found leaseRows, row *leaseRow) dialect.Call {
	if before := found[id]; before != nil {
		return dialect.Call{Query: q.updateLease, Args: []any{row.owner, row.epoch, row.expires, row.value, id.kind, id.name, before.epoch, before.expires}}
	}
	return dialect.Call{Query: q.insertLease, Args: []any{id.kind, id.name, row.owner, row.epoch, row.expires, row.value, found[leaseID{}].epoch}}
}

// sweepLeases adds statements that delete leases that ended long ago, if that
// is due.
func (s *Store) sweepLeases(calls []dialect.Call, now int64) []dialect.Call {
	if !sweepDue(now, s.leasesSwept) {
		return calls
	}
	ended := []any{now - int64(storage.KeepFor)}
	return append(calls, dialect.Call{Query: s.q.raiseEpoch, Args: ended}, dialect.Call{Query: s.q.sweepLeases, Args: ended})
}

func (s *Store) sweptLeases(now int64) {
	if sweepDue(now, s.leasesSwept) {
		s.leasesSwept = now
	}
}

// apply decides about the change. It gets the row of the lease, if any, and
// that of the deleted leases. It returns the row to write, or nil.
func (c *leaseChange) apply(row, forgotten *leaseRow, now int64) (*leaseRow, error) {
	l := &c.lease
	if c.verb == acquire {
		if forgotten == nil {
			return nil, errNoFloor
		}
		next := leaseRow{owner: l.Owner, epoch: forgotten.epoch, expires: expiry(now, c.ttl), value: l.Value}
		if row != nil {
			if row.owner != "" && row.owner != l.Owner && row.expires > now {
				return nil, &storage.HeldError{Lease: row.lease(l.Kind, l.Name)}
			}
			next.epoch = max(row.epoch, forgotten.epoch)
		}
		next.epoch++
		*l = next.lease(l.Kind, l.Name)
		return &next, nil
	}
	if row == nil || row.epoch != l.Epoch || c.verb == renew && row.owner == "" {
		return nil, fenced(l.Fence(), row)
	}
	next := leaseRow{epoch: row.epoch, expires: now, value: []byte{}}
	if c.verb == renew {
		next = leaseRow{owner: row.owner, epoch: row.epoch, expires: expiry(now, c.ttl), value: l.Value}
	} else if row.owner == "" {
		return nil, nil
	}
	*l = next.lease(l.Kind, l.Name)
	return &next, nil
}

// errNoFloor says that the row of the deleted leases is missing. Without it, an
// epoch might be used twice.
var errNoFloor = errors.New("sqlstore: the table of leases has lost the row without kind and name, which keeps epochs from being used twice; restore it with an epoch greater than any before")

func (r *leaseRow) lease(kind, name string) storage.Lease {
	return storage.Lease{
		Kind: kind, Name: name, Owner: r.owner, Epoch: r.epoch, Value: append([]byte{}, r.value...),
		ExpiresAt: executor.Instant(r.expires),
	}
}

// Leases implements storage.Reader.
func (r *reader) Leases(ctx context.Context, kind string) iter.Seq2[storage.Lease, error] {
	s := r.s
	return list(ctx, r, "listing leases", true, func() page[storage.Lease] {
		var key []any
		const n = firstPage
		return func(ctx context.Context, q dialect.Querier) (entries []entry[storage.Lease], last bool, err error) {
			w := where{d: s.d}
			if isImpossible(kind) {
				return nil, true, nil
			}
			w.add("kind = ?", kind)
			w.add("owner <> ''")
			if now := r.moment; !now.IsZero() {
				w.add("expires_at > ?", now.UnixNano())
			} else {
				w.add("expires_at > " + s.d.Clock)
			}
			w.after([]string{"name"}, key)
			query := s.d.Rebind("SELECT name, owner, epoch, expires_at, value FROM " + s.table("leases") + w.String() +
				" ORDER BY name LIMIT " + strconv.Itoa(n))
			rows, err := q.QueryContext(ctx, query, w.args...)
			if err != nil {
				return nil, false, err
			}
			err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
				var row leaseRow
				var name string
				err := rows.Scan(&name, &row.owner, &row.epoch, &row.expires, &row.value)
				entries = append(entries, entry[storage.Lease]{value: row.lease(kind, name)})
				key = []any{name}
				return err
			})
			return entries, len(entries) < n, err
		}
	})
}
