package converge

import (
	"iter"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/task"
)

// A TaskAction is a command for task.Step on the task GUID. If the decision
// requests a start or a callback, that is one of its effects.
type TaskAction struct {
	GUID    string
	Command task.Command
	Reason  Reason
}

// PlanTasks looks at each task (000 §Maintaining Consistency: Convergence) and
// yields the actions in the order of tasks. For each task that could not be
// read it yields an error, with a zero action, and goes on. A nil sequence
// means no tasks.
func PlanTasks(tasks iter.Seq2[*task.Task, error], cells Cells, now time.Time, p task.Policy) iter.Seq2[TaskAction, error] {
	return func(yield func(TaskAction, error) bool) {
		for t, err := range orEmpty(tasks) {
			if err != nil {
				if !yield(TaskAction{}, err) {
					return
				}
				continue
			}
			if a := planTask(t, cells, &executor.Alarm{Now: now}, p); a.Command != nil && !yield(a, nil) {
				return
			}
		}
	}
}

// nextLook is the earliest time at which the plan for an unchanged task may
// differ; zero if there is none.
func nextLook(t *task.Task, cells Cells, now time.Time, p task.Policy) time.Time {
	alarm := executor.Alarm{Now: now, Next: task.NextOverdue(t, now, p)}
	planTask(t, cells, &alarm, p)
	return alarm.Next
}

// planTask plans for one task. It asks the alarm only about the cell.
func planTask(t *task.Task, cells Cells, alarm *executor.Alarm, p task.Policy) TaskAction {
	if t.State == task.Running && cells.losesTask(t.CellID, t.UpdatedAt, alarm) {
		return TaskAction{t.GUID, task.CellMissing{CellID: t.CellID}, CellMissing}
	}
	a := TaskAction{GUID: t.GUID, Command: task.Overdue(t, alarm.Now, p)}
	switch a.Command.(type) {
	case task.RequestAgain:
		a.Reason = StartOverdue
	case task.ExpirePending:
		a.Reason = StartExpired
	case task.RequestCallback:
		a.Reason = CallbackOverdue
	case task.DemoteResolving:
		a.Reason = ResolvingOverdue
	case task.ExpireCompleted:
		a.Reason = CompletedExpired
	}
	return a
}
