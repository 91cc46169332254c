package lrp

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// A Rollout leads a deployment from what its indices run to its active
// definition, one index after another in ascending order (003
// §UpdateLRPDeployment). Use one Rollout for one look at all slots of the
// process: Visit them in ascending order of index, then read the Status.
//
// An index is done when its only ORDINARY record is of the active definition
// and has been RUNNING for as long as the RolloutPolicy wants. The first
// indices that are not done, up to RolloutPolicy.MaxInFlight, hold the rollout
// up. Once the active definition has proved healthy elsewhere, an index holds
// the rollout up only until RolloutPolicy.Deadline. Then the rollout goes on:
// the old instance stays at that index, and the new one keeps trying (003
// §Flaky new LRP definition). RolloutRule says what is due at an index.
//
// A Rollout belongs to one goroutine.
type Rollout struct {
	d      *Deployment
	alarm  executor.Alarm
	giveUp time.Duration
	most   int // indices in flight

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
	// Stopping counts those of the pending ones where the active definition has
	// proved healthy, and what it replaces is told to stop.
	Stopping int `json:"stopping,omitempty"`
	// HeldBy is the first index that holds the rollout up, or −1.
	HeldBy int `json:"held_by"`
	// WaitsFor is what the rollout waits for at HeldBy. A canary or a pause may
	// also hold it up when all indices are done.
	WaitsFor RolloutWait `json:"waits_for,omitempty"`
	// Unplaced is the first new instance that no cell has room for.
	Unplaced Unplaced `json:"unplaced,omitzero"`
}

// An Unplaced is an index whose new instance waits for a cell. The zero value
// means that there is none.
type Unplaced struct {
	Index int `json:"index"`
	// PlacementError says what is in the way, such as which resource is short and
	// by how much.
	PlacementError PlacementError `json:"placement_error"`
	// Nearest is the cell that lacks least, and what it lacks; nil if no cell
	// would do, or if the instance waits for another reason than lack of room.
	Nearest *Shortage `json:"nearest,omitempty"`
}

// Complete reports whether every desired index runs only the active definition,
// and nobody has still to confirm or resume the rollout.
func (s RolloutStatus) Complete() bool {
	return s.Stalled == 0 && s.Pending == 0 && s.WaitsFor == WaitNothing
}

// NewRollout begins a look at the slots of d at the time now. d must not be
// nil, and must not change while the Rollout is in use.
func NewRollout(d *Deployment, now time.Time, p Policy) *Rollout {
	return &Rollout{
		d: d, alarm: executor.Alarm{Now: now}, giveUp: p.RolloutGiveUp, most: d.Rollout.orZero().maxInFlight(),
		status: RolloutStatus{HeldBy: none},
	}
}

// Visit looks at the slot with the next higher index and returns the command
// that is due there, or nil. Slots without a record may be skipped.
func (r *Rollout) Visit(s Slot) Command {
	if !r.d.Desires(s.Index) {
		return nil
	}
	active, others, own := r.look(s)
	if own != nil && own.PlacementError.Reason != Placed && r.status.Unplaced.PlacementError.Reason == Placed {
		r.status.Unplaced = Unplaced{s.Index, own.PlacementError, own.PlacementError.Nearest()}
	}
	row := rolloutRow(r.turn(s.Index), active, others)
	switch row.Count {
	case CountsDone:
		r.status.Done++
	case CountsStalled:
		r.status.Stalled++
	case CountsInFlight:
		r.inFlight++
	}
	if active == ActiveYoung || active == ActiveUnready {
		r.status.Proving++
	}
	if row.Wait != WaitNothing && r.status.HeldBy == none {
		r.status.HeldBy, r.status.WaitsFor = s.Index, row.Wait
	}
	if _, advances := row.Command.(AdvanceRollout); advances {
		if active >= ActiveFirst && others != OthersNone {
			r.status.Stopping++
		}
		return AdvanceRollout{DefinitionID: r.d.ActiveDefinitionID}
	}
	return row.Command
}

func (r *Rollout) turn(index int) RolloutTurn {
	switch {
	case r.d.RolloutState.Paused != NotPaused:
		return TurnPaused
	case r.d.held(index):
		return TurnAfterCanary
	case r.inFlight >= r.most:
		return TurnLater
	}
	return TurnNow
}

// look says what is at an index. own is the ORDINARY record of the active
// definition, or nil.
func (r *Rollout) look(s Slot) (active RolloutActive, others RolloutOthers, own *ActualLRP) {
	served := len(s.Records) > 1 && r.d.served(s.Records)
	for i := range s.Records {
		switch rec := &s.Records[i]; {
		case rec.Presence != Ordinary:
		case rec.DefinitionID == r.d.ActiveDefinitionID:
			own = rec
		case r.d.overtaken(rec, served):
			others = OthersOvertaken
		case r.d.strays(rec):
			others = max(others, OthersStray)
		default:
			others = max(others, OthersOld)
		}
	}
	return r.active(own), others, own
}

// active describes the active definition's record, which may be nil.
func (r *Rollout) active(own *ActualLRP) RolloutActive {
	switch {
	case own == nil:
		return ActiveNone
	case r.d.proven(own, &r.alarm):
		if r.d.unnoted() && !r.d.held(own.Index) {
			return ActiveFirst
		}
		return ActiveProven
	case r.d.failure(own, r.giveUp, &r.alarm) != nil:
		return ActiveFailed
	case r.d.hasProved() && r.d.overdue(own, r.giveUp, &r.alarm):
		return ActiveGivenUp
	case own.State == Crashed:
		return ActiveCrashed
	case !own.stays():
		return ActiveStarting
	case own.Routable || !r.alarm.Reached(own.RunningSince.Add(r.d.Rollout.orZero().MinHealthy)):
		return ActiveYoung
	}
	return ActiveUnready
}

// Next returns the earliest time at which the same visits may have other
// results for unchanged records. It returns the zero time if time changes
// nothing.
func (r *Rollout) Next() time.Time { return r.alarm.Next }

// Status counts the slots visited. Indices without a slot are Pending.
func (r *Rollout) Status() RolloutStatus {
	s := r.status
	s.Pending = max(0, r.d.Instances-s.Done-s.Stalled)
	switch {
	case s.HeldBy != none:
	case r.d.RolloutState.Paused != NotPaused:
		s.WaitsFor = WaitResumed
	case r.d.trial() && s.Pending == 0:
		s.WaitsFor = WaitConfirmed
	}
	return s
}
