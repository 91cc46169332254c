package tabledocs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/process"
)

func TestEveryFieldHasOneRowAndEveryRowAField(t *testing.T) {
	var fields []string
	for _, g := range fieldGroups() {
		for _, f := range g.fields {
			fields = append(fields, g.name+"."+f.Name)
			if jsonName(g.name, f) == "" {
				t.Errorf("%s.%s has no name in JSON", g.name, f.Name)
			}
		}
	}
	rows := map[string]int{}
	for _, r := range fieldRows {
		rows[r.field]++
		if r.effect == "" || r.reader == "" || r.test == "" || strings.Contains(r.effect+r.reader+r.plain, "|") {
			t.Errorf("the row of %s lacks something: %+v", r.field, r)
		}
		if !slices.Contains(fields, r.field) {
			t.Errorf("the row of %s has no field: remove it", r.field)
		}
	}
	for _, f := range fields {
		if rows[f] != 1 {
			t.Errorf("%s has %d rows, want one: say in fieldrows.go what it does, who reads it and which test proves it", f, rows[f])
		}
	}
}

func TestEveryTestThatProvesAFieldExists(t *testing.T) {
	sources := map[string]string{}
	for _, r := range fieldRows {
		i := strings.LastIndex(r.test, ".")
		if i < 0 {
			t.Errorf("%s: %q is not a test of a package", r.field, r.test)
			continue
		}
		dir, name := r.test[:i], r.test[i+1:]
		if _, read := sources[dir]; !read {
			files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				all.Write(text)
			}
			sources[dir] = all.String()
		}
		if !strings.Contains(sources[dir], "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("%s: %s has no test %s", r.field, dir, name)
		}
	}
}

// What the page says of plain processes is what their backend says of itself.
func TestWhatIsRefusedIsOnThePage(t *testing.T) {
	backend, err := process.New(process.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	host, err := backend.Probe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// This feature comes from the manager.
	host.Features = append(host.Features, executor.Feature{Name: executor.FeatureIdentity})
	shown := map[string]bool{}
	for _, g := range fieldGroups() {
		for _, f := range g.fields {
			d := demandOf(g.name, jsonName(g.name, f))
			if d == nil {
				continue
			}
			shown[d.Field] = true
			row := fieldRow{}
			real, plain := row.backends(d)
			if refused := slices.Contains(host.RefusedFields(), d.Field); refused != (plain == "refused") {
				t.Errorf("of plain processes and %s.%s the page says %q, refused is %v", g.name, f.Name, plain, refused)
			}
			if nobody := slices.Contains(elsewhere, d.Feature); nobody != (real == "refused") {
				t.Errorf("of real containers and %s.%s the page says %q", g.name, f.Name, real)
			}
		}
	}
	for _, d := range executor.Demands() {
		if !shown[d.Field] {
			t.Errorf("the demand for %s concerns no field", d.Field)
		}
	}
}

func TestThePageOfFieldsIsNotStale(t *testing.T) {
	have, err := os.ReadFile("../../docs/fields.md")
	if err != nil || string(have) != FieldsPage() {
		t.Errorf("docs/fields.md is stale (%v): run go generate ./... and commit the result", err)
	}
}
