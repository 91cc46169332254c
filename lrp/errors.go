package lrp

import (
	"errors"
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// A [TransitionError] wraps one of these. Callers act on them. A cell that gets
// ErrCannotBeClaimed gives up its reservation. A cell that gets
// ErrCannotBeStarted stops its container and then removes each record that
// still names its instance: the refusal says that another instance has the
// index, not that this one's record is gone.
var (
	ErrCannotBeClaimed = errors.New("actual LRP cannot be claimed")
	ErrCannotBeStarted = errors.New("actual LRP cannot be started")
	ErrCannotBeCrashed = errors.New("actual LRP cannot be crashed")
	ErrCannotBeFailed  = errors.New("actual LRP cannot be failed")
	ErrCannotBeRemoved = errors.New("actual LRP cannot be removed")
	ErrCannotBeRetired = errors.New("actual LRP cannot be retired")

	// ErrNotFound is wrapped together with one of the above if the slot has no
	// record for the command. It wraps executor.ErrNotFound.
	ErrNotFound = fmt.Errorf("actual LRP %w", executor.ErrNotFound)
)

// A TransitionError refuses a command. The slot is unchanged.
type TransitionError struct {
	ProcessGUID string
	Index       int
	// Command is the name of the refused command.
	Command string
	// Err is one of the ErrCannotBe… errors.
	Err error
	// Why says what stands in the way.
	Why string
	// Absent is true if there is no record for the command.
	Absent bool
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("%s %s/%d: %v: %s", e.Command, e.ProcessGUID, e.Index, e.Err, e.Why)
}

// Unwrap makes errors.Is work with Err and, if the record is absent, with
// ErrNotFound.
func (e *TransitionError) Unwrap() []error {
	if e.Absent {
		return []error{e.Err, ErrNotFound}
	}
	return []error{e.Err}
}

// Every [InvariantError] wraps ErrInvariant.
var ErrInvariant = errors.New("record breaks an invariant")

// An InvariantError says that Step cannot have made a record or slot, for
// example a RUNNING record without a cell. Step refuses to decide about it.
type InvariantError struct {
	Key      Key
	Presence Presence
	// Rule is the broken invariant.
	Rule string
}

func (e *InvariantError) Error() string {
	return fmt.Sprintf("%s/%d definition %q %s: %v: %s",
		e.Key.ProcessGUID, e.Key.Index, e.Key.DefinitionID, e.Presence, ErrInvariant, e.Rule)
}

// Unwrap makes errors.Is(err, ErrInvariant) true.
func (e *InvariantError) Unwrap() error { return ErrInvariant }
