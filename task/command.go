package task

// A Command is one request to change a task. It comes from a cell, the
// auctioneer, the consumer or convergence. Only the types of this package are
// commands. Pass them by value; goroutines may share them.
//
// In a cell's command, CellID and InstanceGUID name the cell's container. No
// two containers ever have the same instance guid.
type Command interface {
	// Name is the command's name in events and errors, for example "Start".
	Name() string
	kind() kind
}

// Commands of the consumer.
type (
	// Desire makes a PENDING task and requests its start. Its epoch is now in
	// nanoseconds: two tasks that take one guid at the same nanosecond cannot be
	// told apart.
	Desire struct {
		GUID       string     `json:"task_guid"`
		Domain     string     `json:"domain"`
		Definition Definition `json:"definition"`
	}
	// Cancel completes a PENDING or RUNNING task as failed, with the reason
	// [ReasonCancelled], and stops its container (000 §Cancelling Tasks).
	Cancel struct{}
	// Resolve claims a COMPLETED task for the consumer or for the sender of its
	// callback. It succeeds for one of them.
	Resolve struct{}
	// Delete removes a RESOLVING task. To remove a COMPLETED task, send Resolve
	// first (000 §Resolving Completed Tasks).
	Delete struct{}
)

// Commands of a cell. CellID and InstanceGUID name its container; no two
// containers ever have the same instance guid.
type (
	// Start says that the cell has a reservation and is about to run the task.
	// Decision.ShouldRun is the answer: true once, and false when this container
	// is known to run the task already.
	Start struct {
		CellID       string  `json:"cell_id"`
		InstanceGUID string  `json:"instance_guid"`
		Attempt      Attempt `json:"attempt,omitzero"`
	}
	// Complete says that the container has ended. It also completes a task that is
	// still PENDING: the container of its Attempt has ended, and its Start was not
	// received.
	Complete struct {
		CellID       string  `json:"cell_id"`
		InstanceGUID string  `json:"instance_guid"`
		Attempt      Attempt `json:"attempt,omitzero"` // used while the task is PENDING
		Failed       bool    `json:"failed,omitempty"`
		// FailureReason is set exactly if Failed is. At most 1024 bytes are kept.
		FailureReason string `json:"failure_reason,omitempty"`
		// Result is at most [MaxResultBytes], and empty if Failed.
		Result string `json:"result,omitempty"`
	}
)

// Reject says that the work did not begin and may be tried again. The
// auctioneer rejects a PENDING task that found no cell; it names no container.
// The cell that holds a RUNNING task rejects it when the failure came before
// the work began.
//
// The task becomes PENDING again, and convergence requests its start. After
// more than Policy.MaxRetries rejections it becomes COMPLETED instead, failed
// with Reason.
type Reject struct {
	CellID       string  `json:"cell_id,omitempty"`
	InstanceGUID string  `json:"instance_guid,omitempty"`
	Attempt      Attempt `json:"attempt,omitzero"` // used while the task is PENDING
	// Reason is required. At most 1024 bytes are kept.
	Reason string `json:"reason"`
}

// Fail completes a PENDING or RUNNING task as failed and stops its container.
type Fail struct {
	// Reason is required. At most 1024 bytes are kept.
	Reason string `json:"reason"`
}

// Commands of convergence (000 §Maintaining Consistency: Convergence). Each
// does nothing if the task has moved on or its time has not come.
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
	// Policy.StaleResolving back to COMPLETED and requests its callback.
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
