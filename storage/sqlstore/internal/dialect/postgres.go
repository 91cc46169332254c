package dialect

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lib/pq"
)

// PostgreSQL is PostgreSQL, by lib/pq or pgx.
var PostgreSQL = Dialect{
	Name:      "PostgreSQL",
	Dir:       "postgres",
	numbered:  true,
	Arrays:    true,
	rowValues: true,
	// Without it, PostgreSQL walks along the key in the hope that it finds
	// enough rows soon.
	Fence:     " OFFSET 0",
	Upsert:    onConflict,
	Clock:     "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint * 1000",
	Lock:      " FOR UPDATE",
	Share:     " FOR SHARE",
	Begin:     []string{"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"},
	Settings:  setLocal(PostgresSettings),
	Bounds:    setLocal(postgresBounds),
	Identity:  "SELECT CONCAT(EXTRACT(EPOCH FROM pg_postmaster_start_time()), ' ', '{log}'::regclass::oid)",
	BeginRead: []string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
	Batch:     executed,
	Prepare:   true,
	Severals:  "SELECT 1; SELECT 2",
	Drivers:   "github.com/lib/pq or github.com/jackc/pgx/v5/stdlib",
	FromHere:  func(err error) bool { return StateOf(err) != "" },
	Migrate: func(ctx context.Context, c *sql.Conn, prefix string, f func() error) error {
		return InTransaction(ctx, c, []string{"BEGIN"}, func() error {
			if _, err := c.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(hash(prefix))); err != nil {
				return err
			}
			return f()
		})
	},
	classify: func(err error) (Class, string) {
		if errors.Is(err, pq.ErrSSLNotSupported) {
			return Permanent, "let the server speak TLS, or add sslmode=disable to the DSN where the way to it is safe"
		}
		code := StateOf(err)
		switch code {
		case "40001":
			return Transient, "another transaction was faster: roll back and begin a new one"
		case "40P01", "55P03":
			return Transient, "other transactions keep rows locked"
		case "0A000": // a plan from before another process migrated, or a standby
			if strings.Contains(err.Error(), "cached plan") {
				return Lost, ""
			}
			if strings.Contains(err.Error(), "during recovery") {
				return Permanent, hintReadOnly
			}
		case "53300":
			return Lost, "raise max_connections of the server, or lower MaxConns"
		case "25P03": // idle_in_transaction_session_timeout
			return Lost, "the process was silent for too long in the middle of a transaction"
		case "57P01", "57P02", "57P03":
			return Lost, "the server shuts down or starts"
		case "28000", "28P01", "42501":
			return Permanent, "check the user's name and password, and grant it SELECT, INSERT, UPDATE and DELETE on the tables, and CREATE on the schema to migrate"
		case "22003":
			return Guarded, ""
		case "3D000":
			return Permanent, "name a database that exists in the DSN"
		case "42P01":
			return Absent, ""
		case "42704": // an unknown parameter in the DSN becomes a setting of the session
			if strings.Contains(err.Error(), "configuration parameter") {
				return Permanent, "mend the parameters of the DSN: what is none of the driver's is a setting of PostgreSQL's"
			}
		case "53100":
			return Permanent, "free space on the server's disk"
		case "25006":
			return Permanent, hintReadOnly
		}
		if code == "08P01" && strings.Contains(err.Error(), "startup parameter") { // PgBouncer
			return Permanent, "name the parameter in ignore_startup_parameters of the pooler, or connect to the server itself"
		}
		if strings.HasPrefix(code, "08") {
			return Lost, hintAway
		}
		return Permanent, ""
	},
}

// StateOf is the SQLSTATE of an error of the server, "" for other errors.
// lib/pq and pgx have the same method for it.
func StateOf(err error) string {
	var e interface{ SQLState() string }
	if !errors.As(err, &e) {
		return ""
	}
	return e.SQLState()
}

// setLocal are the statements that make settings for one transaction.
func setLocal(settings map[string]string) (statements []string) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		statements = append(statements, "SET LOCAL "+name+" = "+settings[name])
	}
	return statements
}

// executed runs the calls as one text of EXECUTE statements, so that their
// plans are made once for each connection, and their arguments need no round
// trips. common are the statements that the connection will soon need too.
func executed(ctx context.Context, c *sql.Conn, calls []Call, common []string) error {
	err := executeAll(ctx, c, calls)
	if StateOf(err) != "26000" {
		return err
	}
	// The connection is new and has no such prepared statement. If the
	// transaction was not begun here, what it did before is gone.
	if _, err := c.ExecContext(ctx, "ROLLBACK"); err != nil {
		return err
	}
	needed := common
	for i := range calls {
		if len(calls[i].Args) > 0 {
			needed = append(needed[:len(needed):len(needed)], calls[i].Query)
		}
	}
	if err := prepareAll(ctx, c, needed); err != nil {
		return err
	}
	if !strings.HasPrefix(calls[0].Query, "BEGIN") {
		return errPrepared
	}
	return executeAll(ctx, c, calls)
}

// errPrepared says that a transaction was rolled back because statements were
// not prepared. They are now.
const errPrepared = TransientError("statements were not prepared")

func executeAll(ctx context.Context, c *sql.Conn, calls []Call) error {
	text := *texts.Get().(*[]byte)
	defer func() {
		text = text[:0]
		texts.Put(&text)
	}()
	scans := 0
	for i := range calls {
		if i > 0 {
			text = append(text, ';')
		}
		text = appendExecute(text, &calls[i])
		if calls[i].Scan != nil {
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

// texts are buffers for statements.
var texts = sync.Pool{New: func() any { return new([]byte) }}

func statementName(query string) string {
	if name, known := statementNames.Load(query); known {
		return name.(string)
	}
	name := fmt.Sprintf("diego_%016x", hash(query))
	statementNames.Store(query, name)
	return name
}

var statementNames sync.Map

func prepareAll(ctx context.Context, c *sql.Conn, queries []string) error {
	var text strings.Builder
	known := map[string]bool{}
	rows, err := c.QueryContext(ctx, "SELECT name FROM pg_prepared_statements")
	if err != nil {
		return err
	}
	if err := ScanAll(rows, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		known[name] = true
		return err
	}); err != nil {
		return err
	}
	for _, query := range queries {
		if name := statementName(query); !known[name] {
			known[name] = true
			text.WriteString("PREPARE " + name + " AS " + query + ";")
		}
	}
	_, err = c.ExecContext(ctx, text.String())
	return err
}

func appendExecute(dst []byte, c *Call) []byte {
	if len(c.Args) == 0 {
		return append(dst, c.Query...)
	}
	dst = append(dst, "EXECUTE "...)
	dst = append(dst, statementName(c.Query)...)
	separator := byte('(')
	for _, a := range c.Args {
		dst = appendLiteral(append(dst, separator), a)
		separator = ','
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
	case []byte:
		dst = append(dst, `'\x`...)
		dst = hex.AppendEncode(dst, a)
		return append(dst, '\'')
	case array:
		return append(appendArray(append(dst, '\''), a, true), '\'')
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

// appendArray appends the text form of an array. quoted says that it is within
// a literal.
func appendArray(dst []byte, a array, quoted bool) []byte {
	dst = append(dst, '{')
	for i := a.column; i < len(a.rows); i += a.width {
		if i > a.column {
			dst = append(dst, ',')
		}
		switch v := a.rows[i].(type) {
		case int64:
			dst = strconv.AppendInt(dst, v, 10)
		case string:
			dst = append(dst, '"')
			for j := range len(v) {
				switch c := v[j]; {
				case c == '"' || c == '\\':
					dst = append(dst, '\\', c)
				case c == '\'' && quoted:
					dst = append(dst, c, c)
				default:
					dst = append(dst, c)
				}
			}
			dst = append(dst, '"')
		case []byte:
			dst = append(dst, `"\\x`...)
			dst = hex.AppendEncode(dst, v)
			dst = append(dst, '"')
		default:
			panic(fmt.Sprintf("sqlstore: an argument of type %T", v)) // all arguments are made in this package
		}
	}
	return append(dst, '}')
}
