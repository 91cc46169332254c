//go:build cgo

package dialect

import (
	"errors"
	"strings"

	"github.com/mattn/go-sqlite3"
)

func classifySQLite(err error) (Class, string) {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return Permanent, ""
	}
	switch e.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return Transient, "another process keeps the database locked"
	case sqlite3.ErrFull:
		return Permanent, "free space on the disk, or raise the limit of the database's size"
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return Permanent, "make the database file and its directory writable"
	case sqlite3.ErrCantOpen:
		return Permanent, "check that the directory exists, and that it and the file may be read and written"
	case sqlite3.ErrNotADB, sqlite3.ErrCorrupt:
		return Permanent, "the file is damaged or no SQLite database: restore a backup"
	case sqlite3.ErrIoErr:
		return Permanent, "check the disk"
	}
	if strings.HasPrefix(e.Error(), "no such table") {
		return Absent, ""
	}
	return Permanent, ""
}

func fromSQLite(err error) bool { return errors.As(err, new(sqlite3.Error)) }
