package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lib/pq"
)

var postgres = dialect{
	name:      "PostgreSQL",
	driver:    "postgres",
	dir:       "postgres",
	numbered:  true,
	arrays:    true,
	rowValues: true,
	upsert:    onConflict,
	clock:     "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint * 1000",
	lock:      " FOR UPDATE",
	begin:     []string{"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"},
	beginRead: []string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
	batch:     executed,
	prepare:   true,
	migrate: func(ctx context.Context, c *sql.Conn, prefix string, f func() error) error {
		return inTransaction(ctx, c, "BEGIN", func() error {
			if _, err := c.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(hash(prefix))); err != nil {
				return err
			}
			return f()
		})
	},
	classify: func(err error) (class, string) {
		var e *pq.Error
		if !errors.As(err, &e) {
			return permanent, ""
		}
		switch e.Code {
		case "40001", "40P01", "55P03":
			return transient, "other transactions keep rows locked"
		case "0A000": // a plan from before another process migrated
			if strings.Contains(e.Message, "cached plan") {
				return lost, ""
			}
		case "53300":
			return lost, "raise max_connections of the server, or lower MaxConns"
		case "57P01", "57P02", "57P03":
			return lost, "the server shuts down or starts"
		case "28000", "28P01", "42501":
			return permanent, "check the user's name and password, and grant it SELECT, INSERT, UPDATE and DELETE on the tables, and CREATE on the schema to migrate"
		case "3D000":
			return permanent, "name a database that exists in the DSN"
		case "42P01":
			return absent, ""
		case "53100":
			return permanent, "free space on the server's disk"
		case "25006":
			return permanent, "the server or the transaction is read-only: connect to the primary"
		}
		if e.Code.Class() == "08" {
			return lost, "check that the database server runs and can be reached"
		}
		return permanent, ""
	},
}

// executed runs the calls as one text of EXECUTE statements, so that their
// plans are made once for each connection, and their arguments need no round
// trips.
func executed(ctx context.Context, c *sql.Conn, calls []call) error {
	err := executeAll(ctx, c, calls)
	var e *pq.Error
	if !errors.As(err, &e) || e.Code != "26000" {
		return err
	}
	// The connection is new: it has no such prepared statement. What else it
	// did in this transaction, if that was not begun here, is gone.
	if _, err := c.ExecContext(ctx, "ROLLBACK"); err != nil {
		return err
	}
	if err := prepareAll(ctx, c, calls); err != nil {
		return err
	}
	if !strings.HasPrefix(calls[0].query, "BEGIN") {
		return errPrepared
	}
	return executeAll(ctx, c, calls)
}

// errPrepared is a transaction that had to be rolled back because statements
// were not prepared; they are now.
var errPrepared = errors.New("statements were not prepared")

func executeAll(ctx context.Context, c *sql.Conn, calls []call) error {
	var text []byte
	scans := 0
	for i := range calls {
		if i > 0 {
			text = append(text, ';')
		}
		text = appendExecute(text, &calls[i])
		if calls[i].scan != nil {
			scans++
		}
	}
	if scans == 0 {
		_, err := c.ExecContext(ctx, string(text))
		return err
	}
	rows, err := c.QueryContext(ctx, string(text))
	if err != nil {
		return err
	}
	return scanResults(rows, calls)
}

func statementName(query string) string { return fmt.Sprintf("diego_%016x", hash(query)) }

func prepareAll(ctx context.Context, c *sql.Conn, calls []call) error {
	var text strings.Builder
	known := map[string]bool{}
	rows, err := c.QueryContext(ctx, "SELECT name FROM pg_prepared_statements")
	if err != nil {
		return err
	}
	if err := scanAll(rows, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		known[name] = true
		return err
	}); err != nil {
		return err
	}
	for i := range calls {
		name := statementName(calls[i].query)
		if len(calls[i].args) == 0 || known[name] {
			continue
		}
		known[name] = true
		text.WriteString("PREPARE " + name + " AS " + calls[i].query + ";")
	}
	_, err = c.ExecContext(ctx, text.String())
	return err
}

func appendExecute(dst []byte, c *call) []byte {
	if len(c.args) == 0 {
		return append(dst, c.query...)
	}
	dst = append(dst, "EXECUTE "...)
	dst = append(dst, statementName(c.query)...)
	for i, a := range c.args {
		if i == 0 {
			dst = append(dst, '(')
		} else {
			dst = append(dst, ',')
		}
		dst = appendLiteral(dst, a)
	}
	return append(dst, ')')
}

// appendLiteral appends a value as SQL, which Open has made sure has
// standard_conforming_strings.
func appendLiteral(dst []byte, a any) []byte {
	switch a := a.(type) {
	case int64:
		return strconv.AppendInt(dst, a, 10)
	case string:
		return appendQuoted(dst, a)
	case array:
		return appendQuoted(dst, string(a))
	case []byte:
		dst = append(dst, `'\x`...)
		dst = hex.AppendEncode(dst, a)
		return append(dst, '\'')
	}
	panic(fmt.Sprintf("sqlstore: an argument of type %T", a)) // all arguments are made in this package
}

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '\'')
	for i := range len(s) {
		if s[i] == '\'' {
			dst = append(dst, '\'')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '\'')
}

// An array is the text form of an array of PostgreSQL.
type array string

// appendElement appends one value of a row to the text form of an array.
func appendElement(dst []byte, a any) []byte {
	if len(dst) == 0 {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	switch a := a.(type) {
	case int64:
		return strconv.AppendInt(dst, a, 10)
	case string:
		dst = append(dst, '"')
		for i := range len(a) {
			if a[i] == '"' || a[i] == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, a[i])
		}
		return append(dst, '"')
	case []byte:
		dst = append(dst, `"\\x`...)
		dst = hex.AppendEncode(dst, a)
		return append(dst, '"')
	}
	panic(fmt.Sprintf("sqlstore: an argument of type %T", a)) // all arguments are made in this package
}
