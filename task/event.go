package task

import (
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// A Cause says why something changed: the command and what it knew.
type Cause = executor.Cause

// An EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events about a task.
const (
	Created EventKind = iota + 1
	Changed
	Removed
)

var eventKindNames = [...]string{Created: "created", Changed: "changed", Removed: "removed"}

func (k EventKind) String() string {
	if k == 0 || int(k) >= len(eventKindNames) {
		return fmt.Sprintf("EventKind(%d)", uint8(k))
	}
	return eventKindNames[k]
}

// An Event says what changed. Created events have no Before, Removed events no
// After.
type Event struct {
	Kind   EventKind
	Before *Task
	After  *Task
	// Cause is the command that made the change.
	Cause Cause
}
