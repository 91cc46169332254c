package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// BeginTx begins a transaction on a connection for commits, for [Store.WithTx].
// Until it ends no process can commit, so it must be short. A store made by
// [New] takes transactions of the caller's *sql.DB as well.
func (s *Store) BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	tx, err := s.write.BeginTx(ctx, o)
	return tx, explain(s.d, "beginning a transaction", err)
}

// WithTx returns the store as seen from within a transaction of the caller on
// the same database. What it commits takes effect if and when the caller
// commits tx, together with the caller's own changes, and is gone if tx is
// rolled back. storage.Apply and its variants work on it, and so does a bbs.BBS
// without Effects: the leading control plane then carries out what is
// committed.
//
// From its first Commit on, tx keeps all other commits waiting, those of other
// processes too. So commit last, and end tx soon: PostgreSQL and MariaDB end
// and roll back a transaction that is silent for 4 s then. After an error that
// is not of package storage, tx can only be rolled back. At isolation levels
// above READ COMMITTED, a record that has changed since tx began stays a
// conflict: roll back and begin again.
//
// Close does nothing, and callers of Wait see the events a little later than
// others. Only one goroutine at a time may use it.
func (s *Store) WithTx(tx *sql.Tx) storage.Store {
	return &txStore{reader: reader{s: s, at: tx, mu: new(sync.Mutex)}}
}

type txStore struct{ reader }

func (t *txStore) View(ctx context.Context, f func(storage.Reader) error) error {
	now, err := t.Now(ctx)
	if err != nil {
		return err
	}
	return f(&reader{s: t.s, at: t.at, mu: t.mu, moment: now})
}

func (t *txStore) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	if err := b.Check(); err != nil {
		return 0, err
	}
	it, err := t.s.newItem(b)
	if err == nil {
		err = t.commit(ctx, it)
	}
	if err != nil {
		return 0, err
	}
	return it.cursor, it.err
}

// commit does for one item what a group does for many, without the beginning
// and the end of the transaction.
func (t *txStore) commit(ctx context.Context, it *item) error {
	return t.query(ctx, "committing in a transaction", func(ctx context.Context, q dialect.Querier) error {
		return t.sound(ctx, q, func(run func([]dialect.Call) error) error {
			a := &attempt{s: t.s, items: []*item{it}, joined: true}
			a.reset()
			if err := run(a.lookups(nil)); err != nil {
				return err
			}
			if a.newest < t.s.seen.Load() {
				return errShorter
			}
			if err := a.resolveAll(ctx, q); err != nil {
				return err
			}
			return run(a.writes(nil))
		})
	})
}

// sound runs f in the transaction that writes. If the log may have lost events,
// it leaves a gap first.
func (t *txStore) sound(ctx context.Context, q dialect.Querier, f func(run func([]dialect.Call) error) error) error {
	run := func(calls []dialect.Call) error { return dialect.RunEach(ctx, q, calls) }
	if err := run(t.s.txBounds); err != nil {
		return err
	}
	back, _, err := t.s.moved(ctx, q)
	if err != nil {
		return err
	}
	if !back {
		if err := f(run); !errors.Is(err, errShorter) {
			return err
		}
	}
	if err := t.s.writeGap(run, nil, nil); err != nil {
		return err
	}
	return f(run)
}

func (t *txStore) Acquire(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	return t.changeLease(ctx, acquire, l, ttl)
}

func (t *txStore) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	return t.changeLease(ctx, renew, l, ttl)
}

func (t *txStore) Release(ctx context.Context, l storage.Lease) error {
	_, err := t.changeLease(ctx, release, l, 0)
	return err
}

func (t *txStore) changeLease(ctx context.Context, verb leaseVerb, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	c, err := newLeaseChange(verb, l, ttl)
	if err != nil {
		return storage.Lease{}, err
	}
	err = t.query(ctx, "changing a lease in a transaction", func(ctx context.Context, q dialect.Querier) error {
		return t.sound(ctx, q, func(run func([]dialect.Call) error) error {
			in := leaseTransaction{s: t.s, lock: t.s.d.Lock, run: run}
			waiting, err := in.change([]*leaseChange{c})
			if err == nil && len(waiting) > 0 {
				err = errLeaseMoved
			}
			return err
		})
	})
	if err == nil {
		err = c.err
	}
	if err != nil {
		return storage.Lease{}, err
	}
	return c.lease, nil
}

func (t *txStore) Close() error { return nil }
