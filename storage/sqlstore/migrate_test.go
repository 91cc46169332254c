package sqlstore

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/diegosdk/diego/storage"
)

func TestProcessesThatStartAtTheSameTimeMigrateOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		var wg sync.WaitGroup
		for p := range 8 {
			wg.Go(func() {
				s, err := open(t.Context(), dsn, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if _, err := s.Commit(t.Context(), creation(unclaimed("p", p))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s := mustOpen(t, dsn, Options{})
		checkLog(t, s, 8)
		if version, err := s.schemaVersion(t.Context(), s.read); err != nil || version != SchemaVersion {
			t.Errorf("version %d, %v", version, err)
		}
	})
}

func TestANewerSchemaIsRefused(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		exec(t, s, "INSERT INTO diego_schema (version) VALUES (99)")
		s.Close()
		_, err := open(t.Context(), dsn, nil)
		var schema *SchemaError
		if !errors.As(err, &schema) || schema.Found != 99 || !errors.Is(err, ErrSchema) {
			t.Fatalf("%v, want a *SchemaError", err)
		}
		wantError(t, err, "99", "newer release")
	})
}

func TestTheSQLOfTheMigrationsIsEnough(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.database(t)
			_, err := open(t.Context(), dsn, &Options{Prefix: "by_hand_", NoMigrations: true})
			wantError(t, err, "run the SQL of Migrations")
			if !errors.Is(err, ErrSchema) {
				t.Errorf("%v, want ErrSchema", err)
			}
			all, err := Migrations(d.dialect, "by_hand_")
			if err != nil || len(all) != SchemaVersion || all[len(all)-1].Version != SchemaVersion {
				t.Fatalf("%d migrations, %v", len(all), err)
			}
			db := openDB(t, d.dialect, dsn)
			for _, m := range all {
				for _, statement := range strings.Split(m.SQL, ";\n") {
					if strings.TrimSpace(statement) == "" {
						continue
					}
					if _, err := db.Exec(statement); err != nil {
						t.Fatalf("%s: %v", statement, err)
					}
				}
			}
			s := mustOpen(t, dsn, Options{Prefix: "by_hand_", NoMigrations: true})
			if _, err := s.Commit(t.Context(), creation(unclaimed("p", 0))); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := Migrations(0, ""); err == nil {
		t.Error("there are migrations for no dialect")
	}
	if _, err := Migrations(SQLite, "1"); err == nil {
		t.Error("a prefix may begin with a digit")
	}
}

// MySQL cannot roll a migration back, so one that broke off is run again.
func TestAMigrationThatBrokeOffIsRunAgain(t *testing.T) {
	dsn := databases[2].database(t)
	db := openDB(t, MySQL, dsn)
	for n, whole := 1, false; !whole; n += 3 { // any later point does as well
		prefix := newPrefix()
		all, err := Migrations(MySQL, prefix)
		if err != nil {
			t.Fatal(err)
		}
		var statements []string
		for i := range all {
			statements = append(statements, all[i].statements()...)
		}
		whole = n >= len(statements)
		for _, statement := range statements[:min(n, len(statements)-1)] {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(t.Context(), dsn, &Options{Prefix: prefix})
		if err != nil {
			t.Errorf("after %d of %d statements: %v", n, len(statements), err)
			continue
		}
		if _, err := s.Commit(t.Context(), creation(unclaimed("p", 0))); err != nil {
			t.Errorf("after %d of %d statements: %v", n, len(statements), err)
		}
		s.Close()
	}
}

func TestStoresWithDifferentPrefixesShareADatabase(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		for i, prefix := range []string{"one_", "two_"} {
			s := mustOpen(t, dsn, Options{Prefix: prefix})
			if n := count(t, s, "p"); n != 0 {
				t.Errorf("%d records in a new store", n)
			}
			for n := range i + 1 {
				if _, err := s.Commit(t.Context(), creation(unclaimed("p", n))); err != nil {
					t.Fatal(err)
				}
			}
			checkLog(t, s, i+1)
		}
	})
}

func TestWhatIsQuarantinedIsKeptForAnOperator(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		if _, err := s.Commit(t.Context(), secrets(1)); err != nil {
			t.Fatal(err)
		}
		var b storage.Batch
		for _, key := range []storage.RecordKey{
			storage.DeploymentKey("p001"), storage.TaskKey("p001"),
			{Kind: storage.ActualLRPRecord, GUID: "p001", DefinitionID: "p001"},
		} {
			corruptRecord(t, s, key)
			b.AddQuarantine(&storage.CorruptError{Key: key, Err: errors.New("damaged for a test")})
		}
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		rows, err := s.read.Query("SELECT kind, guid, reason FROM diego_quarantine ORDER BY kind")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		got := ""
		for rows.Next() {
			var kind, guid, reason string
			if err := rows.Scan(&kind, &guid, &reason); err != nil {
				t.Fatal(err)
			}
			got += fmt.Sprintln(kind, guid, reason)
		}
		want := "actual_lrp p001 damaged for a test\ndefinition p001 damaged for a test\ndeployment p001 damaged for a test\ntask p001 damaged for a test\n"
		if got != want {
			t.Errorf("in quarantine:\n%swant:\n%s", got, want)
		}
	})
}

// A statement that the release before can work beside: it adds, and what it adds
// needs nothing from those who do not know it. No statement names an index, so
// one may go.
var additive = regexp.MustCompile(`^(CREATE TABLE|CREATE INDEX|DROP INDEX|ALTER TABLE \S+ DROP INDEX|INSERT|ALTER TABLE \S+ ADD COLUMN( IF NOT EXISTS)? .*\bDEFAULT\b)`)

func TestAMigrationOnlyAddsOrTakesTwoVersions(t *testing.T) {
	for _, d := range []Dialect{SQLite, MySQL, PostgreSQL} {
		all, err := Migrations(d, "")
		if err != nil {
			t.Fatal(err)
		}
		empty := false // the migration before has a number only
		for i := range all {
			statements := all[i].statements()
			own := statements[:len(statements)-1] // the last one notes the version
			for _, statement := range own {
				statement = regexp.MustCompile(`(?m)^--.*\n?`).ReplaceAllString(statement, "")
				if !additive.MatchString(statement) && !empty {
					t.Errorf("%v: migration %s is nothing that a process of the release before can work beside: %s\n"+
						"add only, with defaults, or put a migration without statements before it", d, all[i].Name, statement)
				}
			}
			empty = len(own) == 0
		}
	}
}

// Nearly every commit changes a state, and would have to change such an index.
func TestNoIndexIsByState(t *testing.T) {
	indexes := map[string]string{
		"sqlite":   "SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND sql LIKE '%(state%'",
		"mysql":    "SELECT COUNT(*) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME = 'state'",
		"postgres": "SELECT COUNT(*) FROM pg_indexes WHERE schemaname = current_schema() AND indexdef LIKE '%(state%'",
	}
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		n := -1
		if err := s.read.QueryRow(indexes[s.d.Dir]).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d indexes, %v", n, err)
		}
	})
}
