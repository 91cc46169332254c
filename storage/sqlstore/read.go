package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// A reader implements storage.Reader: for the Store itself, for a View, and
// for a caller's transaction.
type reader struct {
	s *Store
	// at is the transaction of its queries. It is nil in the Store's own
	// reader, which takes a connection for each query.
	at dialect.Querier
	// moment is the time of a View.
	moment time.Time
	// mu is held during a query, because lists read ahead. It is nil without at.
	mu   *sync.Mutex
	over bool
}

var errOver = errors.New("sqlstore: the View is over")

// query runs one statement on its own. On a connection of the store it is
// repeated if necessary.
func (r *reader) query(ctx context.Context, op string, f func(ctx context.Context, q dialect.Querier) error) error {
	if err := r.s.usable(ctx); err != nil {
		return err
	}
	if r.at == nil {
		return r.s.ask(ctx, op, f)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return errOver
	}
	err := r.s.answered(ctx, func(ctx context.Context) error { return f(ctx, r.at) })
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = errors.Join(ctx.Err(), err)
	}
	return explain(r.s.d, op, err)
}

// View implements storage.Store.
func (s *Store) View(ctx context.Context, f func(storage.Reader) error) error {
	return s.view(ctx, func(r *reader) error { return f(r) })
}

func (s *Store) view(ctx context.Context, f func(*reader) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.work.Done()
	var c *sql.Conn
	r := &reader{s: s, mu: new(sync.Mutex)}
	err := s.retry(ctx, "beginning a view", func() (err error) {
		return s.answered(ctx, func(ctx context.Context) error {
			if c, err = s.read.Conn(ctx); err != nil {
				return errNoConn(err)
			}
			if err = r.start(ctx, c); err != nil {
				dialect.Discard(c)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	defer func() {
		r.mu.Lock()
		r.over = true
		r.mu.Unlock()
		err := s.answered(context.WithoutCancel(ctx), func(ctx context.Context) error {
			_, err := c.ExecContext(ctx, "ROLLBACK")
			return err
		})
		if err != nil {
			dialect.Discard(c) // it has written nothing
		}
		c.Close()
	}()
	return f(r)
}

// start begins the transaction. Its first query fixes the moment that the View
// sees.
func (r *reader) start(ctx context.Context, c *sql.Conn) error {
	for _, statement := range r.s.beginRead {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	r.at = c
	var newest, oldest, gap, now int64
	if err := dialect.QueryRow(ctx, c, r.s.q.log, &newest, &oldest, &gap, &now); err != nil {
		return err
	}
	r.moment = executor.Instant(now)
	return nil
}

// Now implements storage.Reader.
func (r *reader) Now(ctx context.Context) (time.Time, error) {
	if err := r.s.usable(ctx); err != nil {
		return time.Time{}, err
	}
	if !r.moment.IsZero() {
		return r.moment, nil
	}
	var now int64
	err := r.query(ctx, "reading the clock", func(ctx context.Context, q dialect.Querier) error { return dialect.QueryRow(ctx, q, r.s.q.clock, &now) })
	return executor.Instant(now), err
}

// Log implements storage.Reader.
func (r *reader) Log(ctx context.Context) (storage.Extent, error) {
	var newest, oldest, gap, now int64
	known := r.s.newest.Load()
	err := r.query(ctx, "reading the log's extent", func(ctx context.Context, q dialect.Querier) error {
		return dialect.QueryRow(ctx, q, r.s.q.log, &newest, &oldest, &gap, &now)
	})
	if r.at == nil && err == nil { // a transaction may still be rolled back
		r.s.saw(newest)
		if newest < known { // the log went back: nobody should wait for lost events
			r.s.newest.CompareAndSwap(known, newest)
		}
	}
	// Old events are deleted many at once. Some of those that are still there
	// do not count any more.
	if first := newest - int64(r.s.options.Events) + 1; first >= gap {
		oldest = max(oldest, first)
	}
	return storage.Extent{Oldest: storage.Cursor(oldest), Newest: storage.Cursor(newest)}, err
}

// An entry is one element of a list: a value, or the error in its place.
type entry[T any] struct {
	value T
	err   error
}

// corrupt returns the entry for a record that cannot be decoded; if a key is
// missing, it returns an error that ends the list.
func corrupt[T any](key storage.RecordKey, err error) (e entry[T], end error) {
	if errors.Is(err, ErrKey) {
		return e, err
	}
	e.err = &storage.CorruptError{Key: key, Err: err}
	return e, nil
}

// one reads one record. query returns the zero entry if there is none.
func one[T any](ctx context.Context, r *reader, op string, k storage.RecordKey,
	query func(ctx context.Context, q dialect.Querier, guid string) (entry[*T], error),
) (*T, error) {
	var e entry[*T]
	err := r.query(ctx, op, func(ctx context.Context, q dialect.Querier) (err error) {
		if !isImpossible(k.GUID) {
			e, err = query(ctx, q, k.GUID)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case e.err != nil:
		return nil, e.err
	case e.value == nil:
		return nil, &storage.NotFoundError{Key: k}
	}
	return e.value, nil
}

// A page reads the next part of a list, and whether it was the last. A part ends after
// so many rows, or so many bytes.
type page[T any] func(ctx context.Context, q dialect.Querier) (entries []entry[T], last bool, err error)

// list makes a list of pages, which all see one moment. The next page is read
// while the caller uses this one. If whole is true, a page is one statement,
// which sees one moment by itself.
func list[T any](ctx context.Context, r *reader, op string, whole bool, begin func() page[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		if r.at == nil && whole {
			var entries []entry[T]
			last := false
			err := r.query(ctx, op, func(ctx context.Context, q dialect.Querier) (err error) {
				entries, last, err = begin()(ctx, q)
				return err
			})
			if err != nil {
				yield(zero, err)
				return
			}
			if last {
				yieldAll(ctx, entries, yield)
				return
			}
		}
		if r.at != nil {
			yieldPages(ctx, r, op, yield, begin)
			return
		}
		if r.s.single {
			listAll(ctx, r, op, yield, begin)
			return
		}
		stopped := false
		err := r.s.view(ctx, func(v *reader) error {
			yieldPages(ctx, v, op, func(value T, err error) bool {
				stopped = !yield(value, err)
				return !stopped
			}, begin)
			return nil
		})
		if err != nil && !stopped {
			yield(zero, err)
		}
	}
}

// listAll reads the list to its end before it yields anything, so that the one
// connection is free by then.
func listAll[T any](ctx context.Context, r *reader, op string, yield func(T, error) bool, begin func() page[T]) {
	var all []entry[T]
	err := r.s.view(ctx, func(v *reader) error {
		yieldPages(ctx, v, op, func(value T, err error) bool {
			all = append(all, entry[T]{value, err})
			return true
		}, begin)
		return nil
	})
	if err != nil {
		all = append(all, entry[T]{err: err})
	}
	yieldAll(ctx, all, yield)
}

// yieldAll yields entries as long as ctx lasts, and reports whether more are
// wanted.
func yieldAll[T any](ctx context.Context, entries []entry[T], yield func(T, error) bool) bool {
	for i := range entries {
		if err := ctx.Err(); err != nil {
			var zero T
			yield(zero, err)
			return false
		}
		if !yield(entries[i].value, entries[i].err) {
			return false
		}
	}
	return true
}

// yieldPages yields the pages of a list in a View, reading ahead.
func yieldPages[T any](ctx context.Context, r *reader, op string, yield func(T, error) bool, begin func() page[T]) {
	type read struct {
		entries []entry[T]
		last    bool
		err     error
	}
	next := begin()
	fetch := func() (p read) {
		p.err = r.query(ctx, op, func(ctx context.Context, q dialect.Querier) (err error) {
			p.entries, p.last, err = next(ctx, q)
			return err
		})
		return p
	}
	var ahead chan read
	defer func() {
		if ahead != nil {
			<-ahead
		}
	}()
	for p := fetch(); ; {
		if p.err != nil {
			var zero T
			yield(zero, p.err)
			return
		}
		if !p.last {
			pending := make(chan read, 1)
			ahead = pending
			go func() { pending <- fetch() }()
		}
		if !yieldAll(ctx, p.entries, yield) || p.last {
			return
		}
		p = <-ahead
		ahead = nil
	}
}
