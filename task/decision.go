package task

import "github.com/diegosdk/diego/internal/enum"

// A Decision is the result of a command. The zero Decision is a no-op.
//
// Write and Events are committed together or not at all. Effects are carried
// out after the commit, at most once; convergence repairs a lost one. The
// pointers refer to the given record and to memory of the decision; nobody may
// change what they point to.
type Decision struct {
	Write Write
	// Events are in the order in which consumers must see them.
	Events []Event
	// Effects are in the order in which they should be carried out.
	Effects []Effect
	// ShouldRun answers a cell's Start: whether the cell runs the task now.
	ShouldRun bool
}

// A Write changes the record: Before is nil for a creation, After is nil for a
// deletion, and both are nil for no write. The store must hold exactly
// Before's tag (nothing, for a creation), or the write conflicts.
type Write struct {
	Before *Task
	After  *Task
}

// IsZero reports whether there is nothing to write.
func (w Write) IsZero() bool { return w == Write{} }

// An EffectKind is the kind of an Effect.
type EffectKind uint8

const (
	// RequestStart asks the auctioneer to place the PENDING task.
	RequestStart EffectKind = iota + 1
	// CancelOnCell asks the cell Task.CellID to delete the container
	// Task.InstanceGUID.
	CancelOnCell
	// CallBack requests the completion callback: send Resolve and, if that
	// succeeds, a [CallbackResponse] to Task.CompletionCallbackURL as
	// [CallbackPolicy] says.
	CallBack
)

var effectKindNames = enum.Names[EffectKind]{RequestStart: "request start", CancelOnCell: "cancel on cell", CallBack: "call back"}

// String is "request start", "cancel on cell" or "call back".
func (k EffectKind) String() string { return effectKindNames.Of(k) }

// An Effect is something to do after the decision is committed.
type Effect struct {
	Kind EffectKind
	// Task is the record after the decision.
	Task *Task
}
