package lrp

import (
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
)

// Step applies one command to everything recorded at one index. It changes
// nothing: the decision says what to write, which events that makes and what
// to do once it is written.
//
// d is the process's deployment, or nil if nothing is desired any more. It
// must be as fresh as s; both are read again if the commit conflicts.
//
// The error is a *[TransitionError] if the command is not legal in this slot,
// a *[executor.ValidationError] if the command itself is wrong and an
// *[InvariantError] if a record cannot have been made by Step. A command that
// has nothing to do is not an error: the decision is empty.
func Step(s Slot, d *Deployment, c Command, now time.Time, p Policy) (Decision, error) {
	if err := s.Validate(); err != nil {
		return Decision{}, err
	}
	if d != nil && d.ProcessGUID != s.ProcessGUID {
		return Decision{}, fmt.Errorf("%s %s/%d: the deployment is that of %s: %w",
			c.Name(), s.ProcessGUID, s.Index, d.ProcessGUID, ErrInvariant)
	}
	x := newDraft(s, d, c, now.UTC().Round(0), p)
	if err := x.apply(c); err != nil {
		return Decision{}, err
	}
	return x.finish(), nil
}

func (x *draft) apply(c Command) error {
	switch c := c.(type) {
	case Claim:
		return x.claim(c)
	case Start:
		return x.start(c)
	case Crash:
		return x.crashed(c)
	case Remove:
		return x.removed(c)
	case EvacuateClaimed:
		return x.evacuateClaimed(c)
	case EvacuateRunning:
		return x.evacuateRunning(c)
	case EvacuateStopped:
		return x.evacuateStopped(c)
	case EvacuateCrashed:
		return x.evacuateCrashed(c)
	case RemoveEvacuating:
		return x.removeEvacuating(c)
	case Fail:
		return x.fail(c)
	case Retire:
		return x.retire(c)
	case CreateMissing:
		x.createMissing()
	case StopExtra:
		x.stopExtra(c)
	case Restart:
		x.restartCrashed(c)
	case MarkSuspect:
		x.markSuspect(c)
	case Recover:
		x.recoverSuspects(c)
	case RemoveSuspect:
		x.removeReplacedSuspects()
	case Prune:
		x.prune(c)
	case AdvanceRollout:
		x.advanceRollout()
	}
	return nil
}

// refuse makes the error for a command that is not legal here. Without a
// record (i is none) there is nothing that it could be about.
func (x *draft) refuse(err error, i int, why string) error {
	e := &TransitionError{
		ProcessGUID: x.slot.ProcessGUID, Index: x.slot.Index, Command: x.cause.Command,
		Err: err, Why: why, Absent: i == none,
	}
	if i != none {
		r := &x.records[i]
		e.Why = fmt.Sprintf("%s: definition %q is %s %s", why, r.DefinitionID, r.State, r.Presence)
		if !r.InstanceKey.IsZero() {
			e.Why += fmt.Sprintf(" as instance %q on cell %q", r.InstanceGUID, r.CellID)
		}
	}
	return e
}

// checkInstance refuses a cell's command that does not say who speaks.
func checkInstance(k InstanceKey) error {
	if k.InstanceGUID != "" && k.CellID != "" {
		return nil
	}
	var v executor.Validator
	v.Check(k.InstanceGUID != "", "instance_guid", "", "not empty")
	v.Check(k.CellID != "", "cell_id", "", "not empty")
	return v.Err()
}

// checkDomain refuses a command that would make a record without a domain.
func checkDomain(domain string) error {
	var v executor.Validator
	v.Check(domain != "", "domain", "", "not empty, as the index is empty and the record must be made")
	return v.Err()
}
