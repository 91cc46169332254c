package testdb_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

var engines = []struct {
	driver   string
	database func(testing.TB) string
	server   func(testing.TB) *testdb.Server
}{
	{"postgres", testdb.Postgres, testdb.StartPostgres},
	{"mysql", testdb.MySQL, testdb.StartMySQL},
}

func TestDatabasesOfTwoTestsAreStrangers(t *testing.T) {
	for _, e := range engines {
		t.Run(e.driver, func(t *testing.T) {
			for range 2 { // the second CREATE fails if it is the same database
				db := open(t, e.driver, e.database(t))
				execute(t, db, "CREATE TABLE stranger (n INT)")
			}
		})
	}
}

func TestAServerKeepsItsDataAndItsDSNOverStopAndKill(t *testing.T) {
	for _, e := range engines {
		t.Run(e.driver, func(t *testing.T) {
			server := e.server(t)
			db := open(t, e.driver, server.Database(t))
			execute(t, db, "CREATE TABLE kept (n INT)")
			for n, end := range []func(testing.TB){server.Stop, server.Kill} {
				execute(t, db, "INSERT INTO kept VALUES (1)")
				end(t)
				if err := db.Ping(); err == nil {
					t.Fatal("the ended server still answers")
				}
				server.Start(t)
				var rows int
				if err := db.QueryRow("SELECT count(*) FROM kept").Scan(&rows); err != nil {
					t.Fatal(err)
				}
				if rows != n+1 {
					t.Errorf("%d rows after restart %d", rows, n+1)
				}
			}
		})
	}
}

func TestTheFilesOfAServerAreWhereTheEnvironmentSays(t *testing.T) {
	for _, e := range engines {
		t.Run(e.driver, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { // the server is another user's
				t.Fatal(err)
			}
			t.Setenv(testdb.DirEnv, dir)
			e.server(t)
			if data, err := filepath.Glob(filepath.Join(dir, "*", "data")); len(data) != 1 {
				t.Errorf("the data is in %q, %v", data, err)
			}
		})
	}
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestWhatOneNodeOfAClusterCommitsReachesTheOthers(t *testing.T) {
	nodes := testdb.StartGalera(t, 3)
	dsn := nodes[0].Database(t)
	execute(t, open(t, "mysql", dsn), "CREATE TABLE shared (n INT PRIMARY KEY)")
	for i, s := range nodes {
		db := open(t, "mysql", s.SameDatabase(t, dsn)+"?wsrep_sync_wait=7")
		execute(t, db, fmt.Sprintf("INSERT INTO shared VALUES (%d)", i))
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM shared").Scan(&n); err != nil || n != i+1 {
			t.Errorf("node %d has %d rows: %v", i, n, err)
		}
	}
}
