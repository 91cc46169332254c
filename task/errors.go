package task

import (
	"errors"
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// A [TransitionError] wraps one of these. Callers act on them: a cell whose
// Start is refused deletes its container.
var (
	// ErrNotFound: there is no such task. It wraps executor.ErrNotFound.
	ErrNotFound = fmt.Errorf("task %w", executor.ErrNotFound)
	// ErrExists: a task with this guid already exists. It wraps
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

// A TransitionError refuses a command. The task is unchanged.
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

// Every [InvariantError] wraps ErrInvariant.
var ErrInvariant = errors.New("record breaks an invariant")

// An InvariantError says that Step cannot have made a record, for example a
// RUNNING record without a cell. Step refuses to decide about it.
type InvariantError struct {
	GUID string
	// Rule is the broken invariant.
	Rule string
}

func (e *InvariantError) Error() string {
	return fmt.Sprintf("task %q: %v: %s", e.GUID, ErrInvariant, e.Rule)
}

// Unwrap makes errors.Is(err, ErrInvariant) true.
func (e *InvariantError) Unwrap() error { return ErrInvariant }
