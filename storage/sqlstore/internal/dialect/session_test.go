package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

// A list may take as long as it likes while its server sends something.
func TestABoundedConnectionEndsOnlyAfterSilence(t *testing.T) {
	for _, a := range []Access{Reads, Commits, Leases} {
		testenv.Bubble(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			c := &boundedConn{Conn: client, answer: a.patience()}
			const rows = 100
			go func() {
				for range rows {
					time.Sleep(MaxAnswer - time.Second)
					_, _ = server.Write([]byte{1})
				}
			}()
			b := make([]byte, 1)
			for i := range rows {
				if _, err := c.Read(b); err != nil {
					t.Fatalf("row %d: %v", i, err)
				}
			}
			began := time.Now()
			if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			if took := time.Since(began); took != MaxAnswer {
				t.Errorf("it waited %v in silence, want %v", took, MaxAnswer)
			}
		})
	}
}

// A mutedServer answers nothing, or nothing once there is a connection.
type mutedServer struct {
	driver.Connector
	driver.Conn
	greets bool
}

func (m mutedServer) Connect(ctx context.Context) (driver.Conn, error) {
	if m.greets {
		return m, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (mutedServer) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (mutedServer) Close() error { return nil }

// Another attempt may help, unless it was the caller who had no more time.
func TestAConnectionThatIsNotMadeInTimeIsLost(t *testing.T) {
	for _, greets := range []bool{false, true} {
		testenv.Bubble(t, func(t *testing.T) {
			c := &mysqlConnector{mutedServer{greets: greets}, mysqlSession(Commits, false), maxConnect}
			began := time.Now()
			_, err := c.Connect(t.Context())
			if class, _ := MySQL.ClassOf(err); class != Lost || time.Since(began) != maxConnect {
				t.Errorf("greets %v: after %v %v, of the class %v", greets, time.Since(began), err, class)
			}
			ctx, cancel := context.WithTimeout(t.Context(), maxConnect/2)
			defer cancel()
			_, err = c.Connect(ctx)
			if class, _ := MySQL.ClassOf(err); class != Permanent || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("greets %v, the caller's end: %v, of the class %v", greets, err, class)
			}
		})
	}
}
