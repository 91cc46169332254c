package task

import (
	"errors"
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// What a [TransitionError] wraps. They are what a caller acts on: a cell that
// is refused a Start deletes its container.
var (
	// ErrNotFound: there is no such task. It wraps executor.ErrNotFound.
	ErrNotFound = fmt.Errorf("task %w", executor.ErrNotFound)
	// ErrExists: there is a task of this guid already. It wraps
	// executor.ErrExists.
	ErrExists = fmt.Errorf("task %w", executor.ErrExists)
	// ErrInvalidTransition: the task's state does not allow the command.
	ErrInvalidTransition = errors.New("invalid task state transition")
	// ErrRunningElsewhere: another container has the task.
	ErrRunningElsewhere = errors.New("task is running elsewhere")
	// ErrOtherAttempt: the container was reserved for an earlier attempt, or
	// for an earlier task of the same guid.
	ErrOtherAttempt = errors.New("task is at another attempt")
)

// A TransitionError refuses a command. The task is as it was.
type TransitionError struct {
	// GUID is empty if there is no record.
	GUID string
	// State is the task's state, [Absent] if there is no record.
	State State
	// Command is the name of the refused command.
	Command string
	// Err is one of the errors above.
	Err error
	// Why is the reason of the rule that refuses.
	Why string
}

func (e *TransitionError) Error() string {
	if e.State == Absent {
		return fmt.Sprintf("%s: %v: %s", e.Command, e.Err, e.Why)
	}
	return fmt.Sprintf("%s task %q (%v): %v: %s", e.Command, e.GUID, e.State, e.Err, e.Why)
}

// Unwrap makes errors.Is work with Err.
func (e *TransitionError) Unwrap() error { return e.Err }

// ErrInvariant is what every [InvariantError] wraps.
var ErrInvariant = errors.New("record breaks an invariant")

// An InvariantError says that a record cannot have been made by Step, such as
// a RUNNING record that no cell holds. Nothing is decided about it.
type InvariantError struct {
	GUID string
	// Rule is the invariant that is broken.
	Rule string
}

func (e *InvariantError) Error() string {
	return fmt.Sprintf("task %q: %v: %s", e.GUID, ErrInvariant, e.Rule)
}

// Unwrap makes errors.Is(err, ErrInvariant) true.
func (e *InvariantError) Unwrap() error { return ErrInvariant }
