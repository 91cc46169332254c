package sqlstore

import (
	"context"
	"database/sql"
	"strconv"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// This file bounds the log by its bytes. The process that trims reads how long
// the rows of the log are, in order and once each, some with each transaction
// that trims. Other processes may have written them.

const (
	// measuredRows is how many rows one transaction measures.
	measuredRows = 512
	// maxTrimBytes is about how much one transaction removes, at least one span.
	maxTrimBytes = 32 << 20
	// spansOfLog is how many spans the log has, about, when it is full.
	spansOfLog = 64
)

// A logSize is the size of the log as far as it was measured.
type logSize struct {
	spans []span // in order; some at the beginning may have left the log already
	bytes int64  // of all spans
	end   int64  // the newest event that was measured
	// oldest is where the log has to begin because of its bytes.
	oldest int64
	// behind: there is more to measure or to remove.
	behind bool
}

// A span is the events from first to the next span.
type span struct{ first, bytes int64 }

func (l *logSize) add(first, last, bytes, most int64) {
	if n := len(l.spans); n > 0 && l.spans[n-1].bytes+bytes <= most/spansOfLog {
		l.spans[n-1].bytes += bytes
	} else {
		l.spans = append(l.spans, span{first, bytes})
	}
	l.bytes += bytes
	l.end = last
}

// trim leaves at most so many bytes, or the newest span.
func (l *logSize) trim(most int64) {
	for left := l.bytes - maxTrimBytes; l.bytes > most && len(l.spans) > 1; {
		if l.bytes <= left {
			l.behind = true
			return
		}
		l.bytes -= l.spans[0].bytes
		l.spans = l.spans[1:]
		l.oldest = l.spans[0].first
	}
}

// measure measures what was added to the log. It reads no data, only how long
// it is.
func (s *Store) measure(ctx context.Context, c *sql.Conn) error {
	rows, err := c.QueryContext(ctx, s.q.measure, s.size.end)
	if err != nil {
		return err
	}
	l, n := s.size, 0
	l.spans = append([]span(nil), l.spans...) // if this fails, nothing was measured
	err = dialect.ScanAll(rows, func(rows *sql.Rows) error {
		var last, events, bytes int64
		err := rows.Scan(&last, &events, &bytes)
		l.add(last-events+1, last, bytes, s.options.EventBytes)
		n++
		return err
	})
	if err != nil {
		return err
	}
	l.behind = n == measuredRows
	l.trim(s.options.EventBytes)
	s.size = l
	return nil
}

// measureQuery reads the length of the rows after an event.
func measureQuery(d *dialect.Dialect, table string) string {
	return d.Rebind("SELECT seq, n, LENGTH(data) FROM " + table + " WHERE seq > ? ORDER BY seq LIMIT " + strconv.Itoa(measuredRows))
}

// oldestBySize is where the log has to begin because of its bytes, or 0.
func (a *attempt) oldestBySize() int64 {
	l := &a.s.size
	if a.end < l.end { // the log went back, and what was measured is gone
		*l = logSize{behind: true}
	}
	oldest := l.oldest
	for _, g := range a.gaps {
		if after, first := int64(g.After), int64(g.First); oldest > after && oldest < first {
			oldest = first
		}
	}
	return oldest
}
