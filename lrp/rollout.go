package lrp

import "time"

// A Rollout leads a deployment from whatever its indices run to its active
// definition, one index after another in ascending order (003
// §UpdateLRPDeployment). It is made for one look at all slots of the process:
// Visit them in ascending order of index, then ask for the Status.
//
// An index is done when its only ORDINARY record is the active definition's
// and RUNNING. The first index whose active record is not RUNNING holds the
// rollout up. Once the active definition has proved healthy elsewhere, that
// lasts no longer than Policy.RolloutGiveUp: the rollout goes on, the old
// instance stays at that index, and the new one goes on trying (003 §Flaky new
// LRP definition).
type Rollout struct {
	d      *Deployment
	now    time.Time
	giveUp time.Duration

	held   bool
	status RolloutStatus
}

// A RolloutStatus counts a deployment's desired indices.
type RolloutStatus struct {
	// Done indices run the active definition and nothing else.
	Done int
	// Stalled indices were given up for now.
	Stalled int
	// Pending indices are all others.
	Pending int
	// HeldBy is the index that holds the rollout up, or −1.
	HeldBy int
}

// Complete reports whether every desired index runs the active definition and
// nothing else.
func (s RolloutStatus) Complete() bool { return s.Stalled == 0 && s.Pending == 0 }

// NewRollout begins a look at the slots of d, which is not nil.
func NewRollout(d *Deployment, now time.Time, p Policy) *Rollout {
	return &Rollout{
		d: d, now: now, giveUp: orDefault(p.RolloutGiveUp, defaultRolloutGiveUp),
		status: RolloutStatus{HeldBy: none},
	}
}

// Visit looks at the slot with the next higher index and reports whether an
// AdvanceRollout is due there. Slots without a record may be left out.
func (r *Rollout) Visit(s Slot) (advance bool) {
	if !r.d.Desires(s.Index) {
		return false
	}
	var active *ActualLRP
	others, strays := false, false
	for i := range s.Records {
		switch rec := &s.Records[i]; {
		case rec.Presence != Ordinary:
		case rec.DefinitionID == r.d.ActiveDefinitionID:
			active = rec
		default:
			others, strays = true, strays || r.d.strays(rec)
		}
	}
	switch {
	case active != nil && active.State == Running:
		if !others {
			r.status.Done++
		}
		return others
	case active != nil && r.stalled(active):
		r.status.Stalled++
		return false
	case active == nil && !others:
		return false // nothing is here yet: CreateMissing comes first
	case r.held:
		return false
	}
	r.held, r.status.HeldBy = true, s.Index
	return active == nil || strays
}

// stalled reports whether the rollout should not wait for this record any
// longer.
func (r *Rollout) stalled(active *ActualLRP) bool {
	return r.d.HealthyDefinitionID == r.d.ActiveDefinitionID &&
		r.now.Sub(active.ModificationTag.Created()) >= r.giveUp
}

// Status is the count over the slots visited; indices without a slot are
// Pending.
func (r *Rollout) Status() RolloutStatus {
	s := r.status
	s.Pending = max(0, r.d.Instances-s.Done-s.Stalled)
	return s
}
