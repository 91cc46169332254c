package simulation

import (
	"math"
	"slices"
	"time"

	"github.com/diegosdk/diego/lrp"
)

// What the processes of a world want of restarts and rollouts, and a second
// implementation of what follows from it.

// restartPolicy draws the restarts that a consumer wants for a process, or nil. They
// may be beyond what the control planes allow.
func (w *World) restartPolicy() (p *lrp.RestartPolicy, beyond bool) {
	if w.random.IntN(2) == 0 {
		return nil, false
	}
	p = &lrp.RestartPolicy{
		ImmediateRestarts: []int{0, 0, -1, min(1, w.restarts.immediate)}[w.random.IntN(4)],
		MaxRestarts:       []int{0, 0, 0, 0, 5, 2}[w.random.IntN(6)],
		MinBackoff:        []time.Duration{0, 0, time.Minute}[w.random.IntN(3)],
		MaxBackoff:        []time.Duration{0, 0, 16 * time.Minute}[w.random.IntN(3)],
		ResetAfter:        []time.Duration{0, 0, 10 * time.Minute}[w.random.IntN(3)],
	}
	// The control planes may want rarer restarts than these.
	atLeast(&p.MinBackoff, w.restarts.shortest)
	atLeast(&p.MaxBackoff, w.restarts.longest)
	atLeast(&p.ResetAfter, w.restarts.forgiven)
	if w.restarts.most >= 0 && p.MaxRestarts > 0 {
		p.MaxRestarts = min(p.MaxRestarts, w.restarts.most)
	}
	if beyond = w.random.IntN(12) == 0 && w.restarts.shortest > time.Second; beyond {
		p.MinBackoff = time.Second
	}
	return p, beyond
}

// atLeast raises a wait that is set.
func atLeast(own *time.Duration, least time.Duration) {
	if *own > 0 {
		*own = max(*own, least)
	}
}

// rolloutPolicy draws the rollouts that a consumer wants for a process, or nil.
func (w *World) rolloutPolicy() *lrp.RolloutPolicy {
	none := w.random.IntN(2) == 0
	if w.rolls {
		none = none && w.random.IntN(2) == 0
	}
	if none {
		return nil
	}
	p := &lrp.RolloutPolicy{
		MinHealthy:  []time.Duration{0, 5 * time.Second, 30 * time.Second, 2 * time.Minute}[w.random.IntN(4)],
		MaxInFlight: []int{0, 1, 2, 3, 9}[w.random.IntN(5)],
	}
	if w.rolls {
		p.Canary = []int{0, 0, 1, 2}[w.random.IntN(4)]
		p.OnFailure = []lrp.OnFailure{lrp.KeepTrying, lrp.PauseOnFailure, lrp.RollBackOnFailure}[w.random.IntN(3)]
		if w.random.IntN(2) == 0 {
			p.Deadline = p.MinHealthy + []time.Duration{30 * time.Second, 3 * time.Minute}[w.random.IntN(2)]
		}
	}
	return p
}

// disruption draws the budget that a consumer wants for a process, or nil.
func (w *World) disruption() *lrp.Disruption {
	if !w.rolls {
		return nil
	}
	return []*lrp.Disruption{nil, {MaxUnavailable: 1}, {MaxUnavailable: 2}, {MaxUnavailablePercent: 50}, {MaxUnavailablePercent: 10}}[w.random.IntN(5)]
}

// orZero is what an update takes for no policy.
func orZero[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// samePolicy reports whether two policies are equal; the zero policy is none.
func samePolicy[T comparable](a, b *T) bool { return *orZero(a) == *orZero(b) }

// of are the restarts of one process: what it wants replaces what the control planes
// want, which accept it only if that makes restarts rarer. d may be nil.
func (p restarts) of(d *lrp.Deployment) *restarts {
	if d == nil || d.Restart == nil {
		return &p
	}
	override(&p.immediate, d.Restart.ImmediateRestarts)
	override(&p.most, d.Restart.MaxRestarts)
	override(&p.shortest, d.Restart.MinBackoff)
	override(&p.longest, d.Restart.MaxBackoff)
	override(&p.forgiven, d.Restart.ResetAfter)
	p.longest = max(p.longest, p.shortest)
	return &p
}

func override[T comparable](value *T, own T) {
	var zero T
	if own != zero {
		*value = own
	}
}

// restarts are those of a process, as it is recorded.
func (l *ledger) restarts(guid string) *restarts { return l.world.restarts.of(l.deployments[guid]) }

// proves reports whether a record of the active definition runs that has still to
// prove healthy at a time. Until then it replaces nothing of another definition.
func (l *ledger) proves(r *lrp.ActualLRP, at time.Time) bool {
	d := l.deployments[r.ProcessGUID]
	if d == nil || r.State != lrp.Running || r.DefinitionID != d.ActiveDefinitionID {
		return false
	}
	least := orZero(d.Rollout).MinHealthy
	return held(d, r.Index) || !r.Routable && (least > 0 || limited(d)) || at.Sub(r.RunningSince) < least
}

// latest is the time that a control plane may have taken for the present, for how long
// an instance runs: the clocks of two processes have a part in that.
func (l *ledger) latest() time.Time {
	now := l.now()
	if l.decided.After(now) {
		now = l.decided // a clock that is far ahead
	}
	return now.Add(2 * l.world.slack())
}

// earliest is the same for one that answers and is behind, or paused.
func (l *ledger) earliest() time.Time {
	now := l.now()
	for _, s := range l.world.storage {
		if s.paused != nil && !s.frozen && s.paused.Before(now) {
			now = *s.paused
		}
	}
	return now.Add(-2 * l.world.slack())
}

// proved reports whether r runs, is not to stop and has nothing to prove.
func (l *ledger) proved(r *lrp.ActualLRP) bool {
	return stays(r) && !l.proves(r, l.latest())
}

// replaces reports whether r runs, is not to stop and may replace old at a time. Where there is a
// budget it must be ready, unless old is on a missing cell.
func (l *ledger) replaces(r, old *lrp.ActualLRP, at time.Time) bool {
	ready := r.Routable || old.Presence == lrp.Suspect || !limited(l.deployments[r.ProcessGUID])
	return stays(r) && ready && (r.DefinitionID == old.DefinitionID || !l.proves(r, at))
}

// replacing reports whether an instance other than r runs and may replace it.
func (l *ledger) replacing(records []lrp.ActualLRP, r *lrp.ActualLRP) bool {
	return slices.ContainsFunc(records, func(o lrp.ActualLRP) bool {
		return o.InstanceKey != r.InstanceKey && l.replaces(&o, r, l.latest())
	})
}

// heals makes sure that a definition is called healthy only when it has proved so,
// and not in a rollout that is paused or has a canary that nobody has confirmed. What
// a rollout goes back to was healthy when it began.
func (l *ledger) heals(before, after *lrp.Deployment) error {
	if before == nil || after == nil || before.HealthyDefinitionID == after.HealthyDefinitionID || before.ActiveDefinitionID != after.ActiveDefinitionID {
		return nil
	}
	if held(before, math.MaxInt) {
		return checkRollout.violated("%s: definition %s is called healthy, and its rollout waits for somebody: %+v", after.ProcessGUID, after.HealthyDefinitionID, before.RolloutState)
	}
	for key, s := range l.slots {
		records := s.records
		if l.justNow(s.changed) { // a commit that changes nothing there does not see it
			records = slices.Concat(records, s.former)
		}
		if key.guid == after.ProcessGUID && slices.ContainsFunc(records, func(r lrp.ActualLRP) bool {
			return r.DefinitionID == after.HealthyDefinitionID && l.proved(&r)
		}) {
			return nil
		}
	}
	return checkRollout.violated("%s: definition %s is called healthy, and none of its instances has run for %s", after.ProcessGUID, after.HealthyDefinitionID, orZero(after.Rollout).MinHealthy)
}
