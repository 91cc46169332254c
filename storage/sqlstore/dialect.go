package sqlstore

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// A Dialect is one of the databases that the package supports.
type Dialect uint8

// The dialects.
const (
	// SQLite is SQLite 3.42 or newer through github.com/mattn/go-sqlite3.
	SQLite Dialect = iota + 1
	// MySQL is MySQL 8.0 or MariaDB 10.6 or newer through
	// github.com/go-sql-driver/mysql.
	MySQL
	// PostgreSQL is PostgreSQL 13 or newer through github.com/lib/pq, or in
	// [New] through github.com/jackc/pgx/v5/stdlib as well.
	PostgreSQL
)

// String is the name of the database.
func (d Dialect) String() string {
	if f := d.fragments(); f != nil {
		return f.Name
	}
	return "Dialect(" + strconv.Itoa(int(d)) + ")"
}

func (d Dialect) fragments() *dialect.Dialect {
	switch d {
	case SQLite:
		return &dialect.SQLite
	case MySQL:
		return &dialect.MySQL
	case PostgreSQL:
		return &dialect.PostgreSQL
	}
	return nil
}

// An Error is an error of the database or its driver.
type Error struct {
	// Op is what the store was doing.
	Op string
	// Hint is what to do about it, or empty.
	Hint string
	Err  error
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return fmt.Sprintf("sqlstore: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("sqlstore: %s: %v; %s", e.Op, e.Err, e.Hint)
}

// Unwrap returns the driver's error.
func (e *Error) Unwrap() error { return e.Err }

// explain wraps an error of the driver; nil stays nil.
func explain(d *dialect.Dialect, op string, err error) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return err
	}
	_, hint := d.ClassOf(err)
	return &Error{Op: op, Hint: hint, Err: err}
}
