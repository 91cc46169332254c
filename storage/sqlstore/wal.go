package sqlstore

import (
	"context"
	"database/sql"
	"os"
	"strconv"

	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// SQLite writes its log to the file again and again, but begins the log anew
// only at a moment without readers of it. Until then the log grows, and after
// that its file stays as large as it was.

const (
	// checkWALEvery is how much is written, about, between two looks at the log.
	checkWALEvery = 16 << 20
	// bytesPerCommit is what a small transaction adds to the log, about.
	bytesPerCommit = 64 << 10
	// waitForReaders is how long commits wait for readers of a log that is too
	// large, in milliseconds.
	waitForReaders = 100
)

// findWAL finds the log of a SQLite database. One in memory has none.
func (s *Store) findWAL(ctx context.Context) error {
	if s.d.Dir != dialect.SQLite.Dir {
		return nil
	}
	var file string
	err := dialect.QueryRow(ctx, s.write, "SELECT file FROM pragma_database_list WHERE name = 'main'", &file)
	if file != "" {
		s.wal = file + "-wal"
	}
	return err
}

// keepWALShort empties the log of a SQLite database that has become too large,
// if a transaction of so many bytes made it time to look. If readers keep it
// from that, the next look will do.
func (s *Store) keepWALShort(bytes int) {
	if s.wal == "" {
		return
	}
	if s.written.Add(int64(bytes)+bytesPerCommit) < checkWALEvery {
		return
	}
	s.written.Store(0)
	if f, err := os.Stat(s.wal); err != nil || f.Size() <= dialect.MaxWAL {
		return
	}
	_ = s.onConn(s.write, func(ctx context.Context, c *sql.Conn) error {
		var wait int
		err := dialect.QueryRow(ctx, c, "PRAGMA busy_timeout", &wait)
		if err != nil {
			return err
		}
		for _, statement := range []string{
			"PRAGMA busy_timeout = " + strconv.Itoa(min(wait, waitForReaders)), "PRAGMA wal_checkpoint(TRUNCATE)",
		} {
			if _, err = c.ExecContext(ctx, statement); err != nil {
				break
			}
		}
		if _, restoring := c.ExecContext(ctx, "PRAGMA busy_timeout = "+strconv.Itoa(wait)); restoring != nil {
			dialect.Discard(c)
		}
		return err
	})
}
