package lrp

import (
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// A State is the state of an ActualLRP (000 §ActualLRPs).
type State uint8

// The states of an ActualLRP. There is no zero state: no record is a slot
// without that record.
const (
	// Unclaimed is being scheduled by an auction.
	Unclaimed State = iota + 1
	// Claimed is assigned to a cell and being started.
	Claimed
	// Running is ready to receive traffic or work.
	Running
	// Crashed is on no cell and will be restarted eventually.
	Crashed
)

var stateNames = [...]string{Unclaimed: "UNCLAIMED", Claimed: "CLAIMED", Running: "RUNNING", Crashed: "CRASHED"}

func (s State) String() string {
	if s == 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// MarshalText fails on a value that is no state.
func (s State) MarshalText() ([]byte, error) {
	if s == 0 || int(s) >= len(stateNames) {
		return nil, unknown("state", s.String())
	}
	return []byte(stateNames[s]), nil
}

// UnmarshalText accepts the four names, upper case, and nothing else.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if i > 0 && name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return unknown("state", string(text))
}

// A Presence says what is known of the cell that holds an ActualLRP. Its
// numbers are those of the specification (000 §ActualLRPs).
type Presence uint8

const (
	// Ordinary is on a cell that operates normally, or on none yet.
	Ordinary Presence = iota
	// Evacuating is on a cell that shuts down; always RUNNING.
	Evacuating
	// Suspect is on a cell whose presence cannot be verified; RUNNING or
	// CLAIMED.
	Suspect
)

var presenceNames = [...]string{Ordinary: "ORDINARY", Evacuating: "EVACUATING", Suspect: "SUSPECT"}

func (p Presence) String() string {
	if int(p) >= len(presenceNames) {
		return fmt.Sprintf("Presence(%d)", uint8(p))
	}
	return presenceNames[p]
}

// MarshalText fails on a value that is no presence.
func (p Presence) MarshalText() ([]byte, error) {
	if int(p) >= len(presenceNames) {
		return nil, unknown("presence", p.String())
	}
	return []byte(presenceNames[p]), nil
}

// UnmarshalText accepts the three names, upper case, and nothing else.
func (p *Presence) UnmarshalText(text []byte) error {
	for i, name := range presenceNames {
		if name == string(text) {
			*p = Presence(i)
			return nil
		}
	}
	return unknown("presence", string(text))
}

// unknown is the error for enum text that is none of the known names.
func unknown(field, text string) error {
	var v executor.Validator
	v.Check(false, field, text, "a known "+field)
	return v.Err()
}
