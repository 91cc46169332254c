package simulation_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/simulation"
)

// A scorer that fills one cell after the other is cheap, and puts all instances of
// a process at the mercy of one zone. A check of ours says so, in a world in which
// consumers act and nothing else happens; Diego's own checkers have no objection.
func Example() {
	oneZone := simulation.Check{
		Name: "one-zone",
		Says: "A process with several instances runs in more than one zone.",
		Judge: func(_ context.Context, w simulation.World) error {
			instances, zones := map[string]int{}, map[string]map[string]bool{}
			for _, cell := range w.Cells {
				for _, k := range cell.LRPs {
					if zones[k.ProcessGUID] == nil {
						zones[k.ProcessGUID] = map[string]bool{}
					}
					instances[k.ProcessGUID]++
					zones[k.ProcessGUID][cell.Zone] = true
				}
			}
			if w.Settled && instances["process-0"] > 1 && len(zones["process-0"]) == 1 {
				return errors.New("process-0 runs in one zone")
			}
			return nil
		},
	}
	packed := func(_ *auction.Item, cell *auction.CellState, _ auction.Score) float64 {
		return float64(cell.Remaining.MemoryMB) // less is better
	}
	for name, scorer := range map[string]auction.Scorer{"Diego's own": nil, "packed": packed} {
		err := simulation.Play(context.Background(), simulation.Options{
			Placement: auction.Policy{Scorer: scorer}, Faults: -1, Steps: 20, Checks: []simulation.Check{oneZone},
		}, 1)
		if v := (*simulation.Violation)(nil); errors.As(err, &v) {
			fmt.Printf("%s: %s: %s\n", name, v.Checker, v.What)
		} else {
			fmt.Printf("%s: %v\n", name, err)
		}
	}
	// Unordered output:
	// Diego's own: <nil>
	// packed: one-zone: process-0 runs in one zone
}
