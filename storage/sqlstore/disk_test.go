package sqlstore

import (
	"context"

	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// wordy is a record of some 1.5 kB, so that a table soon needs room.
func wordy(guid string, index int) *lrp.ActualLRP {
	r := unclaimed(guid, index)
	r.PlacementError = lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: strings.Repeat("0123456789abcdef", 90)}
	return r
}

// A fullDisk is a database on a disk of its own.
type fullDisk struct {
	dsn         string
	fill, empty func(testing.TB)
	// revive, unless it is nil, starts the server again if it has ended, as
	// MariaDB does now and then when it finds no room.
	revive func(testing.TB)
}

var onSmallDisks = []struct {
	name string
	make func(t testing.TB) fullDisk
}{
	{"sqlite", func(t testing.TB) fullDisk {
		d := testdb.SmallDisk(t, 8<<20)
		return fullDisk{"sqlite:" + filepath.Join(d.Dir, "diego.db"), d.Fill, d.Empty, nil}
	}},
	{"postgres", func(t testing.TB) fullDisk {
		s := testdb.StartPostgresOnSmallDisk(t)
		return fullDisk{s.Database(t), s.FillDisk, s.EmptyDisk, nil}
	}},
	{"mysql", func(t testing.TB) fullDisk {
		s := testdb.StartMySQLOnSmallDisk(t)
		return fullDisk{"mysql:" + s.Database(t), s.FillDisk, s.EmptyDisk, s.Revive}
	}},
}

// The data is on a disk that is really full, several times.
func TestADiskThatIsReallyFullLosesNothingThatWasAcknowledged(t *testing.T) {
	for _, d := range onSmallDisks {
		t.Run(d.name, func(t *testing.T) {
			disk := d.make(t)
			s := mustOpen(t, disk.dsn, Options{})
			const writers = 4
			var next [writers]int // the first record of each writer that was not acknowledged
			var ended atomic.Bool // the server has, and so what became of the last commits is unknown
			check := func(when string) {
				t.Helper()
				total := 0
				for w := range writers {
					n := count(t, s, fmt.Sprint("p", w))
					if ended.Load() && n == next[w]+1 {
						next[w]++
					}
					if n != next[w] {
						t.Fatalf("%s there are %d records of writer %d, and %d commits were acknowledged", when, n, w, next[w])
					}
					total += n
				}
				checkLog(t, s, total)
			}
			for round := range 3 {
				ended.Store(false)
				disk.fill(t)
				var wg sync.WaitGroup
				for w := range writers {
					wg.Go(func() {
						for ; next[w] < 10_000; next[w]++ {
							_, err := s.Commit(t.Context(), creation(wordy(fmt.Sprint("p", w), next[w])))
							var away *Error
							switch {
							case err == nil:
								continue
							case disk.revive != nil && errors.As(err, &away) && strings.HasPrefix(away.Hint, "check that the database server runs"):
								ended.Store(true)
							default:
								wantError(t, err, "committing", "free space on the")
							}
							return
						}
						t.Errorf("round %d: the disk does not get full", round)
					})
				}
				wg.Wait()
				if t.Failed() {
					return
				}
				if ended.Load() {
					t.Logf("round %d: the server has ended with its disk full", round)
					disk.empty(t)
					disk.revive(t)
				} else {
					check("while the disk is full")
					disk.empty(t)
				}
				check("with room again")
				// What failed was not written: it can be created now.
				for w := range writers {
					if _, err := s.Commit(t.Context(), creation(wordy(fmt.Sprint("p", w), next[w]))); err != nil {
						t.Fatalf("with room again: %v", err)
					}
					next[w]++
				}
				check("with room again and more written")
			}
		})
	}
}

// PostgreSQL gives up when it cannot write its log. A caller that commits sees
// nothing of that, if there is room and a server again in time.
func TestAServerThatEndsWithItsDiskFullIsWaitedFor(t *testing.T) {
	server := testdb.StartPostgresOnSmallDisk(t)
	dsn := server.Database(t)
	s := mustOpen(t, dsn, Options{RetryFor: 2 * time.Minute})
	impatient := mustOpen(t, dsn, Options{RetryFor: time.Millisecond})
	admin := openDB(t, PostgreSQL, dsn)

	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var acknowledged atomic.Int64
	const writers = 4
	for w := range writers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; {
				_, err := s.Commit(context.Background(), creation(unclaimed(fmt.Sprint("p", w), i)))
				var full *Error
				switch {
				case err == nil:
					i++
					acknowledged.Add(1)
				case errors.As(err, &full) && full.Hint == "free space on the server's disk":
					runtime.Gosched() // a table was first to find no room
				default:
					t.Errorf("writer %d, commit %d: %v", w, i, err)
					return
				}
			}
		})
	}
	await := func(n int64) {
		for acknowledged.Load() < n && !t.Failed() {
			runtime.Gosched()
		}
	}
	await(100)
	server.FillDisk(t)
	// The next commit needs a new file of the log.
	for class := dialect.Permanent; class != dialect.Lost && !t.Failed(); {
		_, err := admin.ExecContext(t.Context(), "SELECT pg_switch_wal()")
		class, _ = dialect.PostgreSQL.ClassOf(err)
	}
	if _, err := impatient.Commit(t.Context(), creation(unclaimed("q", 0))); err == nil {
		t.Error("a server without room for its log has committed")
	} else {
		wantError(t, err, "committing", "server")
	}
	server.EmptyDisk(t)
	server.Revive(t)
	await(acknowledged.Load() + 100)
	stop()
	wg.Wait()
	total := count(t, s, "q")
	if total != 0 {
		t.Error("the commit of the impatient one has happened")
	}
	for w := range writers {
		total += count(t, s, fmt.Sprint("p", w))
	}
	if total != int(acknowledged.Load()) {
		t.Errorf("%d records, and %d commits were acknowledged", total, acknowledged.Load())
	}
	checkLog(t, s, total)
}
