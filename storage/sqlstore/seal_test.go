package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

const secret = "hunter2-and-its-address"

// secrets is a batch with a secret in everything that is encrypted.
func secrets(n int) storage.Batch {
	guid := fmt.Sprintf("p%03d", n)
	d := desired(guid, 1)
	d.Routes = lrp.Routes{"router": []byte(`"` + secret + `"`)}
	d.Definitions[guid] = withPath(d.Definitions[guid], secret)
	before := d.Definitions[guid]
	d.Revisions = []lrp.Revision{{Number: 1, DefinitionID: "before", Definition: &before}, {Number: 2, DefinitionID: guid}}
	r := &lrp.ActualLRP{
		Key:         lrp.Key{ProcessGUID: guid, DefinitionID: guid, Domain: "apps"},
		InstanceKey: lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}, NetInfo: lrp.NetInfo{Address: secret},
		State: lrp.Running, Since: noon, RunningSince: noon, ModificationTag: lrp.ModificationTag{Epoch: 1},
	}
	work := &task.Task{GUID: guid, Domain: "apps", State: task.Pending, CreatedAt: noon, UpdatedAt: noon, ModificationTag: lrp.ModificationTag{Epoch: 1}}
	work.RootFS, work.Action = "preloaded:"+secret, d.Definitions[guid].Action
	b := storage.Batch{
		ActualLRPs:  []lrp.Write{{After: r}},
		Deployments: []storage.DeploymentWrite{{After: d}},
		Tasks:       []task.Write{{After: work}},
	}
	b.Events = append(b.Events, storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceCreated, After: r}},
		storage.Event{Task: &task.Event{Kind: task.Created, After: work}})
	return b
}

func withPath(d lrp.Definition, path string) lrp.Definition {
	run := *d.Action.Run
	run.Path = path
	d.Action.Run = &run
	return d
}

// sealedRows counts the rows with encrypted columns, and those that show the
// secret.
func sealedRows(t *testing.T, s *Store) (all, clear int) {
	t.Helper()
	for _, table := range s.sealedTables() {
		rows, err := s.read.Query("SELECT " + table.column + " FROM " + s.table(table.name))
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var data []byte
			if err := rows.Scan(&data); err != nil {
				t.Fatal(err)
			}
			if all++; bytes.Contains(data, []byte(secret)) {
				clear++
			}
		}
		rows.Close()
	}
	return all, clear
}

// readAll reads everything that was committed and encrypted, and returns the
// first error. Gaps are the store's.
func readAll(s *Store) (n int, first error) {
	note := func(err error) {
		if n++; err != nil && first == nil {
			first = err
		}
	}
	ctx := context.Background()
	for _, err := range s.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
		note(err)
	}
	for d, err := range s.Deployments(ctx, storage.DeploymentFilter{}) {
		if note(err); err == nil {
			d, err = s.Deployment(ctx, d.ProcessGUID)
			if note(err); err == nil && len(d.Revisions) != 2 {
				note(fmt.Errorf("%s has %d revisions, want 2", d.ProcessGUID, len(d.Revisions)))
			}
		}
	}
	for _, err := range s.Tasks(ctx, storage.TaskFilter{}) {
		note(err)
	}
	for e, err := range s.Events(ctx, 0, storage.EventFilter{}) {
		if e.Gap == nil {
			note(err)
		}
	}
	return n, first
}

func TestKeysRotateWhileTheOldOnesAreKnown(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		const records = 250
		s := mustOpen(t, dsn, Options{})
		for n := range records {
			if _, err := s.Commit(t.Context(), secrets(n)); err != nil {
				t.Fatal(err)
			}
		}
		rows, clear := sealedRows(t, s)
		if rows != 6*records || clear != rows {
			t.Fatalf("%d rows, %d of them legible, before there are keys", rows, clear)
		}
		s.Close()

		// What is there stays legible when keys are added, and is encrypted by
		// a rotation, even one that is interrupted.
		s = mustOpen(t, dsn, Options{Keys: testKeys("a")})
		if n, err := readAll(s); err != nil || n != 6*records {
			t.Fatalf("%d read, %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		table := s.sealedTables()[2]
		if _, err := s.rotatePage(ctx, &table, nil); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := s.Rotate(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("an interrupted rotation: %v", err)
		}
		if _, clear := sealedRows(t, s); clear != rows-rotationRows {
			t.Errorf("%d rows are legible", clear)
		}
		if done, err := s.Rotate(t.Context()); err != nil || done.Rows != rows-rotationRows || done.Skipped != 0 {
			t.Errorf("rotation: %+v, %v", done, err)
		}
		if _, clear := sealedRows(t, s); clear != 0 {
			t.Errorf("%d rows are legible", clear)
		}
		if done, err := s.Rotate(t.Context()); err != nil || done.Rows != 0 {
			t.Errorf("a second rotation: %+v, %v", done, err)
		}
		s.Close()

		// The next key: once all is rotated, the old one is not needed.
		s = mustOpen(t, dsn, Options{Keys: testKeys("b")})
		rows++ // the gap of the opening before
		if done, err := s.Rotate(t.Context()); err != nil || done.Rows != rows {
			t.Errorf("rotation: %+v, %v", done, err)
		}
		s.Close()
		only := testKeys("b")
		delete(only.Secrets, "a")
		s = mustOpen(t, dsn, Options{Keys: only})
		if n, err := readAll(s); err != nil || n != 6*records {
			t.Errorf("%d read, %v", n, err)
		}
	})
}

func TestAnUnknownLabelIsAnErrorAndLosesNoRow(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{Keys: testKeys("a")})
		if _, err := s.Commit(t.Context(), secrets(1)); err != nil {
			t.Fatal(err)
		}
		s.Close()

		less := testKeys("b")
		delete(less.Secrets, "a")
		s = mustOpen(t, dsn, Options{Keys: less})
		ctx := t.Context()
		_, _, slotErr := s.Slot(ctx, "p001", 0)
		_, deploymentErr := s.Deployment(ctx, "p001")
		_, taskErr := s.Task(ctx, "p001")
		_, listErr := readAll(s)
		_, rotateErr := s.Rotate(ctx)
		quarantine := storage.Batch{Quarantine: []storage.Quarantine{{Key: storage.TaskKey("p001"), Reason: "no key"}}}
		_, quarantineErr := s.Commit(ctx, quarantine)
		for what, err := range map[string]error{
			"slot": slotErr, "deployment": deploymentErr, "task": taskErr, "list": listErr, "rotate": rotateErr, "quarantine": quarantineErr,
		} {
			var key *KeyError
			if !errors.As(err, &key) || key.Label != "a" || errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("%s: %v, want a *KeyError for a", what, err)
			}
		}
		s.Close()

		if n, err := readAll(mustOpen(t, dsn, Options{Keys: testKeys("b")})); err != nil || n != 6 {
			t.Errorf("with all keys: %d read, %v", n, err)
		}
	})
}

func TestAKeyThatIsNotTheOneOfItsLabelIsRefused(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		mustOpen(t, dsn, Options{Keys: testKeys("a")}).Close()
		wrong := testKeys("a")
		wrong.Secrets["a"] = make([]byte, 32)
		_, err := open(t.Context(), dsn, &Options{Keys: wrong})
		var key *KeyError
		if !errors.As(err, &key) || key.Label != "a" {
			t.Errorf("%v, want a *KeyError for a", err)
		}
	})
	for name, keys := range map[string]*Keys{
		"no secret for the active label": {Active: "x"},
		"a key of the wrong length":      {Active: "x", Secrets: map[string][]byte{"x": make([]byte, 5)}},
		"a label that is empty":          {Secrets: map[string][]byte{"": make([]byte, 16)}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(t.Context(), ":memory:", &Options{Keys: keys}); !errors.Is(err, ErrKey) {
				t.Errorf("%v, want a *KeyError", err)
			}
		})
	}
}

// Ciphertext belongs to its record: moved to another one it is damage.
func TestEncryptedDataCannotBeMovedToAnotherRecord(t *testing.T) {
	s := mustOpen(t, ":memory:", Options{Keys: testKeys("a")})
	for n := range 2 {
		if _, err := s.Commit(t.Context(), secrets(n)); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, s, "UPDATE diego_actual_lrps SET data = (SELECT data FROM diego_actual_lrps WHERE process_guid = 'p001') WHERE process_guid = 'p000'")
	if _, _, err := s.Slot(t.Context(), "p000", 0); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
	if _, _, err := s.Slot(t.Context(), "p001", 0); err != nil {
		t.Error(err)
	}
}

func FuzzOpenSealed(f *testing.F) {
	s := mustOpen(f, ":memory:", Options{Keys: testKeys("a")})
	f.Add(s.sealer.seal([]byte("data"), []byte("here")))
	f.Add([]byte{sealedVersion, 200})
	f.Add([]byte{sealedVersion, 1, 'a', 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, err := s.sealer.open(data, []byte("here"))
		if label, _ := sealedLabel(data); label == "" && (err != nil || !bytes.Equal(plain, data)) {
			t.Errorf("plain data became %q, %v", plain, err)
		}
	})
}
