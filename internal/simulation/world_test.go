package simulation_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/simulation"
)

var (
	oneSeed = flag.Uint64("simulation.seed", 0, "run this seed only")
	seeds   = flag.Int("simulation.seeds", 25, "how many seeds to run")
)

// Whatever gets lost, comes twice or late, vanishes or is paused: no invariant
// breaks, no task runs twice, the events tell of every record, convergence
// misses nothing when it looks only at what has changed or is due; and when all
// faults have ended, exactly what is desired runs.
func TestWhateverGoesWrongDiegoComesToRunWhatIsDesired(t *testing.T) {
	run := func(seed uint64) {
		for _, cells := range []string{"models", "reps"} {
			t.Run(fmt.Sprintf("%s/seed %d", cells, seed), func(t *testing.T) {
				if err := simulate(t.Context(), seed, cells == "reps"); err != nil {
					t.Errorf("%v\nrepeat with: go test ./internal/simulation -run /%s/ -simulation.seed=%d", err, cells, seed)
				}
			})
		}
	}
	if *oneSeed != 0 {
		run(*oneSeed)
		return
	}
	for seed := range *seeds {
		run(uint64(seed) + 1)
	}
}

func simulate(ctx context.Context, seed uint64, real bool) error {
	w, err := simulation.NewWorld(seed, 4, real)
	if err != nil {
		return err
	}
	for range 40 { // the cells have announced themselves for longer than the guard's grace
		if err := w.Step(ctx); err != nil {
			return err
		}
	}
	w.Faults(0.15)
	for step := range 300 {
		w.Mischief(ctx)
		if err := w.Step(ctx); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	if w.Plans < 100 || w.Actions < 10 {
		return fmt.Errorf("only %d plans with %d actions were compared", w.Plans, w.Actions)
	}
	w.Heal()
	return settle(ctx, w)
}

// settle gives the world three hours: a crashed instance may wait for 16
// minutes, and its replacement again.
func settle(ctx context.Context, w *simulation.World) (err error) {
	deadline := w.Clock.Now().Add(3 * time.Hour)
	for w.Clock.Now().Before(deadline) {
		for range 20 {
			if err := w.Step(ctx); err != nil {
				return err
			}
		}
		for _, p := range w.Planes {
			if leading, _ := p.Leadership.Leading(); leading {
				_ = p.BBS.UpsertDomain(ctx, "apps", 2*time.Minute)
			}
		}
		if err = w.Settled(ctx); err == nil {
			return nil
		}
	}
	return fmt.Errorf("three hours later: %w", err)
}
