package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// Changes of leases go through the same groups as commits, so that a commit
// and the acquisition that fences it off are never under way at once.

type leaseVerb uint8

const (
	acquire leaseVerb = iota
	renew
	release
)

type leaseChange struct {
	verb  leaseVerb
	lease storage.Lease // what was asked for; then what came of it
	ttl   time.Duration
}

// A leaseRow is a lease as it is stored. It has no owner after a release, and
// the release is when it expired.
//
// The row without kind, name and owner is that of all leases which the store
// has forgotten: its epoch is at least the greatest of theirs. What is acquired
// anew begins above it, so no epoch comes twice.
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
	it, err := newLeaseItem(verb, l, ttl)
	if err == nil {
		err = s.commits.do(ctx, it)
	}
	if err == nil {
		err = it.err
	}
	if err != nil {
		return storage.Lease{}, err
	}
	return it.lease.lease, nil
}

func newLeaseItem(verb leaseVerb, l storage.Lease, ttl time.Duration) (*item, error) {
	if verb != release {
		if err := storage.CheckLease(&l, ttl); err != nil {
			return nil, err
		}
	}
	l.Value = append([]byte{}, l.Value...)
	return &item{ticket: newTicket(), lease: &leaseChange{verb, l, ttl}, size: len(l.Value)}, nil
}

// apply decides about the change, with the row of the lease, if it has one,
// and that of the forgotten leases. It returns the row to write, or nil.
func (c *leaseChange) apply(row, forgotten *leaseRow, now int64) (*leaseRow, error) {
	l := &c.lease
	if c.verb == acquire {
		if forgotten == nil {
			return nil, errNoFloor
		}
		next := leaseRow{owner: l.Owner, epoch: forgotten.epoch + 1, expires: expiry(now, c.ttl), value: l.Value}
		if row != nil {
			if row.owner != "" && row.owner != l.Owner && row.expires > now {
				return nil, &storage.HeldError{Lease: row.lease(l.Kind, l.Name)}
			}
			next.epoch = row.epoch + 1
		}
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

// errNoFloor: without that row an epoch might be used twice.
var errNoFloor = errors.New("sqlstore: the table of leases has lost the row without kind and name, which keeps epochs from being used twice; restore it with an epoch greater than any before")

func (r *leaseRow) lease(kind, name string) storage.Lease {
	return storage.Lease{
		Kind: kind, Name: name, Owner: r.owner, Epoch: r.epoch, Value: append([]byte{}, r.value...),
		ExpiresAt: executor.Instant(r.expires),
	}
}

func fenced(f storage.Fence, row *leaseRow) error {
	e := &storage.FencedError{Fence: f}
	if row != nil {
		e.Epoch = row.epoch
	}
	return e
}

// Leases implements storage.Reader.
func (r *reader) Leases(ctx context.Context, kind string) iter.Seq2[storage.Lease, error] {
	s := r.s
	return list(ctx, r, "listing leases", true, func() page[storage.Lease] {
		var key []any
		const n = firstPage
		return func(ctx context.Context, q querier) (entries []entry[storage.Lease], last bool, err error) {
			w := where{d: s.d}
			if isImpossible(kind) {
				return nil, true, nil
			}
			w.add("kind = ?", kind)
			w.add("owner <> ''")
			if now := r.moment; !now.IsZero() {
				w.add("expires_at > ?", now.UnixNano())
			} else {
				w.add("expires_at > " + s.d.clock)
			}
			w.after([]string{"name"}, key)
			query := s.d.rebind("SELECT name, owner, epoch, expires_at, value FROM " + s.table("leases") + w.String() +
				" ORDER BY name LIMIT " + strconv.Itoa(n))
			rows, err := q.QueryContext(ctx, query, w.args...)
			if err != nil {
				return nil, false, err
			}
			err = scanAll(rows, func(rows *sql.Rows) error {
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
