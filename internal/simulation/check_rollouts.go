package simulation

import (
	"math"
	"slices"
	"time"

	"github.com/diegosdk/diego/lrp"
)

// A second implementation of what rollouts and budgets for disruptions promise, from
// docs/deployments.md and docs/decisions.md.

// held reports whether a rollout must not change an index now: it is paused, or the
// index comes after a canary that nobody has confirmed.
func held(d *lrp.Deployment, index int) bool {
	s, canary := d.RolloutState, orZero(d.Rollout).Canary
	return s.Paused != lrp.NotPaused || s.From != "" && !s.Confirmed && canary > 0 && index >= canary
}

// steers reports whether a call about a rollout is possible.
func steers(d *lrp.Deployment, o *op) bool {
	if d == nil {
		return false
	}
	switch s := d.RolloutState; o.kind {
	case opActivate:
		_, known := d.Definitions[o.definition]
		return known
	case opConfirm:
		return s.From != "" && orZero(d.Rollout).Canary > 0
	case opAbort:
		return s.From != "" || s.Failure != nil
	default:
		return s.From != ""
	}
}

// idle reports whether a call about a rollout asks for what is so already.
func (l *ledger) idle(o *op) bool {
	d := l.deployments[o.guid]
	if d == nil || !slices.Contains(steering, o.kind) || !steers(d, o) {
		return false
	}
	next := steered(*d, o)
	return sameRollout(d, &next) && d.ActiveDefinitionID == next.ActiveDefinitionID
}

// steered is what a consumer's operation makes of the rollout of a process.
func steered(d lrp.Deployment, o *op) lrp.Deployment {
	s := &d.RolloutState
	switch o.kind {
	case opPause:
		if s.Paused == lrp.NotPaused {
			s.Paused = lrp.PausedByOperator
		}
	case opResume:
		s.Paused = lrp.NotPaused
	case opConfirm:
		s.Confirmed = true
	case opAbort:
		if s.From != "" {
			goesBack(&d)
		}
	case opActivate, opDeploy:
		if d.ActiveDefinitionID == o.definition {
			break
		}
		if *s = (lrp.RolloutState{}); d.HealthyDefinitionID != o.definition {
			s.From = d.HealthyDefinitionID
		}
		d.ActiveDefinitionID = o.definition
	}
	return d
}

// goesBack ends a rollout: the definition from which it began is the active and the
// healthy one.
func goesBack(d *lrp.Deployment) {
	from := d.RolloutState.From
	d.ActiveDefinitionID, d.HealthyDefinitionID, d.RolloutState = from, from, lrp.RolloutState{}
}

// sameRollout reports whether the rollout of two versions of a deployment stands alike.
func sameRollout(a, b *lrp.Deployment) bool {
	s, t := a.RolloutState, b.RolloutState
	return a.HealthyDefinitionID == b.HealthyDefinitionID && s.From == t.From && s.Paused == t.Paused && s.Confirmed == t.Confirmed
}

// late reports whether a rollout has waited for r for as long as it may, by any clock.
func (l *ledger) late(d *lrp.Deployment, r *lrp.ActualLRP) bool {
	p := orZero(d.Rollout)
	patience, from := p.Deadline, r.ModificationTag.Created()
	if patience == 0 {
		patience = l.world.waits.rolloutGiveUp + p.MinHealthy
	}
	if d.RolloutState.ResumedAt.After(from) {
		from = d.RolloutState.ResumedAt
	}
	return l.latest().Sub(from) >= patience
}

// failed reports whether the definition that is rolled out has failed.
func (l *ledger) failed(d *lrp.Deployment) bool {
	if d.RolloutState.From == "" || d.HealthyDefinitionID == d.ActiveDefinitionID {
		return false
	}
	for key, s := range l.slots {
		for i := range s.records {
			r := &s.records[i]
			if key.guid == d.ProcessGUID && r.Presence == lrp.Ordinary && r.DefinitionID == d.ActiveDefinitionID &&
				(r.State == lrp.Crashed || !d.RolloutState.Proved && l.late(d, r)) {
				return true
			}
		}
	}
	return false
}

// byItself judges what becomes of a rollout in a commit that no consumer has asked for.
func (l *ledger) byItself(before, after *lrp.Deployment) error {
	want, p := *before, orZero(before.Rollout)
	object := func(why string) error {
		return checkRollout.violated("%s: %s: from %s, healthy %s, %+v to %s, healthy %s, %+v", before.ProcessGUID, why,
			before.ActiveDefinitionID, before.HealthyDefinitionID, before.RolloutState, after.ActiveDefinitionID, after.HealthyDefinitionID, after.RolloutState)
	}
	switch {
	case after.ActiveDefinitionID != before.ActiveDefinitionID:
		if p.OnFailure != lrp.RollBackOnFailure || before.RolloutState.Paused != lrp.NotPaused || !l.failed(before) {
			return object("the rollout goes back, and has no reason to")
		}
		goesBack(&want)
	case after.RolloutState.Paused != before.RolloutState.Paused && after.RolloutState.From != "":
		if p.OnFailure != lrp.PauseOnFailure || before.RolloutState.Paused != lrp.NotPaused || !l.failed(before) {
			return object("the rollout is paused or goes on, and has no reason to")
		}
		want.RolloutState.Paused = lrp.PausedByFailure
	case after.RolloutState.From == "" && before.RolloutState.From != "":
		if held(before, math.MaxInt) {
			return object("the rollout ends, and waits for somebody")
		}
		want.RolloutState = lrp.RolloutState{}
	}
	want.HealthyDefinitionID = after.HealthyDefinitionID
	if after.ActiveDefinitionID != before.ActiveDefinitionID {
		want.HealthyDefinitionID = before.RolloutState.From
	}
	if !sameRollout(after, &want) || after.ActiveDefinitionID != want.ActiveDefinitionID {
		return object("it becomes something else")
	}
	return nil
}

// waits makes sure that a rollout makes no instance of its definition where it has none
// while it waits for somebody. A cell may still report one.
func (l *ledger) waits(c *slotChange) error {
	d := l.deployments[c.key.guid]
	if d == nil || !held(d, c.key.index) || d.HealthyDefinitionID == d.ActiveDefinitionID || c.command == "Start" || c.command == "EvacuateRunning" || l.unseen(c.key) {
		return nil
	}
	of := func(records []lrp.ActualLRP) *lrp.ActualLRP {
		for i := range records {
			if records[i].DefinitionID == d.ActiveDefinitionID {
				return &records[i]
			}
		}
		return nil
	}
	if made := of(c.after); made != nil && of(c.before) == nil {
		return checkRollout.violated("%s/%d: %s makes %+v, and the rollout waits for somebody: %+v", c.key.guid, c.key.index, c.command, *made, d.RolloutState)
	}
	return nil
}

// limited reports whether a process has a budget for disruptions.
func limited(d *lrp.Deployment) bool { return d != nil && *orZero(d.Disruption) != lrp.Disruption{} }

// bounded reports whether only some indices may be without an instance because one is
// taken away.
func bounded(d *lrp.Deployment) bool { return limited(d) || d.UpdateStrategy == lrp.Recreate }

// mayBeDown is how many indices of a process may be without an instance that serves
// because one is taken away.
func mayBeDown(d *lrp.Deployment) int {
	b := orZero(d.Disruption)
	return max(1, b.MaxUnavailable, d.Instances*b.MaxUnavailablePercent/100)
}

// stays reports whether r runs and was not told to stop.
func stays(r *lrp.ActualLRP) bool { return r.State == lrp.Running && r.Stopping.IsZero() }

// serves reports whether r serves its index: it runs on a cell that is not missing, is
// not to stop and, where there is a budget, is ready for traffic.
func serves(d *lrp.Deployment, r *lrp.ActualLRP) bool {
	return stays(r) && r.Presence != lrp.Suspect && (r.Routable || !limited(d))
}

// mishaps are the commands by which an index loses its instance without the control
// plane's doing: it or its cell has ended, its evacuation was too long, or its consumer
// wanted that.
var mishaps = map[string]bool{
	"Crash": true, "Remove": true, "EvacuateClaimed": true, "EvacuateStopped": true, "EvacuateCrashed": true, "RemoveEvacuating": true,
	"MarkSuspect": true, "Prune": true, "Retire": true, "Claim": true,
}

// takes judges a commit after which an instance that served its index no longer runs or
// is to stop, and none serves there.
func (l *ledger) takes(c *slotChange) error {
	d, s := l.deployments[c.key.guid], l.slot(c.key.guid, c.key.index)
	if d == nil || !l.desires(c.key) {
		s.down, s.taken = time.Time{}, false
		return nil
	}
	var had *lrp.ActualLRP
	for i := range c.before {
		if serves(d, &c.before[i]) {
			had = &c.before[i]
		}
	}
	for i := range c.after {
		if serves(d, &c.after[i]) {
			s.down, s.taken = time.Time{}, false
			return nil
		}
	}
	if had == nil {
		return nil
	}
	s.down = l.now()
	now := find(c.after, had.InstanceKey)
	if mishaps[c.command] || now != nil && stays(now) || l.world.lies(had.CellID) || l.justNow(s.undesired) || l.justNow(s.relaxed) {
		return nil // its own cell says that it is not ready any more, or nobody takes it away
	}
	if l.unseen(c.key) || d.UpdateStrategy == lrp.Recreate && had.Presence == lrp.Evacuating {
		return nil // it is of a process that was deleted and created again, or decided before the last change
	}
	if s.taken = true; d.UpdateStrategy != lrp.Recreate && limited(d) {
		return checkBudget.violated("%s/%d: %s takes away what serves the index, and nothing else does: from %+v to %+v", c.key.guid, c.key.index, c.command, c.before, c.after)
	}
	if down := l.down(d); d.UpdateStrategy == lrp.Recreate && down > mayBeDown(d) {
		return checkBudget.violated("%s/%d: %s takes away what serves the index, and then %d of %d indices are without, of which %d may be: %+v", c.key.guid, c.key.index, c.command, down, d.Instances, mayBeDown(d), c.before)
	}
	return nil
}

// down counts the indices of a process that nothing serves, but for those that were
// lost since the cell that speaks has asked: the answer does not know of them yet.
func (l *ledger) down(d *lrp.Deployment) (n int) {
	for index := range d.Instances {
		s := l.slot(d.ProcessGUID, index)
		lost := l.world.speaking != nil && s.down.After(l.world.speaking.since) && !s.taken
		if !lost && !l.served(d, s) {
			n++
		}
	}
	return n
}

func (l *ledger) served(d *lrp.Deployment, s *slot) bool {
	for i := range s.records {
		if serves(d, &s.records[i]) {
			return true
		}
	}
	return false
}

// budgets makes sure, after every step, that no more indices of a process are without
// an instance that serves because one was taken away than its budget allows.
func (l *ledger) budgets() error {
	if l.closed {
		return nil
	}
	taken := map[string]int{}
	for key, s := range l.slots {
		if d := l.deployments[key.guid]; s.taken && l.desires(key) && !l.served(d, s) {
			taken[key.guid]++
		}
	}
	for guid, taken := range taken {
		if d := l.deployments[guid]; bounded(d) && taken > mayBeDown(d) {
			return checkBudget.violated("%s: the control plane has taken away the instances of %d of %d indices, and %d may be without: %+v", guid, taken, d.Instances, mayBeDown(d), *orZero(d.Disruption))
		}
	}
	return nil
}
