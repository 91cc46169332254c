package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	_ "github.com/mattn/go-sqlite3" // registers the driver "sqlite3"
)

var sqlite = dialect{
	name:      "SQLite",
	driver:    "sqlite3",
	dir:       "sqlite",
	in:        "VALUES ",
	fewShapes: true,
	rowValues: true,
	upsert:    onConflict,
	// SQLite has no server: this is the clock of the machine, in milliseconds.
	clock:     "CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000",
	begin:     []string{"BEGIN IMMEDIATE"},
	beginRead: []string{"BEGIN"},
	migrate: func(ctx context.Context, c *sql.Conn, _ string, f func() error) error {
		return inTransaction(ctx, c, "BEGIN IMMEDIATE", f)
	},
	classify: classifySQLite,
}

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
