package sqlstore

import (
	"context"
	"database/sql"
	"iter"
	"strconv"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// Events implements storage.Reader.
func (r *reader) Events(ctx context.Context, after storage.Cursor, f storage.EventFilter) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		position, match := after, f.Matcher()
		size := portionOfLog()
		for first := true; ; first = false {
			// Segments never change, and apart from those of merged gaps
			// they leave the log in order. So pages need no common moment:
			// if a page does not begin where the last one ended, there is a
			// gap between them, or the end of the log has overtaken the
			// reader.
			page, last, err := r.segments(ctx, position, size)
			if err == nil && (first || len(page) == 0 || page[0].seq-page[0].n > int64(position)) {
				err = r.checkPosition(ctx, position)
			}
			if err != nil {
				yield(storage.Event{}, err)
				return
			}
			for i := range page {
				if !r.s.yieldSegment(ctx, &page[i], &position, match, yield) {
					return
				}
			}
			if last {
				return
			}
		}
	}
}

// checkPosition refuses a position outside the log.
func (r *reader) checkPosition(ctx context.Context, p storage.Cursor) error {
	extent, err := r.Log(ctx)
	if err != nil {
		return err
	}
	var gaps []storage.Gap
	find := r.s.readGaps(&gaps)
	err = r.query(ctx, "looking for a gap in the log", func(ctx context.Context, q dialect.Querier) error {
		gaps = nil
		rows, err := q.QueryContext(ctx, r.s.q.gapAt, int64(p), int64(p))
		if err != nil {
			return err
		}
		return dialect.ScanAll(rows, find.Scan)
	})
	if err != nil {
		return err
	}
	return extent.Check(p, gaps)
}

// A stored is a row of the log.
type stored struct {
	seq, n, at int64
	data       []byte
}

// firstSegments is how many segments a reader of the log asks for at first. One segment
// may have tens of MiB, and a subscriber that has got a large event begins anew after it.
const firstSegments = 4

func portionOfLog() *portion { return &portion{rows: firstSegments, later: firstPage} }

// segments reads a page. last is true if the log has no more.
func (r *reader) segments(ctx context.Context, after storage.Cursor, size *portion) (page []stored, last bool, err error) {
	query := r.s.d.Rebind("SELECT seq, n, at, data FROM " + r.s.table("events") + " WHERE seq > ? ORDER BY seq LIMIT " + strconv.Itoa(size.rows))
	var read portion
	err = r.query(ctx, "reading events", func(ctx context.Context, q dialect.Querier) error {
		page, read = nil, *size // this may be called again
		rows, err := q.QueryContext(ctx, query, int64(after))
		if err != nil {
			return err
		}
		return dialect.ScanAll(rows, func(rows *sql.Rows) error {
			var x stored
			if err := rows.Scan(&x.seq, &x.n, &x.at, &x.data); err != nil {
				return err
			}
			page = append(page, x)
			return read.took(len(x.data))
		})
	})
	*size = read
	return page, size.next(), err
}

// yieldSegment yields the events of a segment behind the position, and advances
// it. It reports whether more are wanted.
func (s *Store) yieldSegment(ctx context.Context, x *stored, position *storage.Cursor, match func(*storage.Subject) bool, yield func(storage.Event, error) bool) bool {
	rest := x.data
	var broken error
	for i := range x.n {
		var data []byte
		if broken == nil {
			data, rest, broken = cutBytes(rest)
		}
		sequence := storage.Cursor(x.seq - x.n + 1 + i)
		if sequence <= *position {
			continue
		}
		if err := ctx.Err(); err != nil {
			yield(storage.Event{}, err)
			return false
		}
		*position = sequence
		e, err := storage.Event{}, broken
		if err == nil {
			if data, err = s.sealer.open(data, eventPlace); err == nil {
				e, err = storage.DecodeEvent(data)
			}
		}
		if err != nil {
			c, end := corrupt[storage.Event](storage.EventKey(sequence), err)
			if end != nil {
				yield(storage.Event{}, end)
				return false
			}
			if !yield(storage.Event{}, c.err) {
				return false
			}
			continue
		}
		e.Sequence, e.At = sequence, executor.Instant(x.at)
		if subject := e.Subject(); match(&subject) && !yield(e, nil) {
			return false
		}
	}
	return true
}
