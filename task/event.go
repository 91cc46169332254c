package task

import (
	"slices"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
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

var eventKindNames = enum.Names[EventKind]{Created: "created", Changed: "changed", Removed: "removed"}

// String is "created", "changed" or "removed".
func (k EventKind) String() string { return eventKindNames.Of(k) }

// MarshalText fails on a value that is not a kind.
func (k EventKind) MarshalText() ([]byte, error) { return eventKindNames.Marshal("kind", k) }

// UnmarshalText accepts only the three names.
func (k *EventKind) UnmarshalText(text []byte) error {
	return eventKindNames.Unmarshal("kind", k, text)
}

// An Event says what changed. Created events have no Before, Removed events no
// After.
type Event struct {
	Kind   EventKind `json:"kind"`
	Before *Task     `json:"before,omitempty"`
	After  *Task     `json:"after,omitempty"`
	// Cause is the command that made the change.
	Cause Cause `json:"cause"`
}

// Effects returns the effects of the decision that made e, for a process that
// has only read the event. They follow from the same rules as in [Step]. An
// event that no rule makes has none.
func (e *Event) Effects() []Effect {
	command := slices.Index(kindNames[:], e.Cause.Command)
	if command < 0 || e.After == nil {
		return nil
	}
	state := Absent
	if e.Before != nil {
		state = e.Before.State
	}
	if state >= numStates {
		return nil
	}
	do := lookup(state, kind(command), true).do
	if do == retry && e.After.State == actionNext[giveUp] {
		do = giveUp
	}
	return effects(do, e.After)
}
