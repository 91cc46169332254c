package modelcheck

import (
	"cmp"
	"slices"

	"github.com/diegosdk/diego/lrp"
)

// Worlds are those that the tests walk through. Each may be walked deeper: with
// more disturbances, or with all kinds of them.
func Worlds() []World {
	rollout := func(p lrp.RolloutPolicy) lrp.Policies {
		p.MinHealthy, p.Deadline = tick, deadlineTicks*tick
		return lrp.Policies{Rollout: &p}
	}
	budget := lrp.Policies{Disruption: &lrp.Disruption{MaxUnavailable: 1}}
	all := []World{
		{Name: "plain", Says: "a rollout without a policy", Disturbances: 1,
			Without: but(Activation, Abort, Pause, Resume, Scale, Crash, Vanish, Slow, Late)},
		{Name: "healthy", Says: "a rollout whose instances must prove healthy", Disturbances: 1, Policies: rollout(lrp.RolloutPolicy{}),
			Without: but(Activation, Abort, Pause, Resume, Crash, Vanish, Unready, Slow, Late)},
		{Name: "overtaken", Says: "one rollout overtakes another", Definitions: 3, Disturbances: 1, Policies: rollout(lrp.RolloutPolicy{}),
			Without: but(Update, Activation, Abort)},
		{Name: "canary", Says: "a canary that is confirmed or aborted, or fails", Disturbances: 2,
			Policies: rollout(lrp.RolloutPolicy{Canary: 1, OnFailure: lrp.RollBackOnFailure}), Without: but(Confirm, Abort, Pause, Resume, Crash, Unready)},
		{Name: "pausing", Says: "a definition that fails pauses its rollout", Disturbances: 1, Policies: rollout(lrp.RolloutPolicy{OnFailure: lrp.PauseOnFailure}),
			Without: but(Resume, Abort, Crash)},
		{Name: "back", Says: "a definition that fails is rolled back", Disturbances: 1, Policies: rollout(lrp.RolloutPolicy{OnFailure: lrp.RollBackOnFailure}),
			Without: but(Crash, Slow)},
		{Name: "restarts", Says: "the first crash restarts at once, and running for long forgives it", Disturbances: 1, ImmediateRestarts: 1,
			Policies: rollout(lrp.RolloutPolicy{OnFailure: lrp.PauseOnFailure}), Without: but(Crash)},
		{Name: "lost", Says: "a rollout is aborted, and an order to stop is lost", Disturbances: 2, Policies: rollout(lrp.RolloutPolicy{}),
			Without: but(Abort, LostStop)},
		{Name: "both", Says: "three indices, two of them in flight", Indices: 3, Disturbances: 0, Policies: rollout(lrp.RolloutPolicy{MaxInFlight: 2}),
			Without: but(Abort)},
		{Name: "drain", Says: "a cell is drained in mid-roll, with a budget", Disturbances: 1, Policies: budget, Without: but(Drain, DrainLimit)},
		{Name: "drains", Says: "both cells are drained", Indices: 1, Disturbances: 2, Policies: budget, Without: but(Drain, DrainLimit, Unready)},
		{Name: "recreate", Says: "cells are drained in mid-roll, and instances stop before their replacements start", Disturbances: 1, Strategy: lrp.Recreate,
			Policies: budget, Without: but(Drain)},
		{Name: "silence", Says: "a cell is not seen, and works", Indices: 1, Disturbances: 1, Policies: rollout(lrp.RolloutPolicy{}), Without: but(Silence)},
		{Name: "power", Says: "a cell loses its containers", Indices: 1, Disturbances: 1, Policies: rollout(lrp.RolloutPolicy{}), Without: but(PowerCut)},
	}
	for i := range all {
		w := &all[i]
		w.Updated, w.Room = true, 4
		w.Indices, w.Definitions = cmp.Or(w.Indices, 2), cmp.Or(w.Definitions, 2)
		if w.ImmediateRestarts == 0 {
			w.ImmediateRestarts = -1
		}
	}
	return all
}

// but lists all disturbances but these.
func but(these ...Disturbance) (others []Disturbance) {
	for d := Update; d <= DrainLimit; d++ {
		if !slices.Contains(these, d) {
			others = append(others, d)
		}
	}
	return others
}
