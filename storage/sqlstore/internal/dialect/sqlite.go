package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"
)

// SQLite is SQLite.
var SQLite = Dialect{
	Name:      "SQLite",
	Dir:       "sqlite",
	in:        "VALUES ",
	fewShapes: true,
	rowValues: true,
	unindexed: "+",
	Upsert:    onConflict,
	// SQLite has no server: this is the clock of the machine, in milliseconds.
	Clock:     "CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000",
	Begin:     []string{"BEGIN IMMEDIATE"},
	BeginRead: []string{"BEGIN"},
	Migrate: func(ctx context.Context, c *sql.Conn, _ string, f func() error) error {
		return InTransaction(ctx, c, []string{"BEGIN IMMEDIATE"}, f)
	},
	classify: classifySQLite,
	Drivers:  "github.com/mattn/go-sqlite3",
	FromHere: fromSQLite,
}

// sqliteWrites are settings of the connection that commits. A commit changes
// pages in many places of the file, often the same as the commit before. So
// pages go from the log to the file at 32 MiB, not at 4. The data for undoing
// half a statement is kept in memory, not in a temporary file.
// When the log begins anew, its file is cut to MaxWAL.
var sqliteWrites = []string{"PRAGMA wal_autocheckpoint = 8192", "PRAGMA temp_store = MEMORY", fmt.Sprint("PRAGMA journal_size_limit = ", MaxWAL)}

// MaxWAL is how large the log beside a SQLite database may stay: 64 MiB.
const MaxWAL = 64 << 20

// A SQLiteFile is what a data source name says about a SQLite database.
type SQLiteFile struct {
	Path string
	// Mode and synchronous are parameters of the name, empty where it has none.
	Mode, synchronous string
}

// sqliteParameters are the values that the parameters of a name may have.
var sqliteParameters = map[string][]string{
	"mode":         {"ro", "rw", "rwc"},
	"_synchronous": {"NORMAL", "FULL", "EXTRA"}, // OFF may damage the file
}

// ParseSQLite parses the part of a data source name after "sqlite:". It refuses
// unknown and repeated parameters, which the driver would ignore.
func ParseSQLite(name string) (f SQLiteFile, err error) {
	path, query, _ := strings.Cut(name, "?")
	if path == "" {
		return f, errors.New("it has no path")
	}
	given, err := url.ParseQuery(query)
	if err != nil {
		return f, err
	}
	for _, parameter := range slices.Sorted(maps.Keys(given)) {
		allowed, known := sqliteParameters[parameter]
		if !known {
			return f, fmt.Errorf("the parameter %s is not known; there are %s, and all else is in the options", parameter,
				strings.Join(slices.Sorted(maps.Keys(sqliteParameters)), " and "))
		}
		if values := given[parameter]; len(values) != 1 || !slices.Contains(allowed, values[0]) {
			return f, fmt.Errorf("%s is %s; want one of %s, once", parameter, strings.Join(values, " and "), strings.Join(allowed, ", "))
		}
	}
	return SQLiteFile{path, given.Get("mode"), given.Get("_synchronous")}, nil
}

// dsn is the name for the driver. busy is how long a statement waits for other
// processes. fullSync applies if the name does not have _synchronous.
func (f *SQLiteFile) dsn(busy time.Duration, fullSync bool) string {
	synchronous := "NORMAL"
	if fullSync {
		synchronous = "FULL"
	}
	parameters := fmt.Sprintf("_busy_timeout=%d&_journal_mode=WAL&_synchronous=%s&_stmt_cache_size=128&_txlock=immediate",
		busy.Milliseconds(), cmp.Or(f.synchronous, synchronous))
	if f.Mode != "" {
		parameters += "&mode=" + f.Mode
	}
	return "file:" + (&url.URL{Path: f.Path}).EscapedPath() + "?" + parameters
}

// Connectors make the connection that writes and those that read. The parameters
// are those of dsn. now, unless it is nil, is the clock of [SQLiteNow].
func (f *SQLiteFile) Connectors(busy time.Duration, fullSync bool, now func() time.Time) (write, read driver.Connector) {
	dsn := f.dsn(busy, fullSync)
	// A reader's cache is useless after the next commit.
	return &sqliteConnector{dsn + "&_cache_size=-65536", sqliteWrites, now}, &sqliteConnector{dsn + "&_cache_size=-16384&_query_only=1", nil, now}
}

// SQLiteNow is the Clock of a database whose connections have a clock of their
// own.
const SQLiteNow = "diego_now()"

// A sqliteConnector makes connections with settings that the driver has no
// parameters for.
type sqliteConnector struct {
	dsn      string
	settings []string
	now      func() time.Time
}

func (c *sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	for _, statement := range c.settings {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

func (c *sqliteConnector) Driver() driver.Driver {
	if c.now == nil {
		return new(sqlite3.SQLiteDriver)
	}
	return &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error {
		return conn.RegisterFunc(strings.TrimSuffix(SQLiteNow, "()"), func() int64 { return c.now().UnixNano() }, false)
	}}
}

// onConflict is the upsert of SQLite and PostgreSQL.
func onConflict(key, rest []string) string {
	return " ON CONFLICT (" + strings.Join(key, ", ") + ") DO UPDATE SET " + Assign(rest, func(c string) string { return "excluded." + c })
}

// Assign lists assignments to columns.
func Assign(columns []string, value func(column string) string) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = c + " = " + value(c)
	}
	return strings.Join(parts, ", ")
}
