package rep

import (
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
	"github.com/diegosdk/diego/task"
)

// A TaskContainer describes the container that a cell has for a task.
type TaskContainer uint8

const (
	// TaskContainerNone means that there is neither a container nor a reservation.
	TaskContainerNone TaskContainer = iota
	TaskContainerReserved
	// TaskContainerActive is INITIALIZING, CREATED or RUNNING.
	TaskContainerActive
	// TaskContainerRetryable is COMPLETED before the work began, so that
	// doing it elsewhere does not do it twice.
	TaskContainerRetryable
	// TaskContainerCompleted is COMPLETED in any other way.
	TaskContainerCompleted
)

// TaskContainers is the number of situations of a task's container.
const TaskContainers = 5

var taskContainerNames = enum.Names[TaskContainer]{
	TaskContainerNone:      "no container",
	TaskContainerReserved:  "RESERVED",
	TaskContainerActive:    "INITIALIZING/CREATED/RUNNING",
	TaskContainerRetryable: "COMPLETED (retryable)",
	TaskContainerCompleted: "COMPLETED",
}

func (c TaskContainer) String() string { return taskContainerNames.Of(c) }

// SituateTaskContainer finds the situation of a task's container; without a
// container it is TaskContainerNone. A value that is not a state is an error.
func SituateTaskContainer(s executor.State, r executor.RunResult) (TaskContainer, error) {
	switch s {
	case executor.Reserved:
		return TaskContainerReserved, nil
	case executor.Initializing, executor.Created, executor.Running:
		return TaskContainerActive, nil
	case executor.Completed:
		if r.Failed && r.Retryable {
			return TaskContainerRetryable, nil
		}
		return TaskContainerCompleted, nil
	}
	return 0, unknownState(s)
}

// A TaskSituation describes what the BBS has recorded about a container's task.
type TaskSituation uint8

// The situations of a task's record. ω is any holder but this container on
// this cell, nobody included.
const (
	TaskNone TaskSituation = iota
	TaskPending
	TaskRunningAlpha
	TaskRunningOmega
	TaskCompletedAlpha
	TaskCompletedOmega
	TaskResolvingAlpha
	TaskResolvingOmega
)

// TaskSituations is the number of situations of a task's record.
const TaskSituations = 8

var taskNames = enum.Names[TaskSituation]{
	TaskNone:           "none",
	TaskPending:        "PENDING",
	TaskRunningAlpha:   "RUNNING α",
	TaskRunningOmega:   "RUNNING ω",
	TaskCompletedAlpha: "COMPLETED α",
	TaskCompletedOmega: "COMPLETED ω",
	TaskResolvingAlpha: "RESOLVING α",
	TaskResolvingOmega: "RESOLVING ω",
}

func (t TaskSituation) String() string { return taskNames.Of(t) }

// SituateTask finds what a task's record, nil for none, means to the container
// instanceGUID on the cell cellID. Whether a PENDING task waits for this very
// container is decided by the BBS, by the attempt.
func SituateTask(t *task.Task, cellID, instanceGUID string) TaskSituation {
	if t == nil {
		return TaskNone
	}
	alpha := t.CellID == cellID && t.InstanceGUID == instanceGUID
	switch {
	case t.State == task.Pending:
		return TaskPending
	case t.State == task.Running && alpha:
		return TaskRunningAlpha
	case t.State == task.Running:
		return TaskRunningOmega
	case t.State == task.Completed && alpha:
		return TaskCompletedAlpha
	case t.State == task.Completed:
		return TaskCompletedOmega
	case t.State == task.Resolving && alpha:
		return TaskResolvingAlpha
	case t.State == task.Resolving:
		return TaskResolvingOmega
	}
	return TaskNone
}
