//go:build cgo

package sqlstore

import (
	"errors"
	"strings"

	"github.com/mattn/go-sqlite3"
)

func classifySQLite(err error) (class, string) {
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
		return permanent, "check that the directory exists, and that it and the file may be read and written"
	case sqlite3.ErrNotADB, sqlite3.ErrCorrupt:
		return permanent, "the file is damaged or no SQLite database: restore a backup"
	case sqlite3.ErrIoErr:
		return permanent, "check the disk"
	}
	if strings.HasPrefix(e.Error(), "no such table") {
		return absent, ""
	}
	return permanent, ""
}

func fromSQLite(err error) bool { return errors.As(err, new(sqlite3.Error)) }
