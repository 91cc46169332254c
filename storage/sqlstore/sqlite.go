package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/mattn/go-sqlite3"
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
	classify: func(err error) (class, string) {
		var e sqlite3.Error
		if !errors.As(err, &e) {
			return permanent, ""
		}
		switch e.Code {
		case sqlite3.ErrBusy, sqlite3.ErrLocked:
			return transient, "another process keeps the database locked"
		case sqlite3.ErrFull:
			return permanent, "free space on the disk, or raise the limit of the database's size"
		case sqlite3.ErrReadonly, sqlite3.ErrPerm:
			return permanent, "make the database file and its directory writable"
		case sqlite3.ErrCantOpen:
			return permanent, "check that the directory exists and may be written to"
		case sqlite3.ErrNotADB, sqlite3.ErrCorrupt:
			return permanent, "the file is damaged or no SQLite database: restore a backup"
		case sqlite3.ErrIoErr:
			return permanent, "check the disk"
		}
		if strings.HasPrefix(e.Error(), "no such table") {
			return absent, ""
		}
		return permanent, ""
	},
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
