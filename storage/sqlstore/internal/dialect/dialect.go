// Package dialect holds what SQLite, MySQL and PostgreSQL differ in, and the
// statements that are made of that.
//
//	dialect.go                   the fragments, and the classes of errors
//	statement.go                 statements over lists of rows, and how they run
//	sqlite*, mysql*, postgres    one database each: fragments, errors, data source names
//	session.go                   what connections to a server are set up with
//
// A [Dialect] is not changed once a store has it. Its functions and methods may be
// used by several goroutines at once.
package dialect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// A Dialect has everything in which the databases differ. All else is written
// once.
type Dialect struct {
	Name string // of the database
	Dir  string // of its migrations

	// numbered placeholders are $1, $2 …; the others are ?.
	numbered bool
	// Arrays: a list of rows is one array for each column, so that a statement
	// is the same however many rows it has. Elsewhere each value has a
	// placeholder.
	Arrays bool
	// in opens the list of an IN that has placeholders.
	in string
	// fewShapes: statements are prepared, so a list has one of few lengths.
	fewShapes bool
	// rowValues: (a, b) > (x, y) finds its place in an index.
	rowValues bool
	// ByKey follows a table's name in a statement that reads it in the order of
	// its key, if the optimizer needs that hint.
	ByKey string
	// unindexed makes a column an expression that no index is used for.
	unindexed string
	// Fence ends a subquery that the optimizer must not merge into the surrounding
	// query; empty if it never does so wrongly.
	Fence string
	// Upsert makes an INSERT replace the row with the same key.
	Upsert func(key, rest []string) string
	// Clock is the time as nanoseconds since 1970.
	Clock string
	// Lock makes a SELECT lock the rows that it finds.
	Lock string
	// Share lets others do the same, but nobody change the rows.
	Share string
	// Begin starts a transaction that writes, BeginRead one that sees one
	// moment, that of its first statement.
	Begin, BeginRead []string
	// Isolation precedes Begin on connections that Open has not set up, and
	// Settings follow it.
	Isolation []string
	Settings  []string
	// Bounds follow them in a transaction that commits.
	Bounds []string
	// Batch runs several statements in one round trip; nil runs them one by
	// one. common are statements that most transactions need.
	Batch func(ctx context.Context, c *sql.Conn, calls []Call, common []string) error
	// Identity is a query for a text that changes when the data may be older than
	// before, because the server was restarted or the table {log} was made again.
	// It is empty if there is no server.
	Identity string
	// Prepare: reads are worth preparing.
	Prepare bool
	// Done reports that a statement of a migration failed because it was carried
	// out before. It is nil where a migration that breaks off is rolled back.
	Done func(err error) bool
	// Migrate runs f while no other process migrates. f gets one connection.
	Migrate func(ctx context.Context, c *sql.Conn, prefix string, f func() error) error
	// Topology refuses a server that is one of several which take writes, unless
	// oneNode, and reports whether it is. It is nil for databases without such
	// clusters.
	Topology func(ctx context.Context, q Querier, oneNode bool) (several bool, err error)
	// Drivers are the Go packages that the dialect works with. FromHere reports
	// whether an error of the server comes in the form of those drivers.
	Drivers  string
	FromHere func(err error) bool
	// Severals is a text of two statements, which some drivers take, with an
	// argument if it has a placeholder.
	Severals string
	// classify says what an error of the driver means, or unclassified.
	classify func(err error) (Class, string)
}

// A Class says what can be done about an error.
type Class uint8

const (
	// Permanent errors come again; the transaction is rolled back.
	Permanent Class = iota
	// Transient errors have rolled the transaction back, and it may be tried
	// again: deadlocks, serialization failures, a busy database.
	Transient
	// Lost is a connection that ended; what it was doing may have happened.
	Lost
	// Absent is a table that does not exist.
	Absent
	// Guarded is a wrong guess.
	Guarded
)

// A TransientError is an error of the store itself after which a transaction
// may be tried again.
type TransientError string

func (e TransientError) Error() string { return string(e) }

// IsWrongGuess reports whether err comes from a wrong guess.
func (d *Dialect) IsWrongGuess(err error) bool {
	if err == nil {
		return false
	}
	class, _ := d.ClassOf(err)
	return class == Guarded
}

const hintAway = "check that the database server runs and can be reached"

const hintReadOnly = "the server or the transaction is read-only: connect to the primary"

// IsReadOnly reports whether the connection leads to a server that only reads.
// A new one may lead to the primary.
func (d *Dialect) IsReadOnly(err error) bool {
	_, hint := d.ClassOf(err)
	return hint == hintReadOnly
}

// ClassOf is what err means, and what to do about it, if that is known.
func (d *Dialect) ClassOf(err error) (Class, string) {
	if errors.Is(err, ErrUnanswered) {
		return Lost, hintAway
	}
	// A connection that gave up looks like a context that ended.
	var network *net.OpError
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &network) {
		return Permanent, ""
	}
	if errors.As(err, new(TransientError)) {
		return Transient, ""
	}
	if c, hint := d.classify(err); c != Permanent || hint != "" {
		return c, hint
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.As(err, new(net.Error)) {
		return Lost, hintAway
	}
	return Permanent, ""
}

// Rebind numbers the placeholders of a query, where the dialect wants that.
func (d *Dialect) Rebind(q string) string {
	if !d.numbered {
		return q
	}
	var b strings.Builder
	n := 0
	for i := range len(q) {
		if q[i] != '?' {
			b.WriteByte(q[i])
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// After is the condition that a row comes behind a key in the order of the
// columns, with as many arguments as keyArgs makes.
func (d *Dialect) After(columns ...string) string {
	if d.rowValues || len(columns) == 1 {
		return "(" + strings.Join(columns, ", ") + ") > (?" + strings.Repeat(", ?", len(columns)-1) + ")"
	}
	// a > ? OR (a = ? AND b > ?) OR …: disjoint ranges, which every optimizer
	// reads off an index.
	alternatives := make([]string, len(columns))
	for i := range columns {
		alternatives[i] = "(" + strings.Join(append(append([]string{}, columns[:i]...), ""), " = ? AND ") + columns[i] + " > ?)"
	}
	return "(" + strings.Join(alternatives, " OR ") + ")"
}

// AfterArgs are the arguments of after.
func (d *Dialect) AfterArgs(key ...any) []any {
	if d.rowValues || len(key) == 1 {
		return key
	}
	var args []any
	for i := range key {
		args = append(args, key[:i+1]...)
	}
	return args
}
