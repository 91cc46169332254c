package lrp

import (
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
)

// This file says what a deployment remembers of its rollout, who may change
// that, and what follows from it at an index. Rollout and Step ask the methods
// at its end.

// A RolloutState is what a deployment remembers of the rollout to its active
// definition. Every new active definition resets it. The zero state means that
// no rollout is under way.
type RolloutState struct {
	// From is the definition that was healthy when the rollout began; empty if no
	// rollout is under way. It is one of the deployment's definitions. A first
	// definition, and one that becomes active before any has proved healthy, starts
	// without a rollout in this sense: there is nothing to go back to.
	From string `json:"from,omitempty"`
	// Paused says that the rollout is paused, and by whom.
	Paused PausedBy `json:"paused,omitempty"`
	// ResumedAt is when the rollout was resumed or, if it is to a definition that
	// was there before, when it began. What failed before does not count.
	ResumedAt time.Time `json:"resumed_at,omitzero"`
	// Proved is true if the active definition has proved healthy as a canary.
	Proved bool `json:"proved,omitempty"`
	// Confirmed is true if somebody has confirmed the canary.
	Confirmed bool `json:"confirmed,omitempty"`
	// Failure is why the rollout is paused, or why the previous rollout was given
	// up, so that the definition before it is active again; nil if neither is the
	// case.
	Failure *RolloutFailure `json:"failure,omitempty"`
}

// IsZero reports whether there is nothing to remember.
func (s RolloutState) IsZero() bool { return s == RolloutState{} }

// A PausedBy says who has paused a rollout.
type PausedBy uint8

// Who may pause a rollout.
const (
	NotPaused PausedBy = iota
	// PausedByOperator: a call has paused the rollout.
	PausedByOperator
	// PausedByFailure: the new definition has failed; see RolloutPolicy.OnFailure.
	PausedByFailure
)

var pausers = enum.Names[PausedBy]{NotPaused: "NOBODY", PausedByOperator: "OPERATOR", PausedByFailure: "FAILURE"}

// String is "NOBODY", "OPERATOR" or "FAILURE".
func (p PausedBy) String() string { return pausers.Of(p) }

// MarshalText fails on a value that is none of the constants.
func (p PausedBy) MarshalText() ([]byte, error) { return pausers.Marshal("paused", p) }

// UnmarshalText accepts only the three words, upper case.
func (p *PausedBy) UnmarshalText(text []byte) error { return pausers.Unmarshal("paused", p, text) }

// A RolloutFailure says why a rollout did not go on.
type RolloutFailure struct {
	// DefinitionID is the definition that was rolled out. The deployment may have
	// dropped it since.
	DefinitionID string      `json:"definition_id"`
	Kind         FailureKind `json:"kind"`
	// Index is where the definition has failed; 0 if the rollout was aborted.
	Index int `json:"index"`
	// Detail is the reason of the crash, why the instance was not placed, or why the
	// rollout that was aborted had been paused; it may be empty.
	Detail string `json:"detail,omitempty"`
}

// String describes the failure for people: "instance 0 crashed: exit status 1".
// The text may change.
func (f *RolloutFailure) String() string {
	text := "aborted"
	switch f.Kind {
	case RolloutCrashed:
		text = fmt.Sprintf("instance %d crashed", f.Index)
	case RolloutLate:
		text = fmt.Sprintf("instance %d did not prove healthy in time", f.Index)
	}
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return text
}

// A FailureKind is the kind of a RolloutFailure.
type FailureKind uint8

// The kinds of failures.
const (
	// RolloutAborted: a call has aborted the rollout.
	RolloutAborted FailureKind = iota + 1
	// RolloutCrashed: an instance of the new definition is CRASHED.
	RolloutCrashed
	// RolloutLate: an instance of the new definition did not prove healthy within
	// RolloutPolicy.Deadline.
	RolloutLate
)

var failureKinds = enum.Names[FailureKind]{RolloutAborted: "ABORTED", RolloutCrashed: "CRASHED", RolloutLate: "LATE"}

// String is "ABORTED", "CRASHED" or "LATE".
func (k FailureKind) String() string { return failureKinds.Of(k) }

// MarshalText fails on a value that is none of the constants.
func (k FailureKind) MarshalText() ([]byte, error) { return failureKinds.Marshal("kind", k) }

// UnmarshalText accepts only the three words, upper case.
func (k *FailureKind) UnmarshalText(text []byte) error {
	return failureKinds.Unmarshal("kind", k, text)
}

// lead makes definitionID the active one and begins a rollout to it.
func (d *Deployment) lead(definitionID string) {
	d.ActiveDefinitionID, d.RolloutState = definitionID, RolloutState{}
	if d.HealthyDefinitionID != definitionID {
		d.RolloutState.From = d.HealthyDefinitionID
	}
}

// fail gives up the rollout, or only pauses it.
func (d *Deployment) fail(f RolloutFailure, pause bool) {
	if pause {
		d.RolloutState.Paused, d.RolloutState.Failure = PausedByFailure, &f
		return
	}
	d.HealthyDefinitionID = d.RolloutState.From
	d.lead(d.RolloutState.From)
	d.RolloutState.Failure = &f
}

// PauseRollout keeps the rollout from changing any index until ResumeRollout.
// It is a no-op if a call or a failure has paused the rollout already. The
// error wraps ErrRefused if no rollout is under way.
func (d *Deployment) PauseRollout() (Change, error) {
	return d.changeRollout("PauseRollout", func(s *RolloutState) {
		if s.Paused == NotPaused {
			s.Paused = PausedByOperator
		}
	})
}

// ResumeRollout lets a paused rollout go on. If a failure has paused it, the
// definition gets another chance: what failed before now does not count any
// more. It is a no-op for a rollout that is not paused. The error wraps
// ErrRefused if no rollout is under way.
func (d *Deployment) ResumeRollout(now time.Time) (Change, error) {
	return d.changeRollout("ResumeRollout", func(s *RolloutState) {
		if s.Paused != NotPaused {
			s.Paused, s.Failure, s.ResumedAt = NotPaused, nil, now.UTC().Round(0)
		}
	})
}

// ConfirmRollout lets a rollout go beyond its canary. It may come before the
// canary has proved healthy, and is a no-op the second time. The error wraps
// ErrRefused if no rollout is under way or the rollout has no canary.
func (d *Deployment) ConfirmRollout() (Change, error) {
	if d.RolloutState.From != "" && d.Rollout.orZero().Canary == 0 {
		return Change{}, d.refuse("its rollout has no canary to confirm; see the canary of its rollout policy")
	}
	return d.changeRollout("ConfirmRollout", func(s *RolloutState) { s.Confirmed = true })
}

// AbortRollout makes the definition from which the rollout began active again,
// and healthy. It is a no-op if a call or a failure has ended the rollout in
// this way already. Otherwise the error wraps ErrRefused if no rollout is under
// way.
func (d *Deployment) AbortRollout() (Change, error) {
	if s := d.RolloutState; s.From == "" && s.Failure != nil {
		return Change{}, nil
	}
	if err := d.rolling(); err != nil {
		return Change{}, err
	}
	next, failure := *d, RolloutFailure{DefinitionID: d.ActiveDefinitionID, Kind: RolloutAborted}
	if d.RolloutState.Paused == PausedByFailure {
		failure.Detail = d.RolloutState.Failure.String()
	}
	next.fail(failure, false)
	return d.changed(next, "AbortRollout")
}

// rolling refuses a call about a rollout if there is none.
func (d *Deployment) rolling() error {
	switch {
	case d.RolloutState.From != "":
		return nil
	case d.HealthyDefinitionID == "":
		return d.refuse("no rollout is under way: no definition has proved healthy yet, so there is none to go back to")
	}
	return d.refuse(fmt.Sprintf("no rollout is under way: definition %q is active; an update or an activation begins one", d.ActiveDefinitionID))
}

func (d *Deployment) changeRollout(command string, f func(*RolloutState)) (Change, error) {
	if err := d.rolling(); err != nil {
		return Change{}, err
	}
	next := *d
	if f(&next.RolloutState); next.RolloutState == d.RolloutState {
		return Change{}, nil
	}
	return d.changed(next, command)
}

// EndRollout ends a rollout whose status is Complete, and drops the definitions
// that are no longer needed: see PruneDefinitions, also for inUse.
func (d *Deployment) EndRollout(inUse func(definitionID string) bool) Change {
	next := *d
	if next.RolloutState.From != "" {
		next.RolloutState = RolloutState{}
	}
	return d.tidied(next, inUse, "EndRollout")
}

// trial reports whether the active definition is a canary that nobody has
// confirmed yet.
func (d *Deployment) trial() bool {
	return d.RolloutState.From != "" && d.Rollout.orZero().Canary > 0 && !d.RolloutState.Confirmed
}

// held reports whether the rollout must not change the index now: it is paused,
// or the index comes after the canary.
func (d *Deployment) held(index int) bool {
	return d.RolloutState.Paused != NotPaused || d.trial() && index >= d.Rollout.Canary
}

// hasProved reports whether the active definition has proved healthy anywhere
// since it became active.
func (d *Deployment) hasProved() bool {
	return d.HealthyDefinitionID == d.ActiveDefinitionID || d.RolloutState.Proved
}

// unnoted reports whether it is still to be noted that the active definition has
// proved healthy.
func (d *Deployment) unnoted() bool {
	if d.trial() {
		return !d.RolloutState.Proved
	}
	return d.HealthyDefinitionID != d.ActiveDefinitionID
}

// note notes that the active definition has proved healthy. A canary does not
// become the healthy definition: otherwise crashed instances of other indices
// would restart from it.
func (d *Deployment) note() {
	if d.trial() {
		d.RolloutState.Proved = true
		return
	}
	d.HealthyDefinitionID = d.ActiveDefinitionID
}

// proven reports whether r, a record of the active definition, is RUNNING, has been
// for as long as the policy wants, and was not told to stop. Where that is some
// time, and where there is a budget for disruptions, it must also be ready.
func (d *Deployment) proven(r *ActualLRP, alarm *executor.Alarm) bool {
	least := d.Rollout.orZero().MinHealthy
	if least > 0 && !(r.Routable && alarm.Reached(r.RunningSince.Add(least))) {
		return false
	}
	return r.stays() && (r.Routable || !d.limited())
}

// proving reports whether r is RUNNING, and is to replace an instance of
// another definition once it is proven and the rollout may change its index.
// Until then it replaces nothing.
func (d *Deployment) proving(r *ActualLRP, now time.Time) bool {
	return d.isActive(r.DefinitionID) && r.State == Running &&
		(d.held(r.Index) || !d.proven(r, &executor.Alarm{Now: now}))
}

// overdue reports whether the rollout has waited for r, a record of the active
// definition that is not proven, for as long as it may.
func (d *Deployment) overdue(r *ActualLRP, giveUp time.Duration, alarm *executor.Alarm) bool {
	from := r.ModificationTag.Created()
	if resumed := d.RolloutState.ResumedAt; resumed.After(from) {
		from = resumed
	}
	return alarm.Reached(from.Add(d.Rollout.orZero().patience(giveUp)))
}

// failure says how r, a record of the active definition, shows that the
// definition has failed, or nil. It is the only rule about that: convergence and
// the report of a crash both ask it.
func (d *Deployment) failure(r *ActualLRP, giveUp time.Duration, alarm *executor.Alarm) *RolloutFailure {
	s := &d.RolloutState
	if s.From == "" || s.Paused != NotPaused || d.Rollout.orZero().OnFailure == KeepTrying || d.HealthyDefinitionID == d.ActiveDefinitionID {
		return nil
	}
	f := RolloutFailure{DefinitionID: r.DefinitionID, Index: r.Index}
	switch {
	case r.State == Crashed && r.Since.After(s.ResumedAt):
		f.Kind, f.Detail = RolloutCrashed, r.CrashReason
	case !s.Proved && !d.proven(r, alarm) && d.overdue(r, giveUp, alarm):
		f.Kind = RolloutLate
		if !r.PlacementError.IsZero() {
			f.Detail = r.PlacementError.String()
		}
	default:
		return nil
	}
	return &f
}
