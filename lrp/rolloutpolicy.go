package lrp

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// A RolloutPolicy says how the rollouts of one process proceed. The zero policy
// is that of 003: one index at a time, and an old instance is stopped as soon
// as the new one is RUNNING.
type RolloutPolicy struct {
	// MinHealthy is how long a new instance must have been RUNNING before the one
	// that it replaces is stopped; at that time it must be ready for traffic. The
	// new definition counts as healthy from then on. 0 means at once, ready or not;
	// the limit is 1 h.
	MinHealthy time.Duration `json:"min_healthy_nanoseconds,omitempty"`
	// MaxInFlight is at how many indices at a time the new definition may have an
	// instance that does not run yet or has still to prove healthy (default 1).
	MaxInFlight int `json:"max_in_flight,omitempty"`
}

// MaxMinHealthy is the limit of RolloutPolicy.MinHealthy.
const MaxMinHealthy = time.Hour

func (p *RolloutPolicy) check(v *executor.Validator) {
	if p == nil {
		return
	}
	v.Check(p.MinHealthy >= 0 && p.MinHealthy <= MaxMinHealthy, "min_healthy_nanoseconds", p.MinHealthy, "0 to 1h")
	v.Check(p.MaxInFlight >= 0 && p.MaxInFlight <= MaxInstances, "max_in_flight", p.MaxInFlight, "0 to 100000")
}

// minHealthy is 0 without a policy.
func (p *RolloutPolicy) minHealthy() time.Duration {
	if p == nil {
		return 0
	}
	return p.MinHealthy
}

func (p *RolloutPolicy) maxInFlight() int {
	if p == nil {
		return 1
	}
	return max(1, p.MaxInFlight)
}

// proven reports whether r, a record of the active definition, is RUNNING and
// has been for as long as the policy wants. Where that is some time, and where
// there is a budget for disruptions, it must also be ready.
func (d *Deployment) proven(r *ActualLRP, alarm *executor.Alarm) bool {
	least := d.Rollout.minHealthy()
	if least > 0 && !(r.Routable && alarm.Reached(r.RunningSince.Add(least))) {
		return false
	}
	return r.State == Running && (r.Routable || !d.limited())
}

// proving reports whether r is RUNNING, and is to replace an instance of
// another definition once it is proven. Until then it replaces nothing.
func (d *Deployment) proving(r *ActualLRP, now time.Time) bool {
	return d.isActive(r.DefinitionID) && r.State == Running && !d.proven(r, &executor.Alarm{Now: now})
}
