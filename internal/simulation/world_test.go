package simulation_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/simulation"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
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

// The store falls back to an earlier moment, again and again, while everybody
// goes on: no subscriber ever sees two events under one number, none misses any
// without being told, no epoch is granted twice, and the rest holds as ever.
func TestAStoreThatFallsBackGivesNoNumberAndNoEpochTwice(t *testing.T) {
	eachSeed(t, func(ctx context.Context, w *simulation.World) error {
		w.Faults(0.1)
		for step := range 240 {
			w.Mischief(ctx)
			if step%12 == 0 { // the moment to which it falls back is up to 84 s ago, or was before
				w.Save()
			}
			if step%28 == 27 {
				if err := w.FallBack(ctx); err != nil {
					return err
				}
			}
			if err := w.Step(ctx); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		if w.Fallen != 8 || w.Missed() == 0 {
			return fmt.Errorf("the store fell back %d times, and %d subscribers were told", w.Fallen, w.Missed())
		}
		w.Heal()
		return settle(ctx, w)
	})
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

// All cells are cut off for a while. Whatever the order in which their presences
// end and return, if each is back within the grace, everything goes on as if
// nothing had happened: no task fails, and no instance is replaced.
func TestAnOutageOfAllCellsWithinTheGraceCostsNothing(t *testing.T) {
	eachSeed(t, func(ctx context.Context, w *simulation.World) error {
		before, err := employed(ctx, w)
		if err != nil {
			return err
		}
		for range w.Outage() + 40 {
			if err := w.Step(ctx); err != nil {
				return err
			}
		}
		return unharmed(ctx, w, before, true)
	})
}

// The same for a loss that takes its time. The cells can be reached all the
// while, so replacements of the first to go may run; but no task fails.
func TestASpreadOutLossOfPresencesFailsNoTask(t *testing.T) {
	eachSeed(t, func(ctx context.Context, w *simulation.World) error {
		before, err := employed(ctx, w)
		if err != nil {
			return err
		}
		for range w.SpreadLoss(40) + 40 {
			if err := w.Step(ctx); err != nil {
				return err
			}
		}
		if err := unharmed(ctx, w, before, false); err != nil {
			return err
		}
		return settle(ctx, w)
	})
}

// eachSeed runs a scenario in a world whose cells have announced themselves for
// longer than the guards' grace.
func eachSeed(t *testing.T, scenario func(context.Context, *simulation.World) error) {
	for _, cells := range []string{"models", "reps"} {
		for n := range *seeds {
			seed := uint64(n) + 1
			if *oneSeed != 0 && seed != *oneSeed {
				continue
			}
			t.Run(fmt.Sprintf("%s/seed %d", cells, seed), func(t *testing.T) {
				w, err := simulation.NewWorld(seed, 4, cells == "reps")
				for i := 0; err == nil && i < 40; i++ {
					err = w.Step(t.Context())
				}
				if err == nil {
					err = scenario(t.Context(), w)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// employed gives the cells work, and returns the instances that run.
func employed(ctx context.Context, w *simulation.World) (map[string]bool, error) {
	if err := w.Employ(ctx, 3, 0); err != nil {
		return nil, err
	}
	for range 20 {
		if err := w.Step(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.Settled(ctx); err != nil {
		return nil, err
	}
	if err := w.Employ(ctx, 0, 8); err != nil {
		return nil, err
	}
	for range 4 {
		if err := w.Step(ctx); err != nil {
			return nil, err
		}
	}
	running := map[string]bool{}
	for r, err := range w.Store.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
		if err != nil {
			return nil, err
		}
		running[r.InstanceGUID] = true
	}
	tasks := 0
	for range w.Store.Tasks(ctx, storage.TaskFilter{States: []task.State{task.Running}}) {
		tasks++
	}
	if len(running) != 12 || tasks < 4 {
		return nil, fmt.Errorf("%d instances and %d tasks run", len(running), tasks)
	}
	return running, nil
}

// unharmed returns what the log tells of a task that has failed or, if alone, of
// an instance that runs and did not before.
func unharmed(ctx context.Context, w *simulation.World, before map[string]bool, alone bool) error {
	ended := 0
	for e, err := range w.Store.Events(ctx, 0, storage.EventFilter{}) {
		switch {
		case err != nil:
			return err
		case e.Task != nil && e.Task.After != nil && e.Task.After.Failed:
			return fmt.Errorf("task %s has failed: %s", e.Task.After.GUID, e.Task.After.FailureReason)
		case e.Task != nil && e.Task.After != nil && e.Task.After.State == task.Completed:
			ended++
		case alone && e.LRP != nil && e.LRP.After != nil && e.LRP.After.State == lrp.Running && !before[e.LRP.After.InstanceGUID]:
			return fmt.Errorf("%s/%d runs as %s: %s", e.LRP.After.ProcessGUID, e.LRP.After.Index, e.LRP.After.InstanceGUID, e.LRP.Explain())
		}
	}
	if ended != 8 {
		return fmt.Errorf("%d tasks have ended, want 8", ended)
	}
	return nil
}
