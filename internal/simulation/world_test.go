package simulation_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
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
					var tell func(string)
					if *story {
						tell = func(line string) { fmt.Println(line) }
					}
					if _, err := s.Play(t.Context(), simulation.Drawn(seed, cells == "reps"), tell); err != nil {
						t.Errorf("%v\n%s\nrepeat with: go test ./internal/simulation -run '/%s/%s/' -simulation.seed=%d", err, s.Says, s.Name, cells, seed)
					}
				})
			}
		}
	}
}
