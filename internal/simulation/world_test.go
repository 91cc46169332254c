package simulation_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/simulation"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(simulation.GCPercent)
	os.Exit(m.Run())
}

var (
	oneSeed = flag.Uint64("simulation.seed", 0, "run this seed only")
	story   = flag.Bool("simulation.story", false, "print what happens")
	seeds   = flag.Int("simulation.seeds", 25, "how many seeds to run of each scenario")
)

// Things get lost, come twice or late, vanish or are paused. Still no checker
// objects, and when all faults have ended, exactly what is desired runs.
func TestWhateverGoesWrongDiegoComesToRunWhatIsDesired(t *testing.T) {
	for _, s := range simulation.Scenarios() {
		for _, cells := range []string{"models", "reps"} {
			for n := range *seeds {
				seed := uint64(n) + 1
				if *oneSeed != 0 && n > 0 {
					break
				} else if *oneSeed != 0 {
					seed = *oneSeed
				}
				t.Run(fmt.Sprintf("%s/%s/seed %d", s.Name, cells, seed), func(t *testing.T) {
					if _, err := s.Play(t.Context(), simulation.Drawn(seed, cells == "reps"), teller()); err != nil {
						t.Errorf("%v\n%s\nrepeat with: go test ./internal/simulation -run '/%s/%s/' -simulation.seed=%d", err, s.Says, s.Name, cells, seed)
					}
				})
			}
		}
	}
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
	files, err := filepath.Glob("testdata/regressions/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no regressions (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := simulation.ParseRecord(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			played, err := r.Scenario.Play(t.Context(), r.History, teller())
			if len(played.Struck) < len(r.History.Only) {
				t.Logf("%d of its %d faults still strike: the source has changed since it was kept", len(played.Struck), len(r.History.Only))
			}
			if err != nil {
				t.Errorf("%v\nThe file says how it failed before. Print the story with: go test ./internal/simulation -run '/%s$' -simulation.story", err, strings.TrimSuffix(filepath.Base(file), ".txt"))
			}
		})
	}
}
