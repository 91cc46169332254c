//go:build cgo

package sqlstore

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// releaseBefore holds the packages of the release before this one that the store
// is made of, as scripts/release-before has packed them. It is here, and not
// looked for in the repository's history, as a clone may not have that.
const releaseBefore = "testdata/release-before.tar.gz"

// buildPeers builds the program of testdata/peer with the release before and with
// this one. Both use the other modules that this one uses.
func buildPeers(t *testing.T) releases {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	main, err := filepath.Abs("testdata/peer/main.go")
	if err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(dir, "before")
	if err := unpack(releaseBefore, before); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(before, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	programs := make(releases)
	for name, tree := range map[string]string{"before": before, "present": root} {
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(tree, "internal/peer/main.go"): main}})
		if err != nil {
			t.Fatal(err)
		}
		added := filepath.Join(dir, name+".json")
		if err := os.WriteFile(added, overlay, 0o600); err != nil {
			t.Fatal(err)
		}
		programs[name] = filepath.Join(dir, "peer-"+name)
		build := osexec.Command("go", "build", "-buildvcs=false", "-overlay="+added, "-o="+programs[name], "./internal/peer")
		build.Dir = tree
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building the peer of the release %s: %v\n%s", name, err, output)
		}
	}
	return programs
}

// unpack writes the files of an archive below a directory.
func unpack(archive, dir string) error {
	data, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(dir, header.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		body, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, body, 0o600); err != nil {
			return err
		}
	}
}

// A peer is a process that has a store open.
type peer struct {
	name   string
	schema int // the version that it knows
	in     io.WriteCloser
	out    *bufio.Scanner
	wait   func() error
}

// A releases starts peers by the name of their release.
type releases map[string]string

// start starts a peer on a database. The error says why the store cannot be opened.
func (r releases) start(t *testing.T, release, dsn string) (*peer, error) {
	t.Helper()
	program := osexec.Command(r[release], dsn)
	program.Stderr = os.Stderr
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peer{name: release, in: in, out: bufio.NewScanner(out), wait: program.Wait}
	p.out.Buffer(nil, 1<<20)
	t.Cleanup(func() { p.end(t) })
	lines, err := p.answer()
	if err == nil {
		p.schema, err = strconv.Atoi(lines[0])
	}
	return p, err
}

func (r releases) mustStart(t *testing.T, release, dsn string) *peer {
	t.Helper()
	p, err := r.start(t, release, dsn)
	if err != nil {
		t.Fatalf("the release %s: %v", release, err)
	}
	return p
}

// end closes the store and waits for the process.
func (p *peer) end(t *testing.T) {
	t.Helper()
	if p.wait == nil {
		return
	}
	if err := errors.Join(p.in.Close(), p.wait()); err != nil {
		t.Errorf("the release %s: %v", p.name, err)
	}
	p.wait = nil
}

// ask sends a line and returns the lines that come back.
func (p *peer) ask(words ...any) ([]string, error) {
	if _, err := fmt.Fprintln(p.in, words...); err != nil {
		return nil, err
	}
	return p.answer()
}

func (p *peer) answer() (lines []string, err error) {
	for p.out.Scan() {
		switch word, rest, _ := strings.Cut(p.out.Text(), " "); word {
		case "ok":
			return lines, nil
		case "error":
			return lines, errors.New(rest)
		}
		lines = append(lines, p.out.Text())
	}
	return lines, fmt.Errorf("it has ended: %w", errors.Join(p.out.Err(), io.ErrUnexpectedEOF))
}

func (p *peer) must(t *testing.T, words ...any) []string {
	t.Helper()
	lines, err := p.ask(words...)
	if err != nil {
		t.Fatalf("the release %s: %v: %v", p.name, fmt.Sprint(words...), err)
	}
	return lines
}

// wantSame wants both releases to see the same records and events.
func wantSame(t *testing.T, one, other *peer) {
	t.Helper()
	for _, what := range []string{"records", "events"} {
		a, b := one.must(t, what), other.must(t, what)
		if len(a) == 0 || !slices.Equal(a, b) {
			t.Errorf("the release %s sees the %s\n%s\nand the release %s\n%s", one.name, what, strings.Join(a, "\n"), other.name, strings.Join(b, "\n"))
		}
	}
}

// eachKind runs a sub-test for SQLite, PostgreSQL and MariaDB.
func eachKind(t *testing.T, f func(t *testing.T, d Dialect, dsn string)) {
	for _, d := range databases[:3] {
		t.Run(d.name, func(t *testing.T) { f(t, d.dialect, d.database(t)) })
	}
}

func TestTheReleaseBeforeAndThisOneWorkOnOneDatabase(t *testing.T) {
	r := buildPeers(t)
	eachKind(t, func(t *testing.T, d Dialect, dsn string) {
		before := r.mustStart(t, "before", dsn)
		before.must(t, "desire", "web", 8)
		for index := range 3 {
			before.must(t, "step", "web", index, "create")
		}
		before.must(t, "step", "web", 0, "claim")
		before.must(t, "task", "t1")
		before.must(t, "domain", "apps")
		epoch := before.must(t, "acquire", "bbs-1")[0]
		before.must(t, "fenced", "fenced-1", epoch)

		// A process of this release joins, and migrates if need be.
		present := r.mustStart(t, "present", dsn)
		wantSame(t, before, present)
		if _, err := present.ask("acquire", "bbs-2"); err == nil {
			t.Error("two hold one lease")
		}

		// Each goes on with what the other has written.
		present.must(t, "step", "web", 0, "start")
		present.must(t, "step", "web", 1, "claim")
		before.must(t, "step", "web", 1, "start")
		before.must(t, "step", "web", 0, "remove")
		present.must(t, "desire", "api", 1)
		before.must(t, "step", "api", 0, "create")
		present.must(t, "step", "api", 0, "claim")
		present.must(t, "task", "t2")
		wantSame(t, before, present)
		if _, err := before.ask("domain", "apps"); err == nil {
			t.Error("a request id of its own is not known")
		}
		if _, err := present.ask("domain", "apps"); err == nil {
			t.Error("the request id of the release before is not known")
		}

		// Both at once, in one another's way.
		var wg sync.WaitGroup
		for _, p := range []*peer{before, present} {
			wg.Go(func() {
				if _, err := p.ask("live", "web", 4, 20); err != nil {
					t.Errorf("the release %s: %v", p.name, err)
				}
			})
		}
		wg.Wait()
		wantSame(t, before, present)

		// The leader is of this release now, and the one before is fenced off.
		before.must(t, "release", "bbs-1", epoch)
		next := present.must(t, "acquire", "bbs-2")[0]
		if n, _ := strconv.Atoi(next); strconv.Itoa(n) != next || n <= mustAtoi(t, epoch) {
			t.Errorf("epoch %s follows %s", next, epoch)
		}
		present.must(t, "fenced", "fenced-2", next)
		if _, err := before.ask("fenced", "fenced-3", epoch); err == nil {
			t.Error("a leader of the release before commits after it was replaced")
		}

		// A process of the release before that ends in the middle of it all comes
		// back, until the last of them is replaced.
		before.end(t)
		before = r.mustStart(t, "before", dsn)
		wantSame(t, before, present)
		present.must(t, "step", "web", 7, "create")
		before.must(t, "step", "web", 7, "claim")
		wantSame(t, before, present)
		present.end(t)
		s := mustOpen(t, dsn, Options{})
		wantHistory := func(want string) {
			t.Helper()
			d, err := s.Deployment(t.Context(), "web")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, r := range d.History() {
				got += fmt.Sprintf("%d %s %v %v; ", r.Number, r.DefinitionID, r.Began, r.End)
			}
			if got != want {
				t.Errorf("the history is %q, want %q", got, want)
			}
		}
		update := func(id string) {
			t.Helper()
			if err := updateRecorded(t.Context(), s, "web", id); err != nil {
				t.Fatal(err)
			}
		}

		// The release before keeps the history and the labels that this one writes,
		// and this one sees what is missing in the history.
		update("v2")
		wantHistory("1 web UNKNOWN REPLACED; 2 v2 UPDATED ACTIVE; ")
		labels := map[string]string{"team": "blog"}
		_, _, err := storage.ApplyDeployment(t.Context(), s, "web", nil, func(d *lrp.Deployment) (lrp.Change, error) { return d.Update(lrp.Update{Labels: &labels}) })
		if err != nil {
			t.Fatal(err)
		}
		before.must(t, "define", "web", "v3")
		if d, err := s.Deployment(t.Context(), "web"); err != nil || d.Labels["team"] != "blog" {
			t.Errorf("after a change by the release before the labels are %v: %v", d.Labels, err)
		}
		wantHistory("1 web UNKNOWN REPLACED; 2 v2 UPDATED LOST; 3 v3 UNKNOWN ACTIVE; ")
		update("v4")
		wantHistory("1 web UNKNOWN REPLACED; 2 v2 UPDATED LOST; 3 v3 UNKNOWN SUPERSEDED; 4 v4 UPDATED ACTIVE; ")
		before.end(t)
		checkVersions(t, s, s)
	})
}

// updateRecorded makes another definition active, as a control plane does.
func updateRecorded(ctx context.Context, s *Store, guid, id string) error {
	_, _, err := storage.ApplyDeployment(ctx, s, guid, nil, func(d *lrp.Deployment) (lrp.Change, error) {
		definition := d.Definitions[d.ActiveDefinitionID]
		c, err := d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
		return lrp.Policy{}.Record(c, "", noon), err
	})
	return err
}

func mustAtoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// nextSchema is what the release after this one may do to the schema.
var nextSchema = []string{
	"CREATE TABLE diego_next (id BIGINT PRIMARY KEY)",
	"ALTER TABLE diego_actual_lrps ADD COLUMN next BIGINT NOT NULL DEFAULT 0",
	"ALTER TABLE diego_deployments ADD COLUMN next BIGINT NOT NULL DEFAULT 0",
	"ALTER TABLE diego_tasks ADD COLUMN next BIGINT NOT NULL DEFAULT 0",
	"ALTER TABLE diego_events ADD COLUMN next BIGINT NOT NULL DEFAULT 0",
	"ALTER TABLE diego_leases ADD COLUMN next BIGINT NOT NULL DEFAULT 0",
	"ALTER TABLE diego_log ADD COLUMN next BIGINT NOT NULL DEFAULT 0",
	"CREATE INDEX diego_next_domain ON diego_actual_lrps (domain)",
}

// Each release works beside the next one, whose migration comes while it has the
// store open, and not beside the one after that.
func TestAReleaseWorksWithTheNextSchemaAndRefusesTheOneAfterThat(t *testing.T) {
	r := buildPeers(t)
	for _, release := range []string{"before", "present"} {
		t.Run(release, func(t *testing.T) {
			eachKind(t, func(t *testing.T, d Dialect, dsn string) {
				p := r.mustStart(t, release, dsn)
				p.must(t, "desire", "web", 4)
				p.must(t, "step", "web", 0, "create")
				db := openDB(t, d, dsn)
				migrate := func(version int, statements ...string) {
					for _, statement := range append(statements, fmt.Sprintf("INSERT INTO diego_schema (version) VALUES (%d)", version)) {
						if _, err := db.Exec(statement); err != nil {
							t.Fatalf("%s: %v", statement, err)
						}
					}
				}
				migrate(p.schema+1, nextSchema...)
				p.must(t, "step", "web", 0, "claim")
				p.must(t, "task", "t")
				p.must(t, "acquire", "bbs-1")
				again := r.mustStart(t, release, dsn)
				again.must(t, "step", "web", 0, "start")
				again.must(t, "live", "web", 4, 2)
				p.must(t, "live", "web", 4, 2)
				wantSame(t, p, again)
				migrate(p.schema + 2)
				_, err := r.start(t, release, dsn)
				wantError(t, err, strconv.Itoa(p.schema+2), "newer release")
			})
		})
	}
}

// A process that still runs must not move away what it does not know yet.
func TestConvergenceLeavesWhatANewerReleaseHasWritten(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		for i := range 2 {
			if _, err := s.Commit(t.Context(), secrets(i)); err != nil {
				t.Fatal(err)
			}
		}
		newer := []byte{15, 'n', 'e', 'w'} // the last version that a release may have
		exec(t, s, "UPDATE diego_actual_lrps SET data = ? WHERE process_guid = 'p000'", newer)
		exec(t, s, "UPDATE diego_deployments SET settings = ? WHERE process_guid = 'p001'", newer)
		exec(t, s, "UPDATE diego_tasks SET data = ? WHERE guid = 'p000'", newer)
		before := fmt.Sprint(rawRows(t, s))
		c, err := converge.NewConverger(converge.ConvergerOptions{Store: s, Effects: noEffects{}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Pass(t.Context())
		if !errors.Is(err, storage.ErrNewer) {
			t.Errorf("the pass ended with %v, want that it names what it cannot read", err)
		}
		if len(p.Quarantined) > 0 || fmt.Sprint(rawRows(t, s)) != before {
			t.Errorf("the pass has moved %v away", p.Quarantined)
		}
		if _, err := s.Task(t.Context(), "p000"); !errors.Is(err, storage.ErrNewer) {
			t.Errorf("%v, want ErrNewer", err)
		}
	})
}

// rawRows are the rows that newer releases have written in a test.
func rawRows(t *testing.T, s *Store) (rows [][]byte) {
	t.Helper()
	for _, query := range []string{
		"SELECT data FROM diego_actual_lrps WHERE process_guid = 'p000'", "SELECT settings FROM diego_deployments WHERE process_guid = 'p001'",
		"SELECT data FROM diego_tasks WHERE guid = 'p000'",
	} {
		var data []byte
		if err := s.read.QueryRow(query).Scan(&data); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, data)
	}
	return rows
}
