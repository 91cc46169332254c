package lrp

import "github.com/diegosdk/diego/internal/enum"

// A State is the state of an ActualLRP (000 §ActualLRPs).
type State uint8

// The states of an ActualLRP. There is no zero state: an absent record is a
// slot without it.
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

var states = enum.Names[State]{Unclaimed: "UNCLAIMED", Claimed: "CLAIMED", Running: "RUNNING", Crashed: "CRASHED"}

// String is the specification's word, for example "UNCLAIMED".
func (s State) String() string { return states.Of(s) }

// MarshalText fails on a value that is not a state.
func (s State) MarshalText() ([]byte, error) { return states.Marshal("state", s) }

// UnmarshalText accepts only the four words, upper case.
func (s *State) UnmarshalText(text []byte) error { return states.Unmarshal("state", s, text) }

// A Presence says what is known about the cell that holds an ActualLRP. Its
// numbers are those of the specification (000 §ActualLRPs).
type Presence uint8

const (
	// Ordinary is on a cell that operates normally, or on none yet.
	Ordinary Presence = iota
	// Evacuating is on a cell that is shutting down; always RUNNING.
	Evacuating
	// Suspect is on a cell whose presence cannot be verified; RUNNING or
	// CLAIMED.
	Suspect
)

var presences = enum.Names[Presence]{Ordinary: "ORDINARY", Evacuating: "EVACUATING", Suspect: "SUSPECT"}

// String is the specification's word, for example "ORDINARY".
func (p Presence) String() string { return presences.Of(p) }

// MarshalText fails on a value that is not a presence.
func (p Presence) MarshalText() ([]byte, error) { return presences.Marshal("presence", p) }

// UnmarshalText accepts only the three words, upper case.
func (p *Presence) UnmarshalText(text []byte) error { return presences.Unmarshal("presence", p, text) }
