package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// A table of testdata/schema-1.json: rows that a release has written which knew
// version 1 only. Bytes are {"hex": …}.
type oldTable struct {
	Table   string
	Columns []string
	Rows    [][]any
}

// oldDatabase makes version 1 of the schema by hand and fills it.
func oldDatabase(t *testing.T, d Dialect, dsn string) {
	t.Helper()
	migrations, err := Migrations(d, "")
	if err != nil {
		t.Fatal(err)
	}
	db := openDB(t, d, dsn)
	for _, statement := range migrations[0].statements() {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	data, err := os.ReadFile("testdata/schema-1.json")
	if err != nil {
		t.Fatal(err)
	}
	var tables []oldTable
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&tables); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if _, err := db.Exec("DELETE FROM diego_" + table.Table); err != nil {
			t.Fatal(err)
		}
		for _, row := range table.Rows {
			var args []any
			for _, v := range row {
				switch v := v.(type) {
				case json.Number:
					n, err := v.Int64()
					if err != nil {
						t.Fatal(err)
					}
					args = append(args, n)
				case map[string]any:
					b, err := hex.DecodeString(v["hex"].(string))
					if err != nil {
						t.Fatal(err)
					}
					args = append(args, b)
				default:
					args = append(args, v)
				}
			}
			query := d.fragments().Rebind("INSERT INTO diego_" + table.Table + " (" + strings.Join(table.Columns, ", ") + ") VALUES " + dialect.Placeholders(len(args), 1))
			if _, err := db.Exec(query, args...); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
	}
}

// checkOldData wants everything to be there that testdata/schema-1.json has,
// and to be of use.
func checkOldData(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	if version, err := s.schemaVersion(ctx, s.read); err != nil || version != SchemaVersion {
		t.Errorf("version %d, %v", version, err)
	}
	last := map[storage.RecordKey]*lrp.ActualLRP{}
	events, gaps := 0, 0
	for e, err := range s.Events(ctx, 0, storage.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Gap != nil {
			gaps++
			continue
		}
		if events++; gaps == 0 && e.Sequence != storage.Cursor(events) {
			t.Fatalf("event %d comes in place of %d", e.Sequence, events)
		}
		if e.LRP != nil && (e.LRP.Kind == lrp.InstanceCreated || e.LRP.Kind == lrp.InstanceChanged) {
			last[storage.ActualLRPKey(e.LRP.After)] = e.LRP.After
		}
	}
	if events < 45 || gaps == 0 {
		t.Errorf("%d events and %d gaps, want at least 45 and one of each opening", events, gaps)
	}
	instances := 0
	for _, guid := range []string{"Web", "grüße", "web"} {
		d, err := s.Deployment(ctx, guid)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 2, false: 1}[guid == "web"]; len(d.Definitions) != want || d.Settings.Instances != 3 {
			t.Errorf("%s has %d definitions and %d instances", guid, len(d.Definitions), d.Settings.Instances)
		}
		for i := range 3 {
			slot, _, err := s.Slot(ctx, guid, i)
			if err != nil || len(slot.Records) != 1 {
				t.Fatalf("%s/%d: %+v, %v", guid, i, slot, err)
			}
			r := &slot.Records[0]
			if told := last[storage.ActualLRPKey(r)]; told == nil || told.ModificationTag != r.ModificationTag || told.State != r.State {
				t.Errorf("%s/%d is %+v, and the events tell %+v", guid, i, r, told)
			}
			instances++
		}
	}
	if running := count(t, s, "web"); running != 3 || instances != 9 {
		t.Errorf("%d and %d instances", running, instances)
	}
	if x, err := s.Task(ctx, "t"); err != nil || x.CellID != "cell-1" {
		t.Errorf("task %+v, %v", x, err)
	}
	// An epoch from before the upgrade is not given out again.
	for kind, name := range map[string]string{storage.LeaderLease: "bbs", storage.CellLease: "cell-1"} {
		l, err := s.Acquire(ctx, storage.Lease{Kind: kind, Name: name, Owner: "a"}, time.Minute)
		if err != nil || l.Epoch <= 3 {
			t.Errorf("%s has epoch %d, %v", name, l.Epoch, err)
		}
	}
	before := last[storage.RecordKey{Kind: storage.ActualLRPRecord, GUID: "Web", DefinitionID: "Web", Index: 0}]
	if before == nil {
		t.Fatal("no event tells of Web/0")
	}
	if _, err := s.Commit(ctx, storage.Batch{ActualLRPs: []lrp.Write{{Before: before}}}); err != nil {
		t.Errorf("removing what was there: %v", err)
	}
}

// openEnv is the DSN that a child process opens.
const openEnv = "DIEGO_SQLSTORE_OPEN"

func TestProcessesThatStartAtOnceMigrateTheDataOfAnOlderSchema(t *testing.T) {
	if dsn := os.Getenv(openEnv); dsn != "" {
		s, err := open(context.Background(), dsn, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Commit(t.Context(), creation(unclaimed("started", os.Getpid()))); err != nil {
			t.Error(err)
		}
		return
	}
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.database(t)
			oldDatabase(t, d.dialect, dsn)
			const processes = 4
			var wg sync.WaitGroup
			for range processes {
				wg.Go(func() {
					name, _, _ := strings.Cut(t.Name(), "/")
					child := osexec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.count=1")
					child.Env = append(os.Environ(), openEnv+"="+dsn)
					if output, err := child.CombinedOutput(); err != nil {
						t.Errorf("%v\n%s", err, output)
					}
				})
			}
			wg.Wait()
			s := mustOpen(t, dsn, Options{})
			if n := count(t, s, "started"); n != processes {
				t.Errorf("%d records of %d processes", n, processes)
			}
			checkOldData(t, s)
		})
	}
}

// Each migration is one text, for psql, mariadb or sqlite3, or the tool that runs
// the migrations of others.
func TestAnOlderSchemaIsMigratedByHand(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.database(t)
			oldDatabase(t, d.dialect, dsn)
			_, err := open(t.Context(), dsn, &Options{NoMigrations: true})
			wantError(t, err, fmt.Sprintf("it is 1 and must be %d", SchemaVersion), "run the SQL of Migrations")
			var schema *SchemaError
			if !errors.As(err, &schema) || schema.Found != 1 {
				t.Errorf("%v, want a *SchemaError", err)
			}
			all, err := Migrations(d.dialect, "")
			if err != nil {
				t.Fatal(err)
			}
			driver, source := d.dialect.fragments().Dir, driverDSN(dsn)
			switch d.dialect {
			case SQLite:
				driver = "sqlite3"
			case MySQL:
				source += "?multiStatements=true"
			}
			db, err := sql.Open(driver, source)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for _, m := range all[1:] {
				if _, err := db.Exec(m.SQL); err != nil {
					t.Fatalf("%s: %v", m.Name, err)
				}
			}
			checkOldData(t, mustOpen(t, dsn, Options{NoMigrations: true}))
		})
	}
}
