package task

import "github.com/diegosdk/diego/internal/enum"

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

var stateNames = enum.Names[State]{Pending: "PENDING", Running: "RUNNING", Completed: "COMPLETED", Resolving: "RESOLVING"}

// String is the specification's word, for example "PENDING"; that of Absent is
// "no record".
func (s State) String() string {
	if s == Absent {
		return "no record"
	}
	return stateNames.Of(s)
}

// MarshalText fails on a value that is not the state of a record.
func (s State) MarshalText() ([]byte, error) { return stateNames.Marshal("state", s) }

// UnmarshalText accepts only the four names, upper case.
func (s *State) UnmarshalText(text []byte) error { return stateNames.Unmarshal("state", s, text) }
