package converge

import "github.com/diegosdk/diego/internal/enum"

// A Reason says why a plan acts.
type Reason uint8

// The reasons, with the duty of convergence that each belongs to.
const (
	// InstanceMissing: a desired index has no instance (000 §Convergence 2).
	InstanceMissing Reason = iota + 1
	// InstanceExtra: an instance is at an index that is not desired, and its
	// domain is fresh (000 §Convergence 3).
	InstanceExtra
	// CellMissing: the cell of an instance or of a task is gone (000
	// §Convergence 1, §Maintaining Consistency 1).
	CellMissing
	// CellReturned: the cell of a suspect instance is back.
	CellReturned
	// LossDoubted: the loss of a suspect instance's cell is not believed any more,
	// because many others followed.
	LossDoubted
	// SuspectReplaced: the replacement of a suspect instance is RUNNING.
	SuspectReplaced
	// RestartDue: a crashed instance has waited long enough (000 §Convergence
	// 4).
	RestartDue
	// StartOverdue: an UNCLAIMED instance or PENDING task has waited so long
	// that the request for its start may be lost (000 §Convergence 5).
	StartOverdue
	// EvacuationOver: the cell of an evacuating instance is gone, or its time
	// is up.
	EvacuationOver
	// RolloutStep: it is this index's turn in a rollout (003
	// §UpdateLRPDeployment).
	RolloutStep
	// DefinitionUnused: a deployment has a definition that nothing uses.
	DefinitionUnused
	// StartExpired: a PENDING task was not started in time.
	StartExpired
	// CallbackOverdue: a COMPLETED task's callback may be lost (000
	// §Maintaining Consistency 4).
	CallbackOverdue
	// ResolvingOverdue: the consumer or callback that was resolving a task may be
	// gone (000 §Maintaining Consistency 5).
	ResolvingOverdue
	// CompletedExpired: nobody resolved a COMPLETED task in time (000 §Maintaining
	// Consistency 3).
	CompletedExpired
	// RolloutOver: every index of a rollout is done.
	RolloutOver
	// StopOverdue: an instance was told to stop so long ago that the order may be
	// lost.
	StopOverdue
)

var reasonTexts = enum.Names[Reason]{
	InstanceMissing:  "no instance at a desired index",
	InstanceExtra:    "an instance that is not desired",
	CellMissing:      "the cell is missing",
	CellReturned:     "the cell is back",
	LossDoubted:      "the loss of the cell is not believed any more",
	SuspectReplaced:  "the replacement of a suspect instance is running",
	RestartDue:       "a crashed instance is due to restart",
	StartOverdue:     "the start is overdue",
	EvacuationOver:   "the evacuation is over",
	RolloutStep:      "the next step of the rollout",
	DefinitionUnused: "a definition that nothing uses",
	StartExpired:     "not started in time",
	CallbackOverdue:  "the completion callback is overdue",
	ResolvingOverdue: "resolving takes too long",
	CompletedExpired: "completed and not resolved in time",
	RolloutOver:      "the rollout is complete",
	StopOverdue:      "the stop is overdue",
}

// String is a short text for people.
func (r Reason) String() string { return reasonTexts.Of(r) }
