package lrp

import "github.com/diegosdk/diego/executor"

// A Disruption is a process's budget: how many of its desired indices may be
// without a RUNNING, ready instance because the control plane takes one away. With
// the zero budget nothing is counted: an instance is replaced as soon as the new
// one is RUNNING, and RECREATE takes one index at a time.
//
// Where there is a budget, an instance that a rollout or an evacuation replaces
// stays until the new one is ready, too. So only what stops an instance before its
// replacement starts (RECREATE) uses the budget up. Losses that nobody wanted, such
// as crashes and missing cells, count against it but are never prevented. A cell
// whose time to evacuate has passed stops its instances all the same.
type Disruption struct {
	// MaxUnavailable is the budget as a number of indices, at most 100,000.
	MaxUnavailable int `json:"max_unavailable,omitempty"`
	// MaxUnavailablePercent is the budget as a percentage of the desired indices,
	// 0 to 100. It is rounded down, but to at least one index. Set only one of the
	// two.
	MaxUnavailablePercent int `json:"max_unavailable_percent,omitempty"`
}

func (b *Disruption) check(v *executor.Validator) {
	if b == nil {
		return
	}
	v.Check(b.MaxUnavailable >= 0 && b.MaxUnavailable <= MaxInstances, "max_unavailable", b.MaxUnavailable, "0 to 100000")
	v.Check(b.MaxUnavailablePercent >= 0 && b.MaxUnavailablePercent <= 100, "max_unavailable_percent", b.MaxUnavailablePercent, "0 to 100")
	v.Check(b.MaxUnavailable == 0 || b.MaxUnavailablePercent == 0, "max_unavailable_percent", b.MaxUnavailablePercent, "nothing beside max_unavailable")
}

// limited reports whether d has a budget for disruptions.
func (d *Deployment) limited() bool {
	return d != nil && d.Disruption != nil && *d.Disruption != Disruption{}
}

// MaxUnavailable returns how many of the desired indices may be without an
// available instance because the control plane takes one away. It is at least
// 1.
func (d *Deployment) MaxUnavailable() int {
	if !d.limited() {
		return 1
	}
	return max(1, d.Disruption.MaxUnavailable, d.Instances*d.Disruption.MaxUnavailablePercent/100)
}

// MayTakeDown reports whether the instance of one more desired index may be
// stopped before its replacement runs, while available of the desired indices,
// that one included, are [Deployment.Available].
func (d *Deployment) MayTakeDown(available int) bool {
	return d.Instances-available < d.MaxUnavailable()
}

// Available reports whether r serves its index: it is ORDINARY and RUNNING, was not
// told to stop and, where the process has a budget, is ready for traffic.
func (d *Deployment) Available(r *ActualLRP) bool {
	return r.Presence == Ordinary && r.stays() && (r.Routable || !d.limited())
}

// Replaces reports whether r is RUNNING and has taken the place of old: r is
// available, and has nothing to prove if it is of another definition. If old is
// SUSPECT, nobody knows whether it still serves. Then it is enough that r runs,
// was not told to stop and has nothing to prove. alarm notes when time alone
// would change the answer. d may be nil.
func (d *Deployment) Replaces(r, old *ActualLRP, alarm *executor.Alarm) bool {
	return r.stays() && (old.Presence == Suspect || d.Available(r)) &&
		(r.DefinitionID == old.DefinitionID || !d.isActive(r.DefinitionID) || !d.held(r.Index) && d.proven(r, alarm))
}
