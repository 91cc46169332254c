package lrp

import "github.com/diegosdk/diego/internal/enum"

// A Decision is the result of a command. The zero Decision is a no-op.
//
// Writes, Deployment and Events are committed together or not at all. Effects
// are carried out after the commit, at most once; convergence repairs a lost
// one. The pointers refer to the given slot and deployment and to memory of the
// decision; nobody may change what they point to.
type Decision struct {
	// Writes are creations, updates and deletions of single records, at most
	// one per record key.
	Writes []Write
	// Deployment is the new version of the deployment, or nil if the command does
	// not change it. (It does when an instance of the active definition becomes
	// healthy.) It replaces the version whose tag has the same epoch and Index−1.
	Deployment *Deployment
	// Events are in the order in which consumers must see them.
	Events []Event
	// Effects are in the order in which they should be carried out.
	Effects []Effect
	// KeepContainer answers a cell's Evacuate command: whether the cell keeps the
	// container for now.
	KeepContainer bool
}

// A Write changes one record: Before is nil for a creation and After is nil for
// a deletion. Process, index, definition and presence stay the same. All else
// may change, even the domain, if an instance of a deleted deployment takes the
// record. The store must hold exactly Before's tag (nothing, for a creation),
// or the write conflicts.
type Write struct {
	Before *ActualLRP
	After  *ActualLRP
}

// An EffectKind is the kind of an Effect.
type EffectKind uint8

const (
	// RequestStart asks the auctioneer to place the UNCLAIMED record at Key.
	RequestStart EffectKind = iota + 1
	// StopInstance asks the cell Instance.CellID to stop the instance.
	StopInstance
	// ContinueRollout asks for the next step of the process's rollout.
	ContinueRollout
)

var effectKinds = enum.Names[EffectKind]{RequestStart: "RequestStart", StopInstance: "StopInstance", ContinueRollout: "ContinueRollout"}

// String is the constant's name.
func (k EffectKind) String() string { return effectKinds.Of(k) }

// An Effect is something to do after the decision is committed.
type Effect struct {
	Kind     EffectKind
	Key      Key
	Instance InstanceKey // StopInstance only
}
