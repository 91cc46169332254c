package task

import (
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// A State is the state of a task (000 §Task States).
type State uint8

// The states of a task. The zero State is [Absent]: no record. It has no text,
// and no record has it.
const (
	Absent State = iota
	// Pending is being scheduled by an auction.
	Pending
	// Running is on a cell.
	Running
	// Completed has ended, in success or failure.
	Completed
	// Resolving is being handled by the consumer or its callback.
	Resolving

	numStates
)

var stateNames = [numStates]string{Pending: "PENDING", Running: "RUNNING", Completed: "COMPLETED", Resolving: "RESOLVING"}

func (s State) String() string {
	switch {
	case s == Absent:
		return "no record"
	case s >= numStates:
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// MarshalText fails on a value that is not the state of a record.
func (s State) MarshalText() ([]byte, error) {
	if s == Absent || s >= numStates {
		return nil, unknownState(s.String())
	}
	return []byte(stateNames[s]), nil
}

// UnmarshalText accepts only the four names, upper case.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if name != "" && name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return unknownState(string(text))
}

func unknownState(text string) error {
	var v executor.Validator
	v.Check(false, "state", text, "PENDING, RUNNING, COMPLETED or RESOLVING")
	return v.Err()
}
