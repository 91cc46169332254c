package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
	"github.com/diegosdk/diego/storage/storagetest"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// The databases under test, one of them by two drivers. Each makes an empty one
// and returns the DSN that open takes.
var databases = []struct {
	name     string
	dialect  Dialect
	database func(t testing.TB) string
}{
	{"sqlite", SQLite, func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "diego.db") }},
	{"postgres", PostgreSQL, func(t testing.TB) string { return testdb.Postgres(t) }},
	{"mysql", MySQL, func(t testing.TB) string { return "mysql:" + testdb.MySQL(t) }},
	{"pgx", PostgreSQL, func(t testing.TB) string { return pgxScheme + withSettings(testdb.Postgres(t)) }},
}

// servers are the databases that get several statements in one round trip, and
// that Open opens.
var servers = databases[1:3]

// withSettings adds what Open does to the DSN of PostgreSQL.
func withSettings(dsn string) string {
	for _, name := range slices.Sorted(maps.Keys(dialect.PostgresSettings)) {
		dsn += "&" + name + "=" + dialect.PostgresSettings[name]
	}
	return dsn
}

// withParameter adds a parameter to the DSN of a driver.
func withParameter(dsn, parameter string) string {
	if strings.Contains(dsn[strings.LastIndex(dsn, "/"):], "?") {
		return dsn + "&" + parameter
	}
	return dsn + "?" + parameter
}

// pgxScheme leads to New with the driver pgx; what follows is its DSN.
const pgxScheme = "pgx:"

// open is Open, and New for a driver that Open does not use.
func open(ctx context.Context, dsn string, o *Options) (*Store, error) {
	source, is := strings.CutPrefix(dsn, pgxScheme)
	if !is {
		return Open(ctx, dsn, o)
	}
	db, err := sql.Open("pgx", source)
	if err != nil {
		return nil, err
	}
	s, err := New(db, PostgreSQL, o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.close = db.Close
	return s, nil
}

// eachDatabase runs a sub-test for each database.
func eachDatabase(t *testing.T, f func(t *testing.T, dsn string)) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) { f(t, d.database(t)) })
	}
}

var prefixes atomic.Int64

// newPrefix keeps the stores apart that share a database.
func newPrefix() string { return fmt.Sprintf("t%d_", prefixes.Add(1)) }

func mustOpen(t testing.TB, dsn string, o Options) *Store {
	t.Helper()
	s, err := open(t.Context(), dsn, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// exec changes the database behind the store's back.
func exec(t testing.TB, s *Store, query string, args ...any) {
	t.Helper()
	result, err := s.write.ExecContext(context.Background(), s.d.Rebind(query), args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if n, err := result.RowsAffected(); err == nil && n == 0 && query[0] == 'U' {
		t.Fatalf("%s changed nothing", query)
	}
}

// A definition is large, and routers and syncs need none.
func TestAListWithoutDefinitionsReadsNone(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{})
			want := desired("web", 2)
			if _, err := s.Commit(t.Context(), storage.Batch{Deployments: []storage.DeploymentWrite{{After: want}}}); err != nil {
				t.Fatal(err)
			}
			exec(t, s, "UPDATE "+s.table("definitions")+" SET data = ?", []byte{99})
			n := 0
			for got, err := range s.Deployments(t.Context(), storage.DeploymentFilter{WithoutDefinitions: true}) {
				if n++; err != nil || !storagetest.Equal(got, storage.WithoutDefinitions(want)) {
					t.Errorf("got %+v, %v", got, err)
				}
			}
			for _, err := range s.Deployments(t.Context(), storage.DeploymentFilter{}) {
				if n++; !errors.Is(err, storage.ErrCorrupt) {
					t.Errorf("with its definition: %v, want it to be corrupt", err)
				}
			}
			if n != 2 {
				t.Errorf("%d deployments in two lists", n)
			}
		})
	}
}

// A deployment may have many large definitions, and a cell that starts an instance
// needs one.
func TestAListWithSomeDefinitionsReadsNoOthers(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			s := mustOpen(t, d.database(t), Options{})
			want := desired("web", 2)
			for _, id := range []string{"old", "older"} {
				want.Definitions[id] = want.Definitions[want.ActiveDefinitionID]
			}
			if _, err := s.Commit(t.Context(), storage.Batch{Deployments: []storage.DeploymentWrite{{After: want}}}); err != nil {
				t.Fatal(err)
			}
			exec(t, s, "UPDATE "+s.table("definitions")+" SET data = ? WHERE definition_id <> 'old'", []byte{99})
			for _, f := range []storage.DeploymentFilter{
				{DefinitionIDs: []string{"old"}}, {DefinitionIDs: []string{"old"}, ProcessGUIDs: []string{"web"}},
				{DefinitionIDs: []string{"old", "absent"}}, {DefinitionIDs: []string{"old", "absent"}, ProcessGUIDs: []string{"web"}},
			} {
				n := 0
				for got, err := range s.Deployments(t.Context(), f) {
					if n++; err != nil || !storagetest.Equal(got, storage.WithDefinitions(want, "old")) {
						t.Errorf("%+v: got %+v, %v", f, got, err)
					}
				}
				f.DefinitionIDs = append(f.DefinitionIDs, "older")
				for _, err := range s.Deployments(t.Context(), f) {
					if n++; !errors.Is(err, storage.ErrCorrupt) {
						t.Errorf("%+v: %v, want it to be corrupt", f, err)
					}
				}
				if n != 2 {
					t.Errorf("%+v: %d deployments in two lists", f, n)
				}
			}
		})
	}
}

// A history that is damaged costs its process nothing but the history.
func TestADeploymentCanBeChangedIfItsHistoryCannotBeDecoded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		var said bytes.Buffer
		s := mustOpen(t, dsn, Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
		if _, err := s.Commit(t.Context(), secrets(0)); err != nil {
			t.Fatal(err)
		}
		exec(t, s, "UPDATE "+s.table("deployments")+" SET revisions = ?", []byte{99})
		id := "next"
		_, _, err := storage.ApplyDeployment(t.Context(), s, "p000", nil, func(d *lrp.Deployment) (lrp.Change, error) {
			definition := d.Definitions["p000"]
			c, err := d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
			return lrp.Policy{}.Record(c, "ann", noon), err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said.String(), "cannot be decoded") || !strings.Contains(said.String(), "process=p000") {
			t.Errorf("the log says\n%s", said.String())
		}
		d, err := s.Deployment(t.Context(), "p000")
		if err != nil || len(d.Revisions) != 2 || d.Revisions[0].Began != lrp.BeganUnknown || d.Revisions[1].DefinitionID != id {
			t.Errorf("%+v, %v; want the history to begin anew", d, err)
		}
	})
}

// corruptRecord damages the encoding of a record.
func corruptRecord(t testing.TB, s *Store, k storage.RecordKey) {
	t.Helper()
	damage := []byte{99, 1, 2, 3}
	switch k.Kind {
	case storage.DeploymentRecord:
		exec(t, s, "UPDATE "+s.table("deployments")+" SET settings = ? WHERE process_guid = ?", damage, k.GUID)
	case storage.ActualLRPRecord:
		exec(t, s, "UPDATE "+s.table("actual_lrps")+" SET data = ? WHERE process_guid = ? AND idx = ? AND definition_id = ? AND presence = ?",
			damage, k.GUID, int64(k.Index), k.DefinitionID, int64(k.Presence))
	case storage.TaskRecord:
		exec(t, s, "UPDATE "+s.table("tasks")+" SET data = ? WHERE guid = ?", damage, k.GUID)
	case storage.EventRecord:
		corruptEvent(t, s, k.Sequence, damage)
	}
}

// corruptEvent damages one event of a segment.
func corruptEvent(t testing.TB, s *Store, sequence storage.Cursor, damage []byte) {
	t.Helper()
	page, _, err := s.segments(context.Background(), sequence-1, portionOfLog())
	if err != nil || len(page) == 0 {
		t.Fatalf("event %d: %v", sequence, err)
	}
	x := page[0]
	var out []byte
	for n, rest := x.seq-x.n+1, x.data; n <= x.seq; n++ {
		var event []byte
		if event, rest, err = cutBytes(rest); err != nil {
			t.Fatal(err)
		}
		if n == int64(sequence) {
			event = damage
		}
		out = appendEvent(out, event)
	}
	exec(t, s, "UPDATE "+s.table("events")+" SET data = ? WHERE seq = ?", out, x.seq)
}

// opener makes stores with the options in one database, one after the other,
// with a clock that can be moved.
func opener(dsn string, o Options) storagetest.Open {
	o.Prefix = newPrefix()
	made := false
	return func(t testing.TB, so storagetest.Options) storagetest.Harness {
		o := o
		o.Events, o.EventBytes = so.Events, so.EventBytes
		skew := o.Prefix + "skew"
		o.clock = "(%s + (SELECT ns FROM " + skew + "))"
		if !made {
			made = true
			plain := mustOpen(t, dsn, Options{Prefix: o.Prefix})
			exec(t, plain, "CREATE TABLE "+skew+" (ns BIGINT)")
			exec(t, plain, "INSERT INTO "+skew+" VALUES (0)")
			if err := plain.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s := mustOpen(t, dsn, o)
		wipe(t, s)
		return storagetest.Harness{
			Store:       s,
			BoundsBytes: true,
			Advance: func(d time.Duration) {
				exec(t, s, "UPDATE "+skew+" SET ns = ns + ?", int64(d))
			},
			Corrupt: func(t testing.TB, k storage.RecordKey) { corruptRecord(t, s, k) },
			Reopen: func(t testing.TB) storage.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, dsn, o)
				return s
			},
			Save: func(t testing.TB) func(t testing.TB) storage.Store {
				fallBack := save(t, s)
				return func(t testing.TB) storage.Store {
					fallBack(t, s)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = mustOpen(t, dsn, o)
					return s
				}
			},
		}
	}
}

// dataTables are the tables that commits write.
var dataTables = []string{
	"log", "events", "gaps", "markers", "requests", "deployments", "definitions", "actual_lrps", "tasks", "domains", "leases", "quarantine",
}

// save copies the rows of the tables aside. fallBack puts them back, unseen by
// the store that is open.
func save(t testing.TB, s *Store) (fallBack func(t testing.TB, s *Store)) {
	aside := s.table(fmt.Sprintf("saved%d_", prefixes.Add(1)))
	tables := dataTables[:len(dataTables)-1] // PostgreSQL numbers the last one's rows itself
	for _, table := range tables {
		exec(t, s, "CREATE TABLE "+aside+table+" AS SELECT * FROM "+s.table(table))
	}
	return func(t testing.TB, s *Store) {
		for _, table := range tables {
			exec(t, s, "DELETE FROM "+s.table(table))
			exec(t, s, "INSERT INTO "+s.table(table)+" SELECT * FROM "+aside+table)
		}
	}
}

// wipe makes the store as it was when it was new, which is quicker than to make
// its tables anew.
func wipe(t testing.TB, s *Store) {
	tx, err := s.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range dataTables {
		if table == "log" || table == "leases" {
			continue
		}
		if _, err := tx.Exec("DELETE FROM " + s.table(table)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.Exec("DELETE FROM " + s.table("leases") + " WHERE kind <> ''"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE " + s.table("leases") + " SET epoch = 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE " + s.table("log") + " SET newest = 0, oldest = 1"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s.newest.Store(0)
	s.seen.Store(0)
}

func TestContract(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) { storagetest.Run(t, opener(dsn, Options{})) })
}

// The whole contract once, and on each database all that is read of what was
// written in any order.
func TestContractWithEncryption(t *testing.T) {
	storagetest.Run(t, opener(databases[0].database(t), Options{Keys: testKeys("a")}))
	eachDatabase(t, func(t *testing.T, dsn string) {
		storagetest.RunMetamorphic(t, opener(dsn, Options{Keys: testKeys("a")}), 2, 300)
	})
}

// openInMemory makes a store whose clock can be moved; its Reopen would be
// another one.
func openInMemory(t testing.TB, so storagetest.Options) storagetest.Harness {
	var ahead atomic.Int64
	s := mustOpen(t, ":memory:", Options{Events: so.Events, EventBytes: so.EventBytes, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	return storagetest.Harness{
		Store:       s,
		BoundsBytes: true,
		Advance:     func(d time.Duration) { ahead.Add(int64(d)) },
		Corrupt:     func(t testing.TB, k storage.RecordKey) { corruptRecord(t, s, k) },
	}
}

func TestInMemory(t *testing.T) {
	t.Run("contract", func(t *testing.T) { storagetest.Run(t, openInMemory) })
	t.Run("concurrent", func(t *testing.T) { storagetest.RunConcurrent(t, openInMemory) })
	t.Run("metamorphic", func(t *testing.T) { storagetest.RunMetamorphic(t, openInMemory, 1, 1000) })
}

func TestConcurrent(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) { storagetest.RunConcurrent(t, opener(dsn, Options{})) })
}

func TestMetamorphic(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		t.Parallel() // each waits for its server most of the time
		for seed := range uint64(2) {
			storagetest.RunMetamorphic(t, opener(dsn, Options{}), seed, 1000)
		}
	})
}

// RunCrash starts this test binary again: see there.
func TestCrash(t *testing.T) {
	storagetest.RunCrash(t, storagetest.Crash{Rounds: 200, Seed: 1, Open: func(dir string) (storage.Store, error) {
		return Open(context.Background(), "sqlite:"+filepath.Join(dir, "diego.db"), &Options{Events: 1_000_000})
	}})
}

// testKeys are keys with the labels a, b and c; one of them encrypts.
func testKeys(active string) *Keys {
	k := &Keys{Active: active, Secrets: map[string][]byte{}}
	for i, label := range []string{"a", "b", "c"} {
		key := make([]byte, 32)
		key[0] = byte(i + 1)
		k.Secrets[label] = key
	}
	return k
}
