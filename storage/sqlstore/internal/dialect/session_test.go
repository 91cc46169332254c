package dialect

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A list may take as long as it likes while its server sends something.
func TestABoundedConnectionEndsOnlyAfterSilence(t *testing.T) {
	for _, a := range []Access{Reads, Commits, Leases} {
		synctest.Test(t, func(t *testing.T) {
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
