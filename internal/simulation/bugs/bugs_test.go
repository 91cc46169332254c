package bugs_test

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/simulation/bugs"
)

var (
	date = flag.String("bugs.date", time.Now().UTC().Format(time.DateOnly), "draw the bugs of this date")
	draw = flag.Int("bugs.draw", 10, "how many bugs to put into the simulation")
)

func catalogue(t *testing.T) (root string, all []bugs.Bug) {
	root, err := bugs.Root()
	if err != nil {
		t.Fatal(err)
	}
	if all, err = bugs.All(); err != nil {
		t.Fatal(err)
	}
	return root, all
}

func TestEveryBugOfTheCatalogueFitsTheSource(t *testing.T) {
	root, all := catalogue(t)
	if len(all) < 40 {
		t.Errorf("there are %d bugs", len(all))
	}
	for _, b := range all {
		t.Run(b.Name, func(t *testing.T) {
			if _, err := b.Overlay(root, t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The draw is of the day, so that all bugs have their turn.
func TestTheSimulationCatchesTheBugsOfTheDay(t *testing.T) {
	root, all := catalogue(t)
	var must []bugs.Bug
	for _, b := range all {
		if b.Survives == "" {
			must = append(must, b)
		}
	}
	seed := fnv.New64()
	_, _ = seed.Write([]byte(*date))
	random := rand.New(rand.NewPCG(seed.Sum64(), 0))
	random.Shuffle(len(must), func(i, j int) { must[i], must[j] = must[j], must[i] })
	t.Logf("the bugs of %s; repeat with -bugs.date=%[1]s", *date)
	for _, b := range must[:min(*draw, len(must))] {
		t.Run(b.Name, func(t *testing.T) {
			const seeds, limit = 50, 15 * time.Minute // all seeds take two processors some 5 min
			r, err := b.Run(t.Context(), root, seeds, limit)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r)
			if r.Checker == "" {
				t.Errorf("%s It survived %d seeds of all scenarios (date %s)", b.Says, r.Seeds, *date)
			}
		})
	}
}
