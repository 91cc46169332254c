package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// A stranger is a driver that says all errors in words of its own.
type stranger struct{ driver.Driver }

func (d stranger) Open(dsn string) (driver.Conn, error) {
	c, err := d.Driver.Open(dsn)
	return strangeConn{c}, err
}

type strangeConn struct{ driver.Conn }

func (c strangeConn) Prepare(query string) (driver.Stmt, error) {
	s, err := c.Conn.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("stranger: %v", err)
	}
	return s, nil
}

// A database behind a driver whose errors nobody can read would open, and then
// fail at the first conflict.
func TestNewRefusesADriverThatItDoesNotKnow(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.database(t)
			known := openDB(t, d.dialect, dsn)
			name := "stranger-" + d.name
			sql.Register(name, stranger{known.Driver()})
			db, err := sql.Open(name, driverDSN(dsn))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			_, err = New(db, d.dialect, nil)
			wantError(t, err, "the driver sqlstore.stranger is not supported for "+d.dialect.String())
			for _, supported := range strings.Split(d.dialect.fragments().Drivers, " or ") {
				wantError(t, err, supported)
			}
			if s, err := New(known, d.dialect, nil); err != nil || s.Close() != nil {
				t.Errorf("the driver itself: %v", err)
			}
		})
	}
}

// A database that is another one than the dialect says has a driver whose errors
// cannot be read either.
func TestNewRefusesTheDialectOfAnotherDatabase(t *testing.T) {
	db := openDB(t, PostgreSQL, databases[1].database(t))
	for _, d := range []Dialect{SQLite, MySQL} {
		_, err := New(db, d, nil)
		wantError(t, err, "the driver *pq.Driver is not supported for "+d.String())
	}
}

func TestADatabaseThatIsAwayIsNoUnknownDriver(t *testing.T) {
	for _, name := range []string{"postgres", "pgx"} {
		db, err := sql.Open(name, "postgres://diego@127.0.0.1:1/diego?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		_, err = New(db, PostgreSQL, nil)
		wantError(t, err, "check that the database server runs and can be reached")
	}
}

// A network that fails while New asks what the driver can do says nothing about
// the driver.
func TestALostConnectionIsNoLimitOfTheDriver(t *testing.T) {
	for name, dsn := range map[string]string{
		"postgres": "postgres://diego@127.0.0.1:1/diego?sslmode=disable",
		"pgx":      "postgres://diego@127.0.0.1:1/diego?sslmode=disable",
		"mysql":    "diego@tcp(127.0.0.1:1)/diego",
	} {
		db, err := sql.Open(name, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		d := &dialect.PostgreSQL
		if name == "mysql" {
			d = &dialect.MySQL
		}
		if _, err := joins(d, db); err == nil {
			t.Errorf("%s: a server that is away has said what the driver can do", name)
		}
	}
}

// What pgx says means the same as what lib/pq says.
func TestErrorsOfBothDriversOfPostgreSQLHaveOneMeaning(t *testing.T) {
	dsn := databases[1].database(t)
	for _, name := range []string{"postgres", "pgx"} {
		db, err := sql.Open(name, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		c, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			statement string
			class     dialect.Class
		}{
			{"SELECT 1 FROM nowhere", dialect.Absent},
			{"SELECT EXP(1000::float8)", dialect.Guarded},
			{"SELEC", dialect.Permanent},
			{"SELECT pg_terminate_backend(pg_backend_pid())", dialect.Lost},
		} {
			_, err := c.ExecContext(context.Background(), x.statement)
			if got, _ := dialect.PostgreSQL.ClassOf(err); got != x.class || err == nil {
				t.Errorf("%s: %s: %v has class %d, want %d", name, x.statement, err, got, x.class)
			}
		}
		dialect.Discard(c)
		if err := c.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
			t.Error(err)
		}
	}
}
