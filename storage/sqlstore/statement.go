package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"hash/fnv"
	"slices"
	"strings"
)

// A querier runs statements: a *sql.DB, *sql.Conn, *sql.Tx or a *pool.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A call is one statement with its arguments, which are int64, string, []byte
// and array only.
type call struct {
	query string
	args  []any
	// scan is called for each row of the result; nil if there is none.
	scan func(*sql.Rows) error
	// id is told what LAST_INSERT_ID is after the statement; nil if nobody asks.
	// Such a statement has no result, and on MySQL neither have those that run
	// together with it.
	id func(int64)
}

// runEach runs the calls one by one.
func runEach(ctx context.Context, q querier, calls []call) error {
	for i := range calls {
		args := plain(calls[i].args)
		if calls[i].scan == nil {
			result, err := q.ExecContext(ctx, calls[i].query, args...)
			if err == nil && calls[i].id != nil {
				var id int64
				id, err = result.LastInsertId()
				calls[i].id(id)
			}
			if err != nil {
				return err
			}
			continue
		}
		rows, err := q.QueryContext(ctx, calls[i].query, args...)
		if err != nil {
			return err
		}
		if err := scanAll(rows, calls[i].scan); err != nil {
			return err
		}
	}
	return nil
}

// scanAll calls scan for each row and closes rows.
func scanAll(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanResults reads the result sets of the calls that have one.
func scanResults(rows *sql.Rows, calls []call) error {
	defer rows.Close()
	first := true
	for i := range calls {
		if calls[i].scan == nil {
			continue
		}
		if !first && !rows.NextResultSet() {
			break
		}
		first = false
		for rows.Next() {
			if err := calls[i].scan(rows); err != nil {
				return err
			}
		}
	}
	for rows.NextResultSet() {
	}
	return rows.Err()
}

// A kind is the type of a column, as far as lists of rows are concerned.
type kind string

const (
	text   kind = "text"
	number kind = "bigint"
	blob   kind = "bytea"
)

// A multi is a statement over a list of rows.
type multi struct {
	d *dialect
	// list is the statement up to the list, and what comes behind it.
	head, tail string
	// columns are those that an IN compares with the list; none for an INSERT.
	columns []string
	kinds   []kind
	arrays  string // the statement, if it is the same for any number of rows
}

// rowsPerStatement bounds the statements that have a placeholder for each
// value, where they are prepared: a list is cut into such powers of four, so
// that there are few different ones. Elsewhere maxRows is the bound.
const (
	rowsPerStatement = 64
	maxRows          = 256
)

// calls are the statements for a flat list of rows, none for an empty one.
func (m *multi) calls(dst []call, rows []any, scan func(*sql.Rows) error) []call {
	width := len(m.kinds)
	n := len(rows) / width
	if n == 0 {
		return dst
	}
	if m.d.arrays {
		return append(dst, call{query: m.arrays, args: appendColumns(nil, rows, width), scan: scan})
	}
	for !m.d.fewShapes && n > 0 {
		chunk, size := 0, 0
		for chunk < min(n, maxRows) && size < maxText/2 {
			size += sizeOf(rows[chunk*width : (chunk+1)*width])
			chunk++
		}
		dst = append(dst, call{query: m.query(chunk), args: rows[:chunk*width], scan: scan})
		rows, n = rows[chunk*width:], n-chunk
	}
	for chunk := rowsPerStatement; n > 0; chunk /= 4 {
		for ; n >= chunk; n -= chunk {
			dst = append(dst, call{query: m.query(chunk), args: rows[:chunk*width], scan: scan})
			rows = rows[chunk*width:]
		}
	}
	return dst
}

func (m multi) ready() multi {
	if m.d.arrays {
		m.arrays = m.query(1)
	}
	return m
}

// with is the statement with a tail.
func (m multi) with(tail string) multi {
	m.tail, m.arrays = tail, ""
	return m.ready()
}

// query is the statement for n rows.
func (m *multi) query(n int) string {
	if m.columns != nil {
		return m.d.rebind(m.head + m.d.oneOf(m.columns, m.kinds, n) + m.tail)
	}
	return m.d.rebind(m.head + m.d.values(m.kinds, n) + m.tail)
}

// values is a list of n rows to insert, with unnumbered placeholders.
func (d *dialect) values(kinds []kind, n int) string {
	if !d.arrays {
		return "VALUES " + placeholders(len(kinds), n)
	}
	arrays := make([]string, len(kinds))
	for i, k := range kinds {
		arrays[i] = "?::" + string(k) + "[]"
	}
	return "SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")"
}

// oneOf is the condition that the columns are one of n rows. One row is not a
// list, in which MariaDB does not see a key.
func (d *dialect) oneOf(columns []string, kinds []kind, n int) string {
	if n == 1 && !d.arrays {
		return strings.Join(columns, " = ? AND ") + " = ?"
	}
	return "(" + strings.Join(columns, ", ") + ") IN " + d.inList(kinds, n)
}

// chosen is the condition that a column is one of n values, for a statement
// that uses no index for it.
func (d *dialect) chosen(column string, k kind, n int) string {
	if d.arrays {
		// A plain ANY compares each row with all values. IS TRUE keeps this
		// from becoming a join, so the list is hashed and rows stay in order.
		return "(" + column + " IN " + d.inList([]kind{k}, n) + ") IS TRUE"
	}
	return d.unindexed + column + " IN " + d.inList([]kind{k}, n)
}

// inList is what follows IN for n rows, with unnumbered placeholders.
func (d *dialect) inList(kinds []kind, n int) string {
	if d.arrays {
		return "(" + d.values(kinds, n) + ")"
	}
	return "(" + d.in + placeholders(len(kinds), n) + ")"
}

// padded is the size of the list that n rows are read with, so that there are
// few different statements.
func (d *dialect) padded(n int) int {
	if !d.fewShapes {
		return n
	}
	size := 1
	for size < n {
		size *= 4
	}
	return size
}

// listArgs are the arguments of values and inList for a flat list of rows.
func (d *dialect) listArgs(rows []any, width int) []any {
	if d.arrays {
		return plain(appendColumns(nil, rows, width))
	}
	return rows
}

// An array is an argument: one column of a flat list of rows.
type array struct {
	rows          []any
	width, column int
}

// appendColumns appends an array for each column.
func appendColumns(dst, rows []any, width int) []any {
	for column := range width {
		dst = append(dst, array{rows, width, column})
	}
	return dst
}

// plain are arguments that a driver takes: arrays in their text form.
func plain(args []any) []any {
	var out []any
	for i, a := range args {
		if a, is := a.(array); is {
			if out == nil {
				out = slices.Clone(args)
			}
			out[i] = string(appendArray(nil, a, false))
		}
	}
	if out == nil {
		return args
	}
	return out
}

func placeholders(width, n int) string {
	row := "(?" + strings.Repeat(", ?", width-1) + ")"
	return row + strings.Repeat(", "+row, n-1)
}

// insert is an INSERT of rows; tail comes behind them.
func (d *dialect) insert(table string, columns []string, kinds []kind, tail string) multi {
	return multi{d: d, head: "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") ", kinds: kinds, tail: tail}.ready()
}

// among is a statement on those rows whose columns are one of the list's.
func (d *dialect) among(head string, columns []string, kinds []kind) multi {
	return multi{d: d, head: head + " WHERE ", columns: columns, kinds: kinds}.ready()
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// inTransaction runs f between begin and COMMIT, or ROLLBACK if it fails.
func inTransaction(ctx context.Context, c *sql.Conn, begin []string, f func() error) error {
	for _, statement := range begin {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	err := f()
	if err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		if _, rollbackErr := c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); rollbackErr != nil {
			discard(c)
		}
	}
	return err
}

// queryRow scans the one row of a result.
func queryRow(ctx context.Context, q querier, query string, dest ...any) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	return scanAll(rows, func(r *sql.Rows) error { return r.Scan(dest...) })
}

// discard closes a connection that may be in the middle of something instead
// of returning it to its pool.
func discard(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn }) // always fails: that is what it is for
}

// sizeOf is how many bytes the data among the values has.
func sizeOf(values []any) (size int) {
	for _, v := range values {
		if data, is := v.([]byte); is {
			size += len(data)
		}
	}
	return size
}
