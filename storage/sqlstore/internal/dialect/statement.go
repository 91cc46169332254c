package dialect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
)

// A Querier runs statements: a *sql.DB, *sql.Conn, *sql.Tx or a *pool.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A Call is one statement with its arguments, which are int64, string, []byte
// and array only.
type Call struct {
	Query string
	Args  []any
	// Scan is called for each row of the result; nil if there is none.
	Scan func(*sql.Rows) error
	// ID receives LAST_INSERT_ID after the statement; it may be nil. A statement
	// with an ID has no result, and on MySQL neither have those that run together
	// with it.
	ID func(int64)
}

// RunEach runs the calls one by one.
func RunEach(ctx context.Context, q Querier, calls []Call) error {
	for i := range calls {
		args := plain(calls[i].Args)
		if calls[i].Scan == nil {
			result, err := q.ExecContext(ctx, calls[i].Query, args...)
			if err == nil && calls[i].ID != nil {
				var id int64
				id, err = result.LastInsertId()
				calls[i].ID(id)
			}
			if err != nil {
				return err
			}
			continue
		}
		rows, err := q.QueryContext(ctx, calls[i].Query, args...)
		if err != nil {
			return err
		}
		if err := ScanAll(rows, calls[i].Scan); err != nil {
			return err
		}
	}
	return nil
}

// ErrEnough is returned by a function that ScanAll calls, if it wants no more rows.
var ErrEnough = errors.New("no more rows are wanted")

// ScanAll calls scan for each row and closes rows. It goes over the rest if scan
// returns ErrEnough, which takes a server's time and no memory.
func ScanAll(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		err := scan(rows)
		if errors.Is(err, ErrEnough) {
			return rows.Close()
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanResults reads the result sets of the calls that have one.
func scanResults(rows *sql.Rows, calls []Call) error {
	defer rows.Close()
	first := true
	for i := range calls {
		if calls[i].Scan == nil {
			continue
		}
		if !first && !rows.NextResultSet() {
			break
		}
		first = false
		for rows.Next() {
			if err := calls[i].Scan(rows); err != nil {
				return err
			}
		}
	}
	for rows.NextResultSet() {
	}
	return rows.Err()
}

// A Kind is the type of a column, as far as lists of rows are concerned.
type Kind string

const (
	Text   Kind = "text"
	Number Kind = "bigint"
	Blob   Kind = "bytea"
)

// A Multi is a statement over a list of rows.
type Multi struct {
	d *Dialect
	// list is the statement up to the list, and what comes behind it.
	Head, Tail string
	// columns are those that an IN compares with the list; none for an INSERT.
	columns []string
	Kinds   []Kind
	arrays  string // the statement, if it is the same for any number of rows
}

// RowsPerStatement bounds the statements that have a placeholder for each
// value, where they are prepared: a list is cut into such powers of four, so
// that there are few different ones. Elsewhere maxRows is the bound.
const (
	RowsPerStatement = 64
	maxRows          = 256
)

// Calls are the statements for a flat list of rows, none for an empty one.
func (m *Multi) Calls(dst []Call, rows []any, scan func(*sql.Rows) error) []Call {
	width := len(m.Kinds)
	n := len(rows) / width
	if n == 0 {
		return dst
	}
	if m.d.Arrays {
		return append(dst, Call{Query: m.arrays, Args: AppendColumns(nil, rows, width), Scan: scan})
	}
	for !m.d.fewShapes && n > 0 {
		chunk, size := 0, 0
		for chunk < min(n, maxRows) && size < maxText/2 {
			size += SizeOf(rows[chunk*width : (chunk+1)*width])
			chunk++
		}
		dst = append(dst, Call{Query: m.Query(chunk), Args: rows[:chunk*width], Scan: scan})
		rows, n = rows[chunk*width:], n-chunk
	}
	for chunk := RowsPerStatement; n > 0; chunk /= 4 {
		for ; n >= chunk; n -= chunk {
			dst = append(dst, Call{Query: m.Query(chunk), Args: rows[:chunk*width], Scan: scan})
			rows = rows[chunk*width:]
		}
	}
	return dst
}

func (m Multi) ready() Multi {
	if m.d.Arrays {
		m.arrays = m.Query(1)
	}
	return m
}

// With is the statement with a tail.
func (m Multi) With(tail string) Multi {
	m.Tail, m.arrays = tail, ""
	return m.ready()
}

// Query is the statement for n rows.
func (m *Multi) Query(n int) string {
	if m.columns != nil {
		return m.d.Rebind(m.Head + m.d.OneOf(m.columns, m.Kinds, n) + m.Tail)
	}
	return m.d.Rebind(m.Head + m.d.values(m.Kinds, n) + m.Tail)
}

// values is a list of n rows to insert, with unnumbered placeholders.
func (d *Dialect) values(kinds []Kind, n int) string {
	if !d.Arrays {
		return "VALUES " + Placeholders(len(kinds), n)
	}
	arrays := make([]string, len(kinds))
	for i, k := range kinds {
		arrays[i] = "?::" + string(k) + "[]"
	}
	return "SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")"
}

// OneOf is the condition that the columns are one of n rows. One row is not a
// list, in which MariaDB does not see a key.
func (d *Dialect) OneOf(columns []string, kinds []Kind, n int) string {
	if n == 1 && !d.Arrays {
		return strings.Join(columns, " = ? AND ") + " = ?"
	}
	return "(" + strings.Join(columns, ", ") + ") IN " + d.InList(kinds, n)
}

// Chosen is the condition that a column is one of n values, for a statement
// that uses no index for it.
func (d *Dialect) Chosen(column string, k Kind, n int) string {
	if d.Arrays {
		// A plain ANY compares each row with all values. IS TRUE keeps this
		// from becoming a join, so the list is hashed and rows stay in order.
		return "(" + column + " IN " + d.InList([]Kind{k}, n) + ") IS TRUE"
	}
	return d.unindexed + column + " IN " + d.InList([]Kind{k}, n)
}

// InList is what follows IN for n rows, with unnumbered placeholders.
func (d *Dialect) InList(kinds []Kind, n int) string {
	if d.Arrays {
		return "(" + d.values(kinds, n) + ")"
	}
	return "(" + d.in + Placeholders(len(kinds), n) + ")"
}

// Padded is the size of the list that n rows are read with, so that there are
// few different statements.
func (d *Dialect) Padded(n int) int {
	if !d.fewShapes {
		return n
	}
	size := 1
	for size < n {
		size *= 4
	}
	return size
}

// ListArgs are the arguments of values and InList for a flat list of rows.
func (d *Dialect) ListArgs(rows []any, width int) []any {
	if d.Arrays {
		return plain(AppendColumns(nil, rows, width))
	}
	return rows
}

// An array is an argument: one column of a flat list of rows.
type array struct {
	rows          []any
	width, column int
}

// AppendColumns appends an array for each column.
func AppendColumns(dst, rows []any, width int) []any {
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

// Placeholders are those of n rows, unnumbered.
func Placeholders(width, n int) string {
	row := "(?" + strings.Repeat(", ?", width-1) + ")"
	return row + strings.Repeat(", "+row, n-1)
}

// Insert is an INSERT of rows; tail comes behind them.
func (d *Dialect) Insert(table string, columns []string, kinds []Kind, tail string) Multi {
	return Multi{d: d, Head: "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") ", Kinds: kinds, Tail: tail}.ready()
}

// Among is a statement on those rows whose columns are one of the list's.
func (d *Dialect) Among(head string, columns []string, kinds []Kind) Multi {
	return Multi{d: d, Head: head + " WHERE ", columns: columns, Kinds: kinds}.ready()
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// InTransaction runs f between begin and COMMIT, or ROLLBACK if it fails.
func InTransaction(ctx context.Context, c *sql.Conn, begin []string, f func() error) error {
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
			Discard(c)
		}
	}
	return err
}

// QueryRow scans the one row of a result.
func QueryRow(ctx context.Context, q Querier, query string, dest ...any) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	return ScanAll(rows, func(r *sql.Rows) error { return r.Scan(dest...) })
}

// Discard closes a connection that may be in the middle of something instead
// of returning it to its pool.
func Discard(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn }) // always fails: that is what it is for
}

// SizeOf is how many bytes the data among the values has.
func SizeOf(values []any) (size int) {
	for _, v := range values {
		if data, is := v.([]byte); is {
			size += len(data)
		}
	}
	return size
}
