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

// BeginTx begins a transaction on a connection that commits have, for
// [Store.WithTx]. Until it ends no commit of any process goes ahead, so it must
// be short. A store made by [New] takes transactions of the caller's *sql.DB as
// well.
func (s *Store) BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	tx, err := s.write.BeginTx(ctx, o)
	return tx, explain(s.d, "beginning a transaction", err)
}

// WithTx is the store as seen from within a transaction of the caller's on the
// same database: what it commits is there if and when the caller commits tx,
// together with whatever else the caller does in it, and gone if tx is rolled
// back. storage.Apply and its like work on it, and so does a bbs.BBS without
// Effects: the control plane that leads then carries out what is committed.
//
// From its first Commit on, tx keeps all other commits waiting, those of other
// processes too; so commit last, and end tx soon: one that is silent for 4 s
// then is ended by a server of PostgreSQL or MariaDB, and rolled back. An error that is none of
// package storage's leaves tx of no use but to be rolled back. At isolation
// levels above READ COMMITTED a record that has changed since tx began stays a
// conflict: roll back and begin anew.
//
// Close does nothing, and those who Wait for events see them a little later
// than others. Only one goroutine at a time uses it.
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

// commit does for one item what a group does for many, but for the beginning
// and the end.
func (t *txStore) commit(ctx context.Context, it *item) error {
	return t.query(ctx, "committing in a transaction", func(q dialect.Querier) error {
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

// sound does something in the transaction that writes, behind a gap if the log
// may have gone back.
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
	err = t.query(ctx, "changing a lease in a transaction", func(q dialect.Querier) error {
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
