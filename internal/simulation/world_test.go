package simulation_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/simulation"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(simulation.GCPercent)
	os.Exit(m.Run())
}

var (
	oneSeed = flag.Uint64("simulation.seed", 0, "run this seed only")
	turns   = flag.String("simulation.turns", "", "let the history of the seed turn, as STEP:SEED,STEP:SEED")
	story   = flag.Bool("simulation.story", false, "print what happens")
	seeds   = flag.Int("simulation.seeds", usualSeeds(), "how many seeds to run of each scenario")
	budget  = flag.Int("simulation.search", 150, "how many histories to search at most for rows that no seed has met")
)

// usualSeeds is how many seeds of each scenario are played. A history has one
// goroutine, in which the race detector finds nothing, apart from those of SQLite.
func usualSeeds() int {
	if testenv.Race {
		return 2
	}
	return simulation.UsualSeeds
}

// Things get lost, come twice or late, vanish or are paused. Still no checker
// objects, and when all faults have ended, exactly what is desired runs. Together
// the histories meet every row of the tables that is neither inconceivable nor shown
// by another test. Those of testdata/kept are there for the rarest rows.
func TestWhateverGoesWrongDiegoComesToRunWhatIsDesired(t *testing.T) {
	search := simulation.NewSearch(uint64(*seeds)+1, simulation.Scenarios())
	play := func(t *testing.T, c simulation.Choice) {
		played, err := c.Scenario.Play(t.Context(), c.History, teller())
		if err != nil {
			t.Errorf("%v\n%s\nrepeat with: %s", err, c.Scenario.Says, c.Repeat())
		}
		search.Learn(c, played)
	}
	first, count := uint64(1), *seeds
	if *oneSeed != 0 {
		first, count = *oneSeed, 1
	}
	turned, err := simulation.ParseTurns(*turns)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range simulation.Scenarios() {
		for _, real := range []bool{false, true} {
			for n := range count {
				c := simulation.Choice{Scenario: s, History: simulation.Drawn(first+uint64(n), real)}
				c.History.Turns = turned
				t.Run(fmt.Sprintf("%s/%s/seed %d", s.Name, c.Cells(), c.History.Seed), func(t *testing.T) { play(t, c) })
			}
		}
	}
	if *oneSeed != 0 {
		return
	}
	kept := records(t, "testdata/kept")
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		r := kept[name]
		t.Run("kept/"+name, func(t *testing.T) { play(t, simulation.Choice{Scenario: r.Scenario, History: r.History}) })
	}
	if testenv.Race {
		return // with few seeds, many rows are not met
	}
	t.Run("search", func(t *testing.T) {
		played := 0
		for ; played < *budget && len(search.Met().Missing()) > 0 && !t.Failed(); played++ {
			play(t, search.Next())
		}
		t.Logf("%d histories more, %d of %d rows met", played, len(simulation.Rows())-len(search.Met().Unmet()), len(simulation.Rows()))
		for _, r := range search.Met().Missing() {
			t.Errorf("no history has met %s; find one with: go run ./internal/simulation/cmd/campaign -for 10m -search -met internal/simulation/testdata/kept", r)
		}
	})
}

// teller prints the story, if that is wanted.
func teller() func(line string) {
	if !*story {
		return nil
	}
	return func(line string) { fmt.Println(line) }
}

// Each of these histories has failed once.
func TestNoHistoryThatFailedOnceFailsAgain(t *testing.T) {
	failed := records(t, "testdata/regressions")
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		r := failed[name]
		t.Run(name, func(t *testing.T) {
			played, err := r.Scenario.Play(t.Context(), r.History, teller())
			if len(played.Struck) < len(r.History.Only) {
				t.Logf("%d of its %d faults still strike: the source has changed since it was kept", len(played.Struck), len(r.History.Only))
			}
			if err != nil {
				t.Errorf("%v\nThe file says how it failed before. Print the story with: go test ./internal/simulation -run '/%s$' -simulation.story", err, name)
			}
		})
	}
}

// records are those of a directory, by name.
func records(t *testing.T, dir string) map[string]simulation.Record {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no records in %s (%v)", dir, err)
	}
	list := map[string]simulation.Record{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulation.ParseRecord(string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list[strings.TrimSuffix(filepath.Base(file), ".txt")] = r
	}
	return list
}
