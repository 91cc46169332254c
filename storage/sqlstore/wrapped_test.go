package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// A wrapping is a connection as drivers make it that only add something to
// another one, such as traces: its results are their own.
type wrapping struct{ driver.Conn }

func (w wrapping) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := w.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return struct{ driver.Result }{result}, nil
}

func (w wrapping) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return w.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type wrappingConnector struct{ driver.Connector }

func (c wrappingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return wrapping{conn}, err
}

func TestADriverAroundThatOfMySQLTellsTheNumbersOfEvents(t *testing.T) {
	config, _, err := dialect.ParseMySQL(databases[2].database(t)[len("mysql:"):])
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(wrappingConnector{connector})
	defer db.Close()
	s, err := New(db, MySQL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 3 {
		if cursor, err := s.Commit(t.Context(), creation(unclaimed("p", i))); err != nil || int(cursor) != i+1 {
			t.Fatalf("commit %d: cursor %d, error %v", i, cursor, err)
		}
	}
}
