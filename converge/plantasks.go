package converge

import (
	"iter"
	"time"

	"github.com/diegosdk/diego/task"
)

// A TaskAction is a command for task.Step on the task GUID. Whatever the
// decision asks for, a start or a callback, is one of its effects.
type TaskAction struct {
	GUID    string
	Command task.Command
	Reason  Reason
}

// PlanTasks looks at each task (000 §Maintaining Consistency: Convergence) and
// yields what to do about it, in the order of tasks. It yields an error, with
// a zero action, for each task that could not be read, and goes on. Nil is no
// task at all.
func PlanTasks(tasks iter.Seq2[*task.Task, error], cells Cells, now time.Time, p task.Policy) iter.Seq2[TaskAction, error] {
	return func(yield func(TaskAction, error) bool) {
		for t, err := range orEmpty(tasks) {
			if err != nil {
				if !yield(TaskAction{}, err) {
					return
				}
				continue
			}
			if a := planTask(t, cells, now, p); a.Command != nil && !yield(a, nil) {
				return
			}
		}
	}
}

func planTask(t *task.Task, cells Cells, now time.Time, p task.Policy) TaskAction {
	if t.State == task.Running && cells.Missing(t.CellID) {
		return TaskAction{t.GUID, task.CellMissing{CellID: t.CellID}, CellMissing}
	}
	a := TaskAction{GUID: t.GUID, Command: task.Overdue(t, now, p)}
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
