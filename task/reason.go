package task

// Failure reasons that the rules supply. Consumers may compare with them.
const (
	// ReasonCancelled: the consumer cancelled the task.
	ReasonCancelled = "cancelled"
	// ReasonEvacuationTimedOut: the task was still RUNNING when its evacuating
	// cell shut down. The cell sends it with Complete (000 §Evacuation).
	ReasonEvacuationTimedOut = "timed out during cell evacuation"
	// ReasonContainerMissing: the cell of a RUNNING task has no container for it.
	// The cell sends it with Complete.
	ReasonContainerMissing = "container disappeared before completion"
	// ReasonCellMissing: the cell of a RUNNING task is gone.
	ReasonCellMissing = "cell disappeared before completion"
	// ReasonNotStarted: the task was PENDING for too long.
	ReasonNotStarted = "not started within time limit"
)
