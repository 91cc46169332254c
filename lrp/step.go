package lrp

import (
	"fmt"
	"reflect"
	"time"

	"github.com/diegosdk/diego/executor"
)

// Step applies one command to everything recorded at one index. It does not
// change its arguments: the decision says what to write, which events to
// publish and what to do after the commit.
//
// d is the process's deployment, or nil if nothing is desired any more. Read d
// and s at the same moment; read both again if the commit conflicts.
//
// The error is a *[TransitionError] if the command is not legal in this slot,
// an *[executor.ValidationError] if the command itself is wrong or now is not
// between 1970 and 2262, and an *[InvariantError] if Step cannot have made a
// record or the deployment. A command with nothing to do is not an error: the
// decision is empty.
func Step(s Slot, d *Deployment, c Command, now time.Time, p Policy) (Decision, error) {
	if err := s.Validate(); err != nil {
		return Decision{}, err
	}
	if rule := d.broken(s.ProcessGUID); rule != "" {
		return Decision{}, &InvariantError{Key: Key{ProcessGUID: s.ProcessGUID, Index: s.Index}, Rule: rule}
	}
	if err := checkCall(c, now); err != nil {
		return Decision{}, err
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
	case StopOvertaken:
		x.stopOvertaken()
	case StopAgain:
		x.stopAgain()
	case AdvanceRollout:
		x.advanceRollout(c)
	case FailRollout:
		x.failRollout()
	default:
		return unknownCommand(c)
	}
	return nil
}

// checkCall refuses wrong calls: no command, a pointer to one, or a time that a
// tag cannot hold.
func checkCall(c Command, now time.Time) error {
	if c == nil || reflect.TypeOf(c).Kind() == reflect.Pointer {
		return unknownCommand(c)
	}
	if !executor.Recordable(now) {
		var v executor.Validator
		v.Check(false, "now", now, "a time between 1970 and 2262")
		return v.Err()
	}
	return nil
}

func unknownCommand(c Command) error {
	var v executor.Validator
	v.Check(false, "command", fmt.Sprintf("%T", c), "one of this package's commands, by value")
	return v.Err()
}

// refuse makes the error for a command that is not legal here. If i is none,
// there is no record for the command.
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

// checkInstance refuses a cell's command that does not name its instance.
func checkInstance(k InstanceKey) error {
	if executor.IsName(k.InstanceGUID) && executor.IsName(k.CellID) {
		return nil
	}
	var v executor.Validator
	v.Name("instance_guid", k.InstanceGUID)
	v.Name("cell_id", k.CellID)
	return v.Err()
}

// checkPlace refuses an instance's address and zone if a record cannot hold
// them.
func checkPlace(n NetInfo, zone string) error {
	if max(len(n.Address), len(n.InstanceAddress), len(zone)) <= MaxNameBytes && len(n.Ports) <= executor.MaxListLength && n.PreferredAddress <= PreferHost {
		return nil
	}
	var v executor.Validator
	v.Check(n.PreferredAddress <= PreferHost, "preferred_address", n.PreferredAddress, "UNKNOWN, INSTANCE or HOST")
	v.Check(len(n.Address) <= MaxNameBytes, "address", n.Address, "at most 255 bytes")
	v.Check(len(n.InstanceAddress) <= MaxNameBytes, "instance_address", n.InstanceAddress, "at most 255 bytes")
	v.Check(len(n.Ports) <= executor.MaxListLength, "ports", len(n.Ports), "at most 10000 elements")
	v.Check(len(zone) <= MaxNameBytes, "zone", zone, "at most 255 bytes")
	return v.Err()
}

// checkKey refuses a command that would make a record with an invalid key.
func checkKey(definitionID, domain string) error {
	var v executor.Validator
	v.Name("definition_id", definitionID)
	v.Name("domain", domain)
	return v.Err()
}
