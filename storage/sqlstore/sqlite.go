package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/mattn/go-sqlite3"
)

var sqlite = dialect{
	name:      "SQLite",
	dir:       "sqlite",
	in:        "VALUES ",
	fewShapes: true,
	rowValues: true,
	unindexed: "+",
	upsert:    onConflict,
	// SQLite has no server: this is the clock of the machine, in milliseconds.
	clock:     "CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000",
	begin:     []string{"BEGIN IMMEDIATE"},
	beginRead: []string{"BEGIN"},
	migrate: func(ctx context.Context, c *sql.Conn, _ string, f func() error) error {
		return inTransaction(ctx, c, []string{"BEGIN IMMEDIATE"}, f)
	},
	classify: classifySQLite,
	drivers:  "github.com/mattn/go-sqlite3",
	fromHere: fromSQLite,
}

// sqliteWrites are settings of the connection that commits. A commit changes
// pages here and there in the file, many of them the same as the one before: so
// pages go from the log to the file when it has 32 MiB, not 4. What undoes half
// a statement is kept in memory, not in a temporary file.
var sqliteWrites = []string{"PRAGMA wal_autocheckpoint = 8192", "PRAGMA temp_store = MEMORY"}

// A sqliteConnector makes connections with settings that the driver has no
// parameters for.
type sqliteConnector struct {
	dsn      string
	settings []string
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

func (c *sqliteConnector) Driver() driver.Driver { return new(sqlite3.SQLiteDriver) }

// onConflict is the upsert of SQLite and PostgreSQL.
func onConflict(key, rest []string) string {
	return " ON CONFLICT (" + strings.Join(key, ", ") + ") DO UPDATE SET " + assign(rest, func(c string) string { return "excluded." + c })
}

// assign lists assignments to columns.
func assign(columns []string, value func(column string) string) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = c + " = " + value(c)
	}
	return strings.Join(parts, ", ")
}
