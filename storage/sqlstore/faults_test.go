package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/storagetest"
)

func unclaimed(guid string, index int) *lrp.ActualLRP {
	return &lrp.ActualLRP{
		Key:   lrp.Key{ProcessGUID: guid, DefinitionID: "d", Index: index, Domain: "apps"},
		State: lrp.Unclaimed, Since: noon, ModificationTag: lrp.ModificationTag{Epoch: noon.UnixNano()},
	}
}

// creation is a batch that creates r, with an event.
func creation(r *lrp.ActualLRP) storage.Batch {
	return storage.Batch{
		ActualLRPs: []lrp.Write{{After: r}},
		Events:     []storage.Event{{LRP: &lrp.Event{Kind: lrp.InstanceCreated, After: r}}},
	}
}

func count(t testing.TB, s storage.Reader, guid string) (n int) {
	t.Helper()
	for _, err := range s.ActualLRPs(context.Background(), storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// wantError checks that an error says what it must and keeps the password.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("it succeeded")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%q has the password", err)
	}
}

func TestADataSourceNameThatIsWrongIsExplained(t *testing.T) {
	for dsn, words := range map[string][]string{
		"":                                   {"begins with none of"},
		"oracle://user:secret@host/db":       {"begins with none of"},
		"sqlite:":                            {"SQLite", "want one like"},
		"sqlite:/no/such/directory/diego.db": {"check that the directory exists"},
		"mysql:user:secret@tcp(":             {"MySQL", "want one like"},
		"postgres://user:secret@host:port/d": {"PostgreSQL", "want one like"},
		"postgres://user:secret@host/d?sslmode=always":         {"PostgreSQL", "sslmode", "always"},
		"mysql://user:secret@host/d?tls=always":                {"MySQL", "always"},
		"postgres://user:secret@host/d?sslmode=secret":         {"PostgreSQL", "want one like"},
		"postgres://user:secret@127.0.0.1:1/d?sslmode=disable": {"check that the database server runs"},
		"mysql:user:secret@tcp(127.0.0.1:1)/d":                 {"check that the database server runs"},
		"mysql://user:secret@127.0.0.1:1/d":                    {"check that the database server runs"},
	} {
		t.Run(dsn, func(t *testing.T) {
			_, err := open(t.Context(), dsn, nil)
			wantError(t, err, words...)
		})
	}
	_, err := Open(t.Context(), ":memory:", &Options{Prefix: "Diego; DROP"})
	wantError(t, err, "prefix")
}

func TestADatabaseThatDoesNotExistIsExplained(t *testing.T) {
	for _, d := range databases[1:] {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.database(t)
			at := strings.LastIndex(dsn, "/diego_")
			name, rest, _ := strings.Cut(dsn[at+1:], "?")
			_, err := open(t.Context(), strings.TrimSuffix(dsn[:at+1]+name+"_missing?"+rest, "?"), nil)
			wantError(t, err, "name a database that exists")
		})
	}
}

// withUser adds a user without rights to the database and returns the DSN for
// it.
func withUser(t *testing.T, dsn, grant string) string {
	admin := mustOpen(t, dsn, Options{Prefix: "admin_"})
	t.Cleanup(func() { admin.Close() })
	user := fmt.Sprintf("guest%d_%d", os.Getpid(), prefixes.Add(1))
	if admin.d == &dialect.PostgreSQL {
		exec(t, admin, "CREATE USER "+user+" PASSWORD 'secret'")
		t.Cleanup(func() {
			exec(t, admin, "DROP OWNED BY "+user)
			exec(t, admin, "DROP USER "+user)
		})
		if grant != "" {
			exec(t, admin, "GRANT "+grant+" ON ALL TABLES IN SCHEMA public TO "+user)
		}
		at := strings.Index(dsn, "@")
		return "postgres://" + user + ":secret" + dsn[at:]
	}
	exec(t, admin, "CREATE USER "+user+"@'127.0.0.1' IDENTIFIED BY 'secret'")
	t.Cleanup(func() { exec(t, admin, "DROP USER "+user+"@'127.0.0.1'") })
	config, err := mysql.ParseDSN(strings.TrimPrefix(dsn, "mysql:"))
	if err != nil {
		t.Fatal(err)
	}
	if grant != "" {
		exec(t, admin, "GRANT "+grant+" ON "+config.DBName+".* TO "+user+"@'127.0.0.1'")
	} else {
		exec(t, admin, "GRANT SHOW VIEW ON "+config.DBName+".* TO "+user+"@'127.0.0.1'")
	}
	config.User, config.Passwd = user, "secret"
	return "mysql:" + config.FormatDSN()
}

func TestAUserWithoutPermissionIsToldWhichItNeeds(t *testing.T) {
	for _, d := range databases[1:] {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.database(t)
			t.Run("to migrate", func(t *testing.T) {
				_, err := open(t.Context(), withUser(t, dsn, ""), &Options{RetryFor: time.Millisecond})
				wantError(t, err, "grant it SELECT, INSERT, UPDATE and DELETE")
			})
			t.Run("to write", func(t *testing.T) {
				mustOpen(t, dsn, Options{}).Close()
				_, err := open(t.Context(), withUser(t, dsn, "SELECT"), nil)
				wantError(t, err, "opening", "grant it SELECT, INSERT, UPDATE and DELETE")
			})
		})
	}
}

func TestAFileThatCannotBeWrittenIsExplained(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "diego.db")
	if err := mustOpen(t, "sqlite:"+path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	// Root may write anything, but not through a connection that only reads.
	_, err := Open(t.Context(), "sqlite:"+path+"?mode=ro", nil)
	wantError(t, err, "opening", "make the database file and its directory writable")

	if err := os.WriteFile(filepath.Join(dir, "other.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), "sqlite:"+filepath.Join(dir, "other.db"), nil)
	wantError(t, err, "no SQLite database")
}

// A full disk is played by SQLite's own limit on the size of the file.
func TestAFullDiskLosesNothingThatWasAcknowledged(t *testing.T) {
	s := mustOpen(t, "sqlite:"+filepath.Join(t.TempDir(), "diego.db"), Options{})
	exec(t, s, "PRAGMA max_page_count = 100")
	acknowledged := 0
	var err error
	for acknowledged < 10_000 {
		if _, err = s.Commit(t.Context(), creation(unclaimed("p", acknowledged))); err != nil {
			break
		}
		acknowledged++
	}
	wantError(t, err, "free space on the disk")
	if n := count(t, s, "p"); n != acknowledged {
		t.Errorf("%d records, and %d commits were acknowledged", n, acknowledged)
	}
	exec(t, s, "PRAGMA max_page_count = 1000000")
	if _, err := s.Commit(t.Context(), creation(unclaimed("p", acknowledged))); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

// A group fails for the sake of one item only if that item is alone.
func TestACommitThatTheDatabaseRefusesFailsAlone(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		if s.d == &dialect.SQLite {
			exec(t, s, "CREATE TRIGGER refuse BEFORE INSERT ON diego_actual_lrps WHEN NEW.process_guid = 'bad' BEGIN SELECT RAISE(ABORT, 'refused'); END")
		} else {
			exec(t, s, "ALTER TABLE diego_actual_lrps ADD CONSTRAINT refused CHECK (process_guid <> 'bad')")
		}
		var wg sync.WaitGroup
		var failed atomic.Int64
		for i := range 64 {
			guid := "good"
			if i%8 == 0 {
				guid = "bad"
			}
			wg.Go(func() {
				if _, err := s.Commit(t.Context(), creation(unclaimed(guid, i))); (err != nil) != (guid == "bad") {
					t.Errorf("%s: %v", guid, err)
				} else if err != nil {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		if n := count(t, s, "good"); n != 56 || failed.Load() != 8 {
			t.Errorf("%d records and %d failures, want 56 and 8", n, failed.Load())
		}
		checkLog(t, s, 56)
	})
}

// checkLog wants a log of n events, with consecutive numbers but for gaps, which
// end with events of their own.
func checkLog(t testing.TB, s storage.Reader, n int) {
	t.Helper()
	last, events := storage.Cursor(0), 0
	for e, err := range s.Events(context.Background(), 0, storage.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Gap == nil {
			events++
		}
		if e.Sequence != last+1 && (e.Gap == nil || *e.Gap != storage.Gap{After: last, First: e.Sequence}) {
			t.Fatalf("event %d comes after event %d", e.Sequence, last)
		}
		last = e.Sequence
	}
	if events != n {
		t.Errorf("%d events, want %d", events, n)
	}
}

// A server is killed in the middle of commits, again and again.
func TestNothingAcknowledgedIsLostWhenTheServerIsKilled(t *testing.T) {
	servers := map[string]func(testing.TB) *testdb.Server{"postgres": testdb.StartPostgres, "mysql": testdb.StartMySQL}
	for _, name := range []string{"postgres", "mysql"} {
		t.Run(name, func(t *testing.T) {
			server := servers[name](t)
			dsn := server.Database(t)
			if name == "mysql" {
				dsn = "mysql:" + dsn
			}
			s := mustOpen(t, dsn, Options{RetryFor: time.Minute})
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			var acknowledged atomic.Int64
			const writers = 8
			for w := range writers {
				wg.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						// Not even a retry is seen: each creation happens once.
						if _, err := s.Commit(context.Background(), creation(unclaimed(fmt.Sprint("p", w), i))); err != nil {
							t.Errorf("writer %d, commit %d: %v", w, i, err)
							return
						}
						acknowledged.Add(1)
					}
				})
			}
			for range 3 {
				target := acknowledged.Load() + 200
				for acknowledged.Load() < target && !t.Failed() {
					runtime.Gosched()
				}
				server.Kill(t)
				server.Start(t)
			}
			stop()
			wg.Wait()
			total := 0
			for w := range writers {
				total += count(t, s, fmt.Sprint("p", w))
			}
			if total != int(acknowledged.Load()) {
				t.Errorf("%d records, and %d commits were acknowledged", total, acknowledged.Load())
			}
			checkLog(t, s, total)
		})
	}
}

// The connection ends after the database has committed and before it says so,
// which the store must tell from a commit that never was.
func TestACommitWhoseAnswerIsLostIsNeitherRepeatedNorForgotten(t *testing.T) {
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			for _, events := range []bool{true, false} {
				for _, happened := range []bool{true, false} {
					for _, first := range []bool{true, false} { // the first commit takes more round trips
						t.Run(fmt.Sprintf("events=%v happened=%v first=%v", events, happened, first), func(t *testing.T) {
							s := mustOpen(t, d.database(t), Options{})
							want := storage.Cursor(1)
							if !first {
								if _, err := s.Commit(t.Context(), creation(unclaimed("q", 0))); err != nil {
									t.Fatal(err)
								}
								want++
							}
							cut := cutAnswer(t, s, happened)
							log := int(want)
							b := creation(unclaimed("p", 0))
							if !events {
								b.Events, want, log = nil, 0, log-1
							}
							cursor, err := s.Commit(t.Context(), b)
							if err != nil || cursor != want || !*cut {
								t.Errorf("cursor %d, error %v, want %d", cursor, err, want)
							}
							if n := count(t, s, "p"); n != 1 {
								t.Errorf("%d records", n)
							}
							checkLog(t, s, log)
						})
					}
				}
			}
		})
	}
}

// cutAnswer loses the connection when the next transaction commits, after it
// has or before.
func cutAnswer(t *testing.T, s *Store, happened bool) *bool {
	run := s.d.Batch
	cut := false
	own := *s.d
	own.Batch = func(ctx context.Context, c *sql.Conn, calls []dialect.Call, common []string) error {
		if last := calls[len(calls)-1]; last.Query != "COMMIT" || cut {
			return run(ctx, c, calls, common)
		}
		cut = true
		if !happened {
			calls = append(calls[:len(calls)-1:len(calls)-1], dialect.Call{Query: "ROLLBACK"})
		}
		if err := run(ctx, c, calls, common); err != nil {
			t.Error(err)
		}
		return fmt.Errorf("cut: %w", syscall.ECONNRESET)
	}
	s.d = &own
	return &cut
}

// Another transaction that locks rows the other way round makes a deadlock.
func TestADeadlockIsNotSeen(t *testing.T) {
	for _, d := range databases[1:] {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{})
			for i := range 2 {
				if _, err := s.Commit(t.Context(), creation(unclaimed("p", i))); err != nil {
					t.Fatal(err)
				}
			}
			// The other one has the record; the store has the log, and wants
			// the record; the other one wants the log.
			tx, err := s.read.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("UPDATE diego_actual_lrps SET state = state WHERE process_guid = 'p' AND idx = 0"); err != nil {
				t.Fatal(err)
			}
			if d.dialect == PostgreSQL {
				// PostgreSQL ends the session that notices first; let that be the store's.
				if _, err := tx.Exec("SET deadlock_timeout = '1min'"); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan error, 1)
			go func() {
				before := unclaimed("p", 0)
				after := *before
				after.ModificationTag = before.ModificationTag.Next()
				_, err := s.Commit(t.Context(), storage.Batch{ActualLRPs: []lrp.Write{{Before: before, After: &after}}})
				done <- err
			}()
			awaitLockWait(t, s)
			if _, err := tx.Exec("UPDATE diego_log SET newest = newest WHERE id = 1"); err != nil {
				t.Logf("the other transaction: %v", err)
				_ = tx.Rollback() // the database has chosen this one to die
			} else if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Errorf("the store: %v", err)
			}
		})
	}
}

// awaitLockWait waits until a transaction waits for a lock.
func awaitLockWait(t *testing.T, s *Store) {
	t.Helper()
	query := "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
	if s.d.Dir == "postgres" {
		query = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted"
	}
	// MariaDB shows nothing new to a client that looks more than ten times a second.
	ticker := time.NewTicker(150 * time.Millisecond)
	defer ticker.Stop()
	for range 200 {
		<-ticker.C
		n := 0
		if err := s.read.QueryRow(query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	t.Fatal("nobody waits for a lock")
}

// Errors that pass are not seen either.
func TestErrorsThatPassAreNotSeen(t *testing.T) {
	for name, passing := range map[string]struct {
		dialect *dialect.Dialect
		err     error
	}{
		"serialization failure of PostgreSQL": {&dialect.PostgreSQL, &pq.Error{Code: "40001"}},
		"deadlock of PostgreSQL":              {&dialect.PostgreSQL, &pq.Error{Code: "40P01"}},
		"restart of PostgreSQL":               {&dialect.PostgreSQL, &pq.Error{Code: "57P03"}},
		"deadlock of MySQL":                   {&dialect.MySQL, &mysql.MySQLError{Number: 1213}},
		"lock timeout of MySQL":               {&dialect.MySQL, &mysql.MySQLError{Number: 1205}},
		"lost connection":                     {&dialect.MySQL, mysql.ErrInvalidConn},
		"refused connection":                  {&dialect.PostgreSQL, syscall.ECONNREFUSED},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Store{d: passing.dialect, options: Options{RetryFor: time.Minute}}
			n := 0
			err := s.retry(t.Context(), "testing", func() error {
				if n++; n < 4 {
					return fmt.Errorf("wrapped: %w", passing.err)
				}
				return nil
			})
			if err != nil || n != 4 {
				t.Errorf("%v after %d attempts", err, n)
			}
			s.options.RetryFor = time.Millisecond
			err = s.retry(t.Context(), "testing", func() error { return passing.err })
			if !errors.Is(err, passing.err) || !strings.Contains(err.Error(), "testing") {
				t.Errorf("in the end: %v", err)
			}
		})
	}
}

func TestAFileThatAnotherProcessLocksIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "diego.db")
	s := mustOpen(t, "sqlite:"+path, Options{BusyTimeout: time.Millisecond})
	other, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit(t.Context(), creation(unclaimed("p", 0)))
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := c.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}

	impatient := mustOpen(t, "sqlite:"+path, Options{BusyTimeout: time.Millisecond, RetryFor: time.Millisecond})
	if _, err := c.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	_, err = impatient.Commit(t.Context(), creation(unclaimed("p", 1)))
	wantError(t, err, "another process keeps the database locked")
	if _, err := c.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}

func driverDSN(dsn string) string {
	for _, scheme := range []string{"mysql:", pgxScheme} {
		if rest, found := strings.CutPrefix(dsn, scheme); found {
			return rest
		}
	}
	if rest, found := strings.CutPrefix(dsn, "sqlite:"); found {
		return "file:" + rest + "?_journal_mode=WAL&_busy_timeout=5000"
	}
	return dsn
}

// openDB opens a database as a caller of New does.
func openDB(t testing.TB, d Dialect, dsn string) *sql.DB {
	t.Helper()
	driver := d.fragments().Dir
	if d == SQLite {
		driver = "sqlite3"
	}
	if strings.HasPrefix(dsn, pgxScheme) {
		driver = "pgx"
	}
	db, err := sql.Open(driver, driverDSN(dsn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestAPoolOfOneConnectionIsEnough(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := openDB(t, d.dialect, d.database(t))
			db.SetMaxOpenConns(1)
			s, err := New(db, d.dialect, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			for w := range 16 {
				wg.Go(func() {
					guid := fmt.Sprint("p", w)
					for i := range 5 {
						if _, err := s.Commit(ctx, creation(unclaimed(guid, i))); err != nil {
							t.Error(err)
						}
						if _, _, err := s.Slot(ctx, guid, i); err != nil {
							t.Error(err)
						}
						if err := s.View(ctx, func(r storage.Reader) error {
							if n := count(t, r, guid); n != i+1 {
								t.Errorf("%d records, want %d", n, i+1)
							}
							return nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			// Even a caller that commits while it ranges over a list goes on.
			for r, err := range s.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
				if err == nil {
					_, err = s.Commit(ctx, storage.Batch{ActualLRPs: []lrp.Write{{Before: &r}}})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if n := count(t, s, "p3"); n != 0 {
				t.Errorf("%d records are left", n)
			}
		})
	}
}

// New must do with a driver that sends one statement at a time, and with a
// database that other tables are in.
func TestContractOnADatabaseOfTheCallers(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		var dialect Dialect
		for _, d := range databases {
			if strings.HasSuffix(t.Name(), d.name) {
				dialect = d.dialect
			}
		}
		db := openDB(t, dialect, dsn)
		s, err := New(db, dialect, &Options{OneByOne: true, Prefix: "own_"})
		if err != nil {
			t.Fatal(err)
		}
		b := storage.Batch{Deployments: []storage.DeploymentWrite{{After: desired("p", 10)}}}
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if err := live(t.Context(), s, "p", i); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if d, err := s.Deployment(t.Context(), "p"); err != nil || len(d.Definitions) != 1 {
			t.Errorf("%v, %v", d, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.Ping(); err != nil {
			t.Errorf("Close has closed the caller's database: %v", err)
		}
	})
}

// The clock of the database is the one that counts, even when it jumps.
func TestAClockThatJumpsCostsAtMostTheLease(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		h := opener(dsn, Options{})(t, storagetest.Options{})
		s := h.Store
		ctx := t.Context()
		one := storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "one"}
		first, err := s.Acquire(ctx, one, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		two := one
		two.Owner = "two"
		if _, err := s.Acquire(ctx, two, time.Minute); !errors.Is(err, storage.ErrHeld) {
			t.Fatalf("the other leader: %v", err)
		}
		h.Advance(24 * time.Hour)
		second, err := s.Acquire(ctx, two, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		// Two leaders think that they lead. One of them is right.
		b := creation(unclaimed("p", 0))
		b.Fence = first.Fence()
		var fenced *storage.FencedError
		if _, err := s.Commit(ctx, b); !errors.As(err, &fenced) || fenced.Epoch != second.Epoch {
			t.Errorf("the deposed leader: %v", err)
		}
		b.Fence = second.Fence()
		if _, err := s.Commit(ctx, b); err != nil {
			t.Errorf("the leader: %v", err)
		}
		h.Advance(-48 * time.Hour)
		if _, err := s.Renew(ctx, second, time.Minute); err != nil {
			t.Errorf("after the clock was set back: %v", err)
		}
		if _, err := s.Commit(ctx, creation(unclaimed("p", 1))); err != nil {
			t.Errorf("after the clock was set back: %v", err)
		}
		checkLog(t, s, 2)
	})
}

// Two processes that lead at the same time never both commit.
func TestOfTwoLeadersOneIsFencedOff(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		stores := []*Store{mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{})}
		var wg sync.WaitGroup
		var mu sync.Mutex
		epochs := map[storage.Cursor]int64{}
		for who, s := range stores {
			wg.Go(func() {
				for range 10 {
					// The same owner takes the lease over at any time.
					l, err := s.Acquire(t.Context(), storage.Lease{Kind: "leader", Name: "bbs", Owner: "bbs"}, time.Hour)
					if err != nil {
						t.Error(err)
						return
					}
					for i := range 10 {
						b := creation(unclaimed(fmt.Sprintf("p%d-%d", who, l.Epoch), i))
						b.Fence = l.Fence()
						cursor, err := s.Commit(t.Context(), b)
						if errors.Is(err, storage.ErrFenced) {
							break
						}
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						epochs[cursor] = l.Epoch
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		last := int64(0)
		for cursor := storage.Cursor(1); int(cursor) <= len(epochs); cursor++ {
			if epochs[cursor] < last {
				t.Fatalf("event %d is of epoch %d, after one of %d", cursor, epochs[cursor], last)
			}
			last = epochs[cursor]
		}
		checkLog(t, stores[0], len(epochs))
	})
}

// Several processes that commit to one database number their events together.
func TestEventsOfSeveralProcessesHaveNoGaps(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		var wg sync.WaitGroup
		for p := range 3 {
			s := mustOpen(t, dsn, Options{})
			for w := range 4 {
				wg.Go(func() {
					for i := range 10 {
						if _, err := s.Commit(t.Context(), creation(unclaimed(fmt.Sprint("p", p, w), i))); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		checkLog(t, mustOpen(t, dsn, Options{}), 120)
	})
}

func TestACallerThatGivesUpLeavesTheOthersAlone(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		var wg sync.WaitGroup
		var ended atomic.Int64
		for i := range 64 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%2 == 0 {
					go cancel()
				}
				_, err := s.Commit(ctx, creation(unclaimed("p", i)))
				if i%2 == 1 && err != nil {
					t.Errorf("commit %d: %v", i, err)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("commit %d: %v", i, err)
				}
				if err != nil {
					ended.Add(1)
				}
			})
		}
		wg.Wait()
		if n := count(t, s, "p"); n < 64-int(ended.Load()) || n < 32 {
			t.Errorf("%d records, and %d callers gave up", n, ended.Load())
		}
	})
}

func TestAStoreOfNoDatabaseIsRefused(t *testing.T) {
	_, err := New(nil, SQLite, nil)
	wantError(t, err, "*sql.DB is nil")
}

// A server that has become a standby says so, and a store that stays open goes
// on as soon as its connections lead to one that may be written.
func TestAServerThatOnlyReadsIsExplained(t *testing.T) {
	const advice = "connect to the primary"
	t.Run("postgres", func(t *testing.T) {
		server := testdb.StartPostgres(t)
		dsn := server.Database(t)
		s := mustOpen(t, dsn, Options{RetryFor: time.Minute})
		if _, err := s.Commit(t.Context(), creation(unclaimed("p", 0))); err != nil {
			t.Fatal(err)
		}
		server.Standby(t)
		_, err := s.Commit(t.Context(), creation(unclaimed("p", 1)))
		wantError(t, err, "committing", advice)
		_, err = open(t.Context(), dsn, nil)
		wantError(t, err, "opening", advice)
		if n := count(t, s, "p"); n != 1 {
			t.Errorf("%d records", n)
		}
		if _, err := openDB(t, PostgreSQL, dsn).Exec("SELECT pg_promote()"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), creation(unclaimed("p", 1))); err != nil {
			t.Errorf("after it was promoted: %v", err)
		}
	})
	t.Run("mysql", func(t *testing.T) {
		server := testdb.StartMySQL(t)
		dsn := "mysql:" + server.Database(t)
		admin := mustOpen(t, dsn, Options{})
		limited := withUser(t, dsn, "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX")
		s := mustOpen(t, limited, Options{})
		connection := func() (id int64) {
			if err := s.write.QueryRow("SELECT CONNECTION_ID()").Scan(&id); err != nil {
				t.Fatal(err)
			}
			return id
		}
		exec(t, admin, "SET GLOBAL read_only = 1")
		for op, write := range map[string]func() error{
			"committing": func() error {
				_, err := s.Commit(t.Context(), creation(unclaimed("p", 0)))
				return err
			},
			"leaving a gap in the log": func() error { return s.Restored(t.Context()) },
		} {
			before := connection()
			wantError(t, write(), op, advice)
			if connection() == before {
				t.Errorf("%s: the connection is kept, though it leads to no primary", op)
			}
		}
		_, err := open(t.Context(), limited, nil)
		wantError(t, err, "opening", advice)
		exec(t, admin, "SET GLOBAL read_only = 0")
		if _, err := s.Commit(t.Context(), creation(unclaimed("p", 0))); err != nil {
			t.Errorf("when it may be written again: %v", err)
		}
	})
}

// The server itself says a few times that the transaction has to be made anew,
// in the middle of it: at the first insertion of a record.
func TestASerializationFailureOfTheServerIsNotSeen(t *testing.T) {
	for _, d := range databases[1:] {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{})
			// Sequences and tables of MyISAM are not rolled back, so they count the
			// attempts.
			if d.dialect == PostgreSQL {
				exec(t, s, "CREATE SEQUENCE attempts")
				exec(t, s, `CREATE FUNCTION fail() RETURNS trigger AS $$ BEGIN
					IF nextval('attempts') % 4 <> 0 THEN RAISE EXCEPTION 'made to fail' USING ERRCODE = '40001'; END IF;
					RETURN NEW; END $$ LANGUAGE plpgsql`)
				exec(t, s, "CREATE TRIGGER fail BEFORE INSERT ON diego_actual_lrps FOR EACH STATEMENT EXECUTE FUNCTION fail()")
			} else {
				exec(t, s, "CREATE TABLE attempts (last_value INTEGER) ENGINE = MyISAM")
				exec(t, s, "INSERT INTO attempts VALUES (0)")
				exec(t, s, `CREATE TRIGGER fail BEFORE INSERT ON diego_actual_lrps FOR EACH ROW BEGIN
					UPDATE attempts SET last_value = last_value + 1;
					IF (SELECT last_value FROM attempts) % 4 <> 0 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'made to fail'; END IF; END`)
			}
			for i := range 4 {
				b := creation(unclaimed("p", i))
				if i%2 == 1 { // no guess is made
					b.RequestID = fmt.Sprint("request-", i)
				}
				if cursor, err := s.Commit(t.Context(), b); err != nil || cursor != storage.Cursor(i+1) {
					t.Fatalf("commit %d is event %d, %v", i, cursor, err)
				}
			}
			var attempts int64
			if err := dialect.QueryRow(t.Context(), s.read, "SELECT last_value FROM attempts", &attempts); err != nil || attempts < 16 {
				t.Errorf("%d attempts, %v", attempts, err)
			}
			if n := count(t, s, "p"); n != 4 {
				t.Errorf("%d records", n)
			}
			checkLog(t, s, 4)
		})
	}
}
