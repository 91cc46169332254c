package sqlstore

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

// A dialect is what the databases differ in. Everything else is written once.
type dialect struct {
	name string
	dir  string // of its migrations

	// numbered placeholders are $1, $2 …; the others are ?.
	numbered bool
	// arrays: a list of rows is one array for each column, so that a statement
	// is the same however many rows it has. Elsewhere each value has a
	// placeholder.
	arrays bool
	// in opens the list of an IN that has placeholders.
	in string
	// fewShapes: statements are prepared, so a list has one of few lengths.
	fewShapes bool
	// rowValues: (a, b) > (x, y) finds its place in an index.
	rowValues bool
	// byKey follows a table's name in a statement that reads it in the order of
	// its key, where the optimizer needs to be told.
	byKey string
	// unindexed makes a column an expression that no index is used for.
	unindexed string
	// fence ends a subquery that the optimizer must not plan as part of what is
	// around it; empty where that goes well.
	fence string
	// upsert makes an INSERT replace the row with the same key.
	upsert func(key, rest []string) string
	// clock is the time as nanoseconds since 1970.
	clock string
	// lock makes a SELECT lock the rows that it finds.
	lock string
	// share lets others do the same, and nobody change them.
	share string
	// begin starts a transaction that writes, beginRead one that sees one
	// moment, that of its first statement.
	begin, beginRead []string
	// isolation precedes begin on connections that Open has not set up, and
	// settings follow it.
	isolation []string
	settings  []string
	// bounds follow them in a transaction that commits.
	bounds []string
	// batch runs several statements in one round trip; nil runs them one by
	// one. common are statements that most transactions need.
	batch func(ctx context.Context, c *sql.Conn, calls []call, common []string) error
	// identity is a query for a text that is another one when the data may be
	// those of an earlier moment, because the server was started or the table
	// {log} was made anew. It is empty where there is no server.
	identity string
	// prepare: reads are worth preparing.
	prepare bool
	// migrate runs f while no other process migrates. f gets one connection.
	migrate func(ctx context.Context, c *sql.Conn, prefix string, f func() error) error
	// topology refuses a server that is one of several which take writes,
	// unless oneNode, and reports whether it is. It is nil where there are none
	// such.
	topology func(ctx context.Context, q querier, oneNode bool) (several bool, err error)
	// drivers are the Go packages that the dialect works with, fromHere reports
	// whether an error of the server comes in the way that they have.
	drivers  string
	fromHere func(err error) bool
	// severals is a text of two statements, which some drivers take, with an
	// argument if it has a placeholder.
	severals string
	// classify says what an error of the driver means, or unclassified.
	classify func(err error) (class, string)
}

// A class says what can be done about an error.
type class uint8

const (
	// permanent errors come again; the transaction is rolled back.
	permanent class = iota
	// transient errors rolled the transaction back, and it may be tried again:
	// deadlocks, serialization failures, a busy database.
	transient
	// lost is a connection that ended; what it was doing may have happened.
	lost
	// absent is a table that does not exist.
	absent
	// guarded is a wrong guess.
	guarded
)

// A transientError is an error of the store's own after which a transaction may be
// tried again.
type transientError string

func (e transientError) Error() string { return string(e) }

// isWrongGuess reports whether err is what a guess fails with.
func (d *dialect) isWrongGuess(err error) bool {
	if err == nil {
		return false
	}
	class, _ := d.classOf(err)
	return class == guarded
}

const hintAway = "check that the database server runs and can be reached"

const hintReadOnly = "the server or the transaction is read-only: connect to the primary"

// isReadOnly reports whether the connection leads to a server that only reads.
// A new one may lead to the primary.
func (d *dialect) isReadOnly(err error) bool {
	_, hint := d.classOf(err)
	return hint == hintReadOnly
}

// classOf is what err means, and what to do about it, if that is known.
func (d *dialect) classOf(err error) (class, string) {
	if errors.Is(err, errUnanswered) {
		return lost, hintAway
	}
	// A connection that gave up looks like a context that ended.
	var network *net.OpError
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &network) {
		return permanent, ""
	}
	if errors.As(err, new(transientError)) {
		return transient, ""
	}
	if c, hint := d.classify(err); c != permanent || hint != "" {
		return c, hint
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || isNetwork(err) {
		return lost, hintAway
	}
	return permanent, ""
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network)
}

// rebind numbers the placeholders of a query, where the dialect wants that.
func (d *dialect) rebind(q string) string {
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

// after is the condition that a row comes behind a key in the order of the
// columns, with as many arguments as keyArgs makes.
func (d *dialect) after(columns ...string) string {
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

// afterArgs are the arguments of after.
func (d *dialect) afterArgs(key ...any) []any {
	if d.rowValues || len(key) == 1 {
		return key
	}
	var args []any
	for i := range key {
		args = append(args, key[:i+1]...)
	}
	return args
}
