package tabledocs

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/modelcheck"
	"github.com/diegosdk/diego/lrp"
)

func TestTheDocumentationIsNotStale(t *testing.T) {
	stale, err := Stale("../../docs/tables")
	if err != nil {
		t.Fatal(err)
	}
	if len(stale) > 0 {
		t.Errorf("stale in docs/tables: %s: run go generate ./... and commit the result", strings.Join(stale, ", "))
	}
}

func TestDiagramsElsewhereAreThoseOfTheCode(t *testing.T) {
	for _, name := range []string{"README.md", "docs/deployments.md"} {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, blocks, found := strings.Cut(string(text), "```mermaid\n")
		if !found {
			t.Errorf("%s has no diagram", name)
		}
		for found {
			var diagram string
			diagram, blocks, _ = strings.Cut(blocks, "```")
			if !strings.Contains(statesPage(), "```mermaid\n"+diagram+"```") {
				t.Errorf("this diagram of %s is not in docs/tables/states.md: copy it from there\n%s", name, diagram)
			}
			_, blocks, found = strings.Cut(blocks, "```mermaid\n")
		}
	}
}

// The introduction of the diagram says so, and the diagram leaves it out.
func TestEveryRolloutCanBePausedAndAborted(t *testing.T) {
	edges := rolloutHistories()
	for w := lrp.WaitNothing; w <= lrp.WaitResumed; w++ {
		abort := modelcheck.Edge{From: w.String(), By: "AbortRollout"}
		pause := modelcheck.Edge{From: w.String(), To: lrp.WaitResumed.String(), By: "PauseRollout"}
		if !slices.Contains(edges, abort) || w != lrp.WaitResumed && !slices.Contains(edges, pause) {
			t.Errorf("a rollout that waits for %v cannot be paused or aborted", w)
		}
	}
}

func TestStaleNamesWhatChangedIsMissingOrIsLeftOver(t *testing.T) {
	dir, pages := t.TempDir(), Pages()
	for _, p := range pages[2:] {
		if err := os.WriteFile(filepath.Join(dir, p.Name), []byte(p.Text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{pages[1].Name: "changed", "zzz.md": "left over"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Stale(dir)
	want := []string{pages[0].Name, pages[1].Name, "zzz.md"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := Stale(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a missing directory is not an error")
	}
}

func TestPagesAreTheSameEveryTime(t *testing.T) {
	if !slices.Equal(Pages(), Pages()) {
		t.Error("two renderings differ")
	}
}

func TestEveryTableIsFullAndItsPagesReadBack(t *testing.T) {
	for _, table := range tables() {
		t.Run(table.name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, row := range table.rows {
				if len(row) != len(table.head) || strings.Contains(strings.Join(row, ""), "|") {
					t.Errorf("row %v does not fit %v", row, table.head)
				}
				key := strings.Join(row[:max(2, len(row)-4)], " × ")
				if seen[key] {
					t.Errorf("%s is there twice", key)
				}
				seen[key] = true
			}
			records, err := csv.NewReader(strings.NewReader(table.csv())).ReadAll()
			if err != nil || len(records) != len(table.rows)+1 {
				t.Errorf("the CSV has %d records (%v), want %d", len(records), err, len(table.rows)+1)
			}
			if got, want := strings.Count(table.markdown(), "\n| "), len(table.rows)+2; got != want {
				t.Errorf("the Markdown has %d table lines, want %d", got, want)
			}
		})
	}
}

// The older forms were transcribed by hand. They differ from the tables in
// exactly the cells that the page names, and say there what it says.
func TestOlderFormsDifferExactlyWhereThePageSaysSo(t *testing.T) {
	notation := map[string]string{
		"C": "claim LRP", "S": "start LRP", "X": "crash LRP", "R": "remove LRP",
		"U": "put the record back to UNCLAIMED and request a start",
		"T": "start task", "E": "complete task", "F": "fail task", "J": "reject task",
		"run": "run container", "D": "delete container", "-": "do nothing",
	}
	for i, name := range []string{"lrp-alternate.txt", "lrp-older.txt", "task-alternate.txt"} {
		t.Run(name, func(t *testing.T) {
			v := views()[i]
			text, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			var got []difference
			records := 0
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "#") {
					continue
				}
				fields := strings.Split(line, "|")
				for i := range fields {
					fields[i] = strings.TrimSpace(fields[i])
				}
				record := slices.Index(v.records, fields[0])
				if record < 0 || len(fields) != len(v.contains)+1 {
					t.Fatalf("cannot read %q", line)
				}
				records++
				for c, words := range fields[1:] {
					row, ok := v.cell(record, c)
					if ok != (words != "") {
						t.Errorf("%s × %s: in the table = %v, in the older form = %v", v.contains[c], fields[0], ok, words != "")
					}
					if !ok {
						continue
					}
					var theirs []string
					for word := range strings.FieldsSeq(words) {
						theirs = append(theirs, notation[word])
					}
					if action := strings.Join(theirs, ", then "); action != row.Action() {
						got = append(got, difference{fields[0], v.contains[c], action})
					}
				}
			}
			if records != len(v.records) {
				t.Fatalf("%d records are transcribed, want %d", records, len(v.records))
			}
			for _, d := range got {
				if !slices.Contains(v.differs, d) {
					t.Errorf("not on the page: %+v", d)
				}
			}
			for _, d := range v.differs {
				if !slices.Contains(got, d) {
					t.Errorf("on the page, but not so: %+v", d)
				}
			}
		})
	}
}

func TestTheDiagramsShowTheSpecificationsTransitions(t *testing.T) {
	for _, c := range []struct {
		machine string
		edges   []edge
		want    []edge
	}{
		{"ActualLRP", lrpEdges(), []edge{
			{outside, "UNCLAIMED", "CreateMissing"}, {"UNCLAIMED", "CLAIMED", "Claim"}, {"CLAIMED", "RUNNING", "Start"},
			{"RUNNING", "UNCLAIMED", "Crash"}, {"RUNNING", "CRASHED", "Crash"}, {"CRASHED", "UNCLAIMED", "Restart"},
			{"RUNNING", "SUSPECT", "MarkSuspect"}, {"SUSPECT", "RUNNING", "Recover"},
			{"RUNNING", "EVACUATING", "EvacuateRunning"}, {"EVACUATING", outside, "RemoveEvacuating"},
		}},
		{"Task", taskEdges(), []edge{
			{outside, "PENDING", "Desire"}, {"PENDING", "RUNNING", "Start"}, {"RUNNING", "COMPLETED", "Complete"},
			{"COMPLETED", "RESOLVING", "Resolve"}, {"RESOLVING", outside, "Delete"}, {"RUNNING", "PENDING", "Reject"},
		}},
		{"Container", containerEdges(), []edge{
			{outside, "RESERVED", ""}, {"RESERVED", "INITIALIZING", ""}, {"INITIALIZING", "CREATED", ""},
			{"CREATED", "RUNNING", ""}, {"RUNNING", "COMPLETED", ""}, {"COMPLETED", outside, ""},
		}},
	} {
		for _, e := range c.want {
			if !slices.Contains(c.edges, e) {
				t.Errorf("%s: %+v is missing", c.machine, e)
			}
		}
		for _, e := range c.edges {
			if c.machine == "Task" && (e.from == "COMPLETED" || e.from == "RESOLVING") && (e.to == "RUNNING" || e.to == "PENDING") {
				t.Errorf("a task that is over runs again: %+v", e)
			}
		}
	}
}
