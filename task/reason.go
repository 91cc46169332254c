package task

// Failure reasons that are not told by whoever reports the failure. Consumers
// may compare with them.
const (
	// ReasonCancelled is of a task that the consumer cancelled.
	ReasonCancelled = "cancelled"
	// ReasonEvacuationTimedOut is of a task that was still RUNNING when its
	// evacuating cell shut down. The cell sends it with Complete (000
	// §Evacuation).
	ReasonEvacuationTimedOut = "timed out during cell evacuation"
	// ReasonContainerMissing is of a RUNNING task whose cell has no container
	// for it. The cell sends it with Complete.
	ReasonContainerMissing = "container disappeared before completion"
	// ReasonCellMissing is of a RUNNING task whose cell is gone.
	ReasonCellMissing = "cell disappeared before completion"
	// ReasonNotStarted is of a task that was PENDING for too long.
	ReasonNotStarted = "not started within time limit"
)
