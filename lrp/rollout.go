package lrp

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// A Rollout leads a deployment from what its indices run to its active
// definition, one index after another in ascending order (003
// §UpdateLRPDeployment). It serves one look at all slots of the process: Visit
// them in ascending order of index, then read the Status.
//
// An index is done when its only ORDINARY record is the active definition's and
// RUNNING, for as long as the RolloutPolicy wants. The first indices that are not
// done, as many as may be in flight, hold the rollout up. Once the active
// definition has proved healthy elsewhere, an index whose new instance is not
// RUNNING holds it up for at most Policy.RolloutGiveUp. Then the rollout goes on,
// the old instance stays at that index, and the new one keeps trying (003 §Flaky
// new LRP definition). A Rollout belongs to one goroutine.
type Rollout struct {
	d      *Deployment
	alarm  executor.Alarm
	giveUp time.Duration

	inFlight int
	status   RolloutStatus
}

// A RolloutStatus counts a deployment's desired indices.
type RolloutStatus struct {
	// Done counts the indices that run only the active definition.
	Done int `json:"done"`
	// Stalled counts the indices that were given up for now.
	Stalled int `json:"stalled"`
	// Pending counts all others.
	Pending int `json:"pending"`
	// Proving counts those of the pending ones where the active definition is
	// RUNNING, but not yet for RolloutPolicy.MinHealthy or not ready.
	Proving int `json:"proving,omitempty"`
	// HeldBy is the first index that holds the rollout up, or −1.
	HeldBy int `json:"held_by"`
}

// Complete reports whether every desired index runs only the active definition.
func (s RolloutStatus) Complete() bool { return s.Stalled == 0 && s.Pending == 0 }

// NewRollout begins a look at the slots of d, which must not be nil.
func NewRollout(d *Deployment, now time.Time, p Policy) *Rollout {
	return &Rollout{
		d: d, alarm: executor.Alarm{Now: now}, giveUp: orDefault(p.RolloutGiveUp, defaultRolloutGiveUp),
		status: RolloutStatus{HeldBy: none},
	}
}

// Visit looks at the slot with the next higher index and returns the command
// that is due there, or nil. Slots without a record may be skipped.
func (r *Rollout) Visit(s Slot) Command {
	if !r.d.Desires(s.Index) {
		return nil
	}
	look := r.look(s)
	running := look.active != nil && look.active.State == Running
	proven := running && r.d.proven(look.active, &r.alarm)
	if running && !proven {
		r.status.Proving++
	}
	switch {
	case proven:
		// Without a policy, the start itself has made the definition the healthy one.
		if look.others || r.d.Rollout.minHealthy() > 0 && r.d.HealthyDefinitionID != r.d.ActiveDefinitionID {
			return AdvanceRollout{}
		}
		r.status.Done++
		return nil
	case look.active == nil && !look.others:
		return nil // nothing is here yet: CreateMissing comes first
	case look.active != nil && !running && r.stalled(look.active):
		r.status.Stalled++
	case r.inFlight < r.d.Rollout.maxInFlight():
		if r.inFlight++; r.status.HeldBy == none {
			r.status.HeldBy = s.Index
		}
		if look.active == nil || look.strays {
			return AdvanceRollout{}
		}
	}
	if look.overtaken {
		return StopOvertaken{}
	}
	return nil
}

// A look is what a rollout uses of one index.
type look struct {
	active *ActualLRP // the active definition's ORDINARY record, or nil
	others bool       // other definitions have ORDINARY records
	// strays and overtaken say that some of those are to be given up.
	strays, overtaken bool
}

func (r *Rollout) look(s Slot) (l look) {
	served := false
	for i := range s.Records {
		switch rec := &s.Records[i]; {
		case rec.Presence != Ordinary:
		case rec.DefinitionID == r.d.ActiveDefinitionID:
			l.active = rec
		default:
			l.others, l.strays = true, l.strays || r.d.strays(rec)
			served = served || rec.State == Running
		}
	}
	for i := range s.Records {
		l.overtaken = l.overtaken || r.d.overtaken(&s.Records[i], served)
	}
	return l
}

// stalled reports whether the rollout should not wait for this record any
// longer.
func (r *Rollout) stalled(active *ActualLRP) bool {
	return r.d.HealthyDefinitionID == r.d.ActiveDefinitionID &&
		r.alarm.Reached(active.ModificationTag.Created().Add(r.giveUp))
}

// Next is the earliest time at which the same visits may have other results for
// unchanged records; zero if time changes nothing.
func (r *Rollout) Next() time.Time { return r.alarm.Next }

// Status is the count over the slots visited; indices without a slot are
// Pending.
func (r *Rollout) Status() RolloutStatus {
	s := r.status
	s.Pending = max(0, r.d.Instances-s.Done-s.Stalled)
	return s
}
