package lrp

// A Decision is what a command leads to. The zero Decision is a no-op.
//
// Writes, Deployment and Events are committed together or not at all. Effects
// are carried out after the commit, at most once; convergence repairs a lost
// one. The pointers lead into the slot that was decided and into memory that
// the decision owns; nobody changes what they point to.
type Decision struct {
	// Writes are creations, updates and deletions of single records, at most
	// one per record key.
	Writes []Write
	// Deployment is the new version of the deployment if the command changes
	// it (an instance of the active definition became healthy), or nil. It
	// replaces the version whose tag has the same epoch and Index−1.
	Deployment *Deployment
	// Events are in the order in which consumers must see them.
	Events []Event
	// Effects are in the order in which they should be carried out.
	Effects []Effect
	// KeepContainer is the answer to a cell's Evacuate command: whether the
	// cell keeps the container for now.
	KeepContainer bool
}

// A Write changes one record: Before is nil for a creation and After is nil
// for a deletion. Process, index, definition and presence stay the same; all
// else may change, and so may the domain, if an instance of a deployment that
// was deleted takes the record. The store must hold exactly Before's tag
// (nothing, for a creation), or the write conflicts.
type Write struct {
	Before *ActualLRP
	After  *ActualLRP
}

// An EffectKind is what an Effect asks for.
type EffectKind uint8

const (
	// RequestStart asks the auctioneer to place the UNCLAIMED record at Key.
	RequestStart EffectKind = iota + 1
	// StopInstance asks the cell Instance.CellID to stop the instance.
	StopInstance
	// ContinueRollout asks for the next step of the process's rollout.
	ContinueRollout
)

var effectKinds = enum{"effect", []string{RequestStart: "RequestStart", StopInstance: "StopInstance", ContinueRollout: "ContinueRollout"}}

// String is the constant's name.
func (k EffectKind) String() string { return effectKinds.name(uint8(k)) }

// An Effect is something to do once the decision is committed.
type Effect struct {
	Kind     EffectKind
	Key      Key
	Instance InstanceKey // StopInstance only
}
