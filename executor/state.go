package executor

import (
	"errors"
	"fmt"
	"slices"
)

// A State is a container's state (000 §Container State).
type State uint8

// The states of a container. There is no zero state: a State read from
// outside is one of these or an error.
const (
	// Reserved has its resources and nothing else.
	Reserved State = iota + 1
	// Initializing is being made.
	Initializing
	// Created is made; its recipe starts and is not yet healthy.
	Created
	// Running is healthy, and its Action runs.
	Running
	// Completed runs no more; its RunResult says why.
	Completed
)

var stateNames = [...]string{
	Reserved:     "RESERVED",
	Initializing: "INITIALIZING",
	Created:      "CREATED",
	Running:      "RUNNING",
	Completed:    "COMPLETED",
}

func (s State) known() bool { return s != 0 && int(s) < len(stateNames) }

func (s State) String() string {
	if !s.known() {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// MarshalText fails on a value that is not a state.
func (s State) MarshalText() ([]byte, error) {
	if !s.known() {
		return nil, unknown("state", s.String())
	}
	return []byte(stateNames[s]), nil
}

// UnmarshalText accepts the five names, upper case, and nothing else. An
// error is a *ValidationError.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if i > 0 && name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return unknown("state", string(text))
}

// A Transition is a change of a container's state.
type Transition struct {
	From, To State
}

// transitions are all that the specification allows (000 §Container State).
// Deleting a container is none of them: it is allowed in every state, and
// what is deleted has no state.
var transitions = [...]Transition{
	{Reserved, Initializing},
	{Initializing, Created},
	{Initializing, Completed},
	{Created, Running},
	{Created, Completed},
	{Running, Completed},
}

// Transitions returns the legal changes of a container's state. A container may
// be deleted in any state.
func Transitions() []Transition { return append([]Transition(nil), transitions[:]...) }

// CanTransition reports whether a container may go from one state to another.
// Staying in a state is not a transition.
func CanTransition(from, to State) bool {
	return slices.Contains(transitions[:], Transition{from, to})
}

// ErrTransition is what every [TransitionError] wraps.
var ErrTransition = errors.New("illegal change of container state")

// A TransitionError says that a container is in the wrong state for the
// requested change. It wraps [ErrTransition]. The container is unchanged.
type TransitionError struct {
	// GUID is the container's.
	GUID string
	Transition
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("%v: container %q: %v to %v", ErrTransition, e.GUID, e.From, e.To)
}

// Unwrap makes errors.Is(err, ErrTransition) true.
func (e *TransitionError) Unwrap() error { return ErrTransition }
