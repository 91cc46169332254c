package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/storage"
)

// program is the full path of a program of a database.
func program(t *testing.T, name, debian string) string {
	t.Helper()
	if path, err := osexec.LookPath(name); err == nil {
		return path
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1]
	}
	testenv.Missing(t, name, "install the Debian package "+debian)
	return ""
}

func runProgram(t *testing.T, environment []string, path string, args ...string) {
	t.Helper()
	cmd := osexec.Command(path, args...)
	cmd.Env = append(os.Environ(), environment...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, output)
	}
}

// The ways of docs/storage.md to make a backup of a store that is in use, and
// to restore it. Each returns the DSN of the store that is backed up, and what
// makes a backup and restores that into a new database.
var backups = []struct {
	name string
	make func(t *testing.T) (dsn string, copied func() string)
}{
	{"VACUUM INTO", func(t *testing.T) (string, func() string) {
		dir := t.TempDir()
		dsn := "sqlite:" + filepath.Join(dir, "diego.db")
		return dsn, func() string {
			if _, err := openDB(t, SQLite, dsn).Exec("VACUUM INTO ?", filepath.Join(dir, "copy.db")); err != nil {
				t.Fatal(err)
			}
			return "sqlite:" + filepath.Join(dir, "copy.db")
		}
	}},
	{".backup", func(t *testing.T) (string, func() string) {
		sqlite3 := program(t, "sqlite3", "sqlite3")
		dir := t.TempDir()
		return "sqlite:" + filepath.Join(dir, "diego.db"), func() string {
			runProgram(t, nil, sqlite3, filepath.Join(dir, "diego.db"), ".timeout 30000", ".backup "+filepath.Join(dir, "copy.db"))
			return "sqlite:" + filepath.Join(dir, "copy.db")
		}
	}},
	{"pg_dump", func(t *testing.T) (string, func() string) {
		dump, psql := program(t, "pg_dump", "postgresql-client"), program(t, "psql", "postgresql-client")
		server, file := testdb.StartPostgres(t), filepath.Join(t.TempDir(), "dump.sql")
		dsn := server.Database(t)
		return dsn, func() string {
			runProgram(t, nil, dump, "--file="+file, dsn)
			to := server.Database(t)
			runProgram(t, nil, psql, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file="+file, to)
			return to
		}
	}},
	{"mariadb-dump", func(t *testing.T) (string, func() string) {
		dump, client := program(t, "mariadb-dump", "mariadb-client"), program(t, "mariadb", "mariadb-client")
		server, file := testdb.StartMySQL(t), filepath.Join(t.TempDir(), "dump.sql")
		dsn := server.Database(t)
		run := func(path, dsn string, args ...string) {
			config, err := mysql.ParseDSN(dsn)
			if err != nil {
				t.Fatal(err)
			}
			host, port := "127.0.0.1", config.Addr[len("127.0.0.1:"):]
			args = append([]string{"--no-defaults", "--protocol=tcp", "--host=" + host, "--port=" + port, "--user=" + config.User}, args...)
			runProgram(t, []string{"MYSQL_PWD=" + config.Passwd}, path, append(args, config.DBName)...)
		}
		return "mysql:" + dsn, func() string {
			run(dump, dsn, "--single-transaction", "--result-file="+file)
			to := server.Database(t)
			run(client, to, "--execute=source "+file)
			return "mysql:" + to
		}
	}},
}

func TestABackupOfAStoreInUseIsOneMomentOfIt(t *testing.T) {
	for _, b := range backups {
		t.Run(b.name, func(t *testing.T) {
			dsn, copied := b.make(t)
			keys := Options{Keys: testKeys("a")} // bytes of all kinds
			s := mustOpen(t, dsn, keys)
			for i := range 300 {
				if _, err := s.Commit(t.Context(), creation(unclaimed("before", i))); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						if _, err := s.Commit(context.Background(), creation(unclaimed(fmt.Sprint("during", w), i))); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			restored := copied()
			stop()
			wg.Wait()
			after, err := s.Log(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			r := mustOpen(t, restored, keys)
			n := count(t, r, "before")
			for w := range 4 {
				n += count(t, r, fmt.Sprint("during", w))
			}
			if n < 300 || n > int(after.Newest) {
				t.Fatalf("%d records of %d", n, after.Newest)
			}
			checkLog(t, r, n)
			// A subscriber of the lost store gets an error, even when the log has
			// grown again.
			for range 2 {
				for _, err := range r.Events(t.Context(), after.Newest+1, storage.EventFilter{}) {
					if !errors.Is(err, storage.ErrGone) {
						t.Errorf("the subscriber gets %v, want ErrGone", err)
					}
				}
				cursor, err := r.Commit(t.Context(), creation(unclaimed("afterwards", count(t, r, "afterwards"))))
				if err != nil || cursor <= after.Newest {
					t.Errorf("the next commit is event %d after %d, %v", cursor, after.Newest, err)
				}
			}
		})
	}
}
