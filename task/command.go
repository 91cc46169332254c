package task

// A Command is one request to change a task: a cell's, the auctioneer's, the
// consumer's or convergence's. The types in this file are all there are. They are
// values, and goroutines may share them.
type Command interface {
	// Name is the command's name in events and errors, such as "Start".
	Name() string
	kind() kind
}

// Commands of the consumer.
type (
	// Desire makes a PENDING task and asks for its start. Its epoch is now in
	// nanoseconds: a guid that was free for less than that cannot be told from
	// the task that had it before.
	Desire struct {
		GUID       string     `json:"task_guid"`
		Domain     string     `json:"domain"`
		Definition Definition `json:"definition"`
	}
	// Cancel completes a PENDING or RUNNING task as failed, with the reason
	// [ReasonCancelled], and stops its container (000 §Cancelling Tasks).
	Cancel struct{}
	// Resolve says that somebody is dealing with a COMPLETED task: the
	// consumer, or whoever makes its callback. It succeeds for one of them.
	Resolve struct{}
	// Delete removes a RESOLVING task. Whoever wants to be rid of a COMPLETED
	// task sends Resolve first (000 §Resolving Completed Tasks).
	Delete struct{}
)

// Commands of a cell. CellID and InstanceGUID name its container; no two
// containers ever have the same instance guid.
type (
	// Start says that the cell has a reservation and is about to run the task.
	// Decision.ShouldRun is the answer: true once, and false when this
	// container is known to run the task already.
	Start struct {
		CellID       string  `json:"cell_id"`
		InstanceGUID string  `json:"instance_guid"`
		Attempt      Attempt `json:"attempt,omitzero"`
	}
	// Complete says that the container has ended. A task that is still
	// PENDING completes too, as the container of its Attempt has ended
	// without a Start that was heard of.
	Complete struct {
		CellID       string  `json:"cell_id"`
		InstanceGUID string  `json:"instance_guid"`
		Attempt      Attempt `json:"attempt,omitzero"` // looked at while the task is PENDING
		Failed       bool    `json:"failed,omitempty"`
		// FailureReason is set if Failed, and only then. At most 1024 bytes
		// are kept.
		FailureReason string `json:"failure_reason,omitempty"`
		// Result is at most [MaxResultBytes], and empty if Failed.
		Result string `json:"result,omitempty"`
	}
)

// Reject says that the task was not begun and may be tried again. The
// auctioneer, which names no container, rejects a PENDING task that found no
// cell. The cell that holds a RUNNING task rejects it when the failure came
// before the work began.
//
// The task is PENDING again and is requested again by convergence, or
// COMPLETED and failed with Reason once it was rejected more than
// Policy.MaxRetries times.
type Reject struct {
	CellID       string  `json:"cell_id,omitempty"`
	InstanceGUID string  `json:"instance_guid,omitempty"`
	Attempt      Attempt `json:"attempt,omitzero"` // looked at while the task is PENDING
	// Reason is required. At most 1024 bytes are kept.
	Reason string `json:"reason"`
}

// Fail completes a PENDING or RUNNING task as failed and stops its container.
type Fail struct {
	// Reason is required. At most 1024 bytes are kept.
	Reason string `json:"reason"`
}

// Commands of convergence (000 §Maintaining Consistency: Convergence). Each
// does nothing when the task has moved on or it is not time yet.
type (
	// RequestAgain repeats the request for a task that has been PENDING for
	// Policy.StalePending.
	RequestAgain struct{}
	// ExpirePending fails a task that was not started within
	// Policy.ExpirePending of its creation.
	ExpirePending struct{}
	// CellMissing says that the cell of a RUNNING task is gone.
	CellMissing struct{ CellID string }
	// DemoteResolving puts a task that has been RESOLVING for
	// Policy.StaleResolving back to COMPLETED and asks for its callback.
	DemoteResolving struct{}
	// RequestCallback repeats the request for the callback of a task that has
	// been COMPLETED for Policy.StaleCompleted.
	RequestCallback struct{}
	// ExpireCompleted removes a COMPLETED task Policy.ExpireCompleted after it
	// was first COMPLETED.
	ExpireCompleted struct{}
)

// A kind is the type of a Command, as an index into tables.
type kind uint8

const (
	kindDesire kind = iota
	kindCancel
	kindResolve
	kindDelete
	kindStart
	kindComplete
	kindReject
	kindFail
	kindRequestAgain
	kindExpirePending
	kindCellMissing
	kindDemoteResolving
	kindRequestCallback
	kindExpireCompleted

	numKinds
)

var kindNames = [numKinds]string{
	kindDesire:          "Desire",
	kindCancel:          "Cancel",
	kindResolve:         "Resolve",
	kindDelete:          "Delete",
	kindStart:           "Start",
	kindComplete:        "Complete",
	kindReject:          "Reject",
	kindFail:            "Fail",
	kindRequestAgain:    "RequestAgain",
	kindExpirePending:   "ExpirePending",
	kindCellMissing:     "CellMissing",
	kindDemoteResolving: "DemoteResolving",
	kindRequestCallback: "RequestCallback",
	kindExpireCompleted: "ExpireCompleted",
}

func (Desire) kind() kind          { return kindDesire }
func (Cancel) kind() kind          { return kindCancel }
func (Resolve) kind() kind         { return kindResolve }
func (Delete) kind() kind          { return kindDelete }
func (Start) kind() kind           { return kindStart }
func (Complete) kind() kind        { return kindComplete }
func (Reject) kind() kind          { return kindReject }
func (Fail) kind() kind            { return kindFail }
func (RequestAgain) kind() kind    { return kindRequestAgain }
func (ExpirePending) kind() kind   { return kindExpirePending }
func (CellMissing) kind() kind     { return kindCellMissing }
func (DemoteResolving) kind() kind { return kindDemoteResolving }
func (RequestCallback) kind() kind { return kindRequestCallback }
func (ExpireCompleted) kind() kind { return kindExpireCompleted }

// Name implements [Command].
func (c Desire) Name() string          { return kindNames[c.kind()] }
func (c Cancel) Name() string          { return kindNames[c.kind()] }
func (c Resolve) Name() string         { return kindNames[c.kind()] }
func (c Delete) Name() string          { return kindNames[c.kind()] }
func (c Start) Name() string           { return kindNames[c.kind()] }
func (c Complete) Name() string        { return kindNames[c.kind()] }
func (c Reject) Name() string          { return kindNames[c.kind()] }
func (c Fail) Name() string            { return kindNames[c.kind()] }
func (c RequestAgain) Name() string    { return kindNames[c.kind()] }
func (c ExpirePending) Name() string   { return kindNames[c.kind()] }
func (c CellMissing) Name() string     { return kindNames[c.kind()] }
func (c DemoteResolving) Name() string { return kindNames[c.kind()] }
func (c RequestCallback) Name() string { return kindNames[c.kind()] }
func (c ExpireCompleted) Name() string { return kindNames[c.kind()] }
