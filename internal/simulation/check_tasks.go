package simulation

import (
	"slices"
	"time"

	"github.com/diegosdk/diego/task"
)

// A passage is a task's way from one state to another.
type passage struct{ from, to task.State }

// passages are the ways there are, and the commands that take them (000 §Task
// Lifecycle).
var passages = map[passage][]string{
	{task.Absent, task.Pending}:      {"Desire"},
	{task.Pending, task.Pending}:     {"Reject"},
	{task.Pending, task.Running}:     {"Start"},
	{task.Pending, task.Completed}:   {"Complete", "Reject", "Cancel", "Fail", "ExpirePending"},
	{task.Running, task.Pending}:     {"Reject"},
	{task.Running, task.Completed}:   {"Complete", "Reject", "Cancel", "Fail", "CellMissing"},
	{task.Completed, task.Resolving}: {"Resolve"},
	{task.Completed, task.Absent}:    {"ExpireCompleted", "Resolve"}, // and Delete, in one step
	{task.Resolving, task.Completed}: {"DemoteResolving"},
	{task.Resolving, task.Absent}:    {"Delete"},
}

// waits are the times of a world's policies that the checkers go by.
type waits struct {
	staleUnclaimed, rolloutGiveUp                  time.Duration // of lrp.Policy
	expireCompleted, staleResolving, expirePending time.Duration // of task.Policy
}

// usualWaits are the defaults.
var usualWaits = waits{30 * time.Second, 10 * time.Minute, 2 * time.Minute, 30 * time.Second, 30 * time.Minute}

func stateOf(t *task.Task) task.State {
	if t == nil {
		return task.Absent
	}
	return t.State
}

// task judges a write of a task and takes it down. asked is true if a consumer
// has asked for it.
func (l *ledger) task(w *task.Write, command string, asked bool) error {
	b, a := w.Before, w.After
	guid := ""
	if a != nil {
		guid = a.GUID
	} else {
		guid = b.GUID
	}
	object := func(what string) error {
		return checkTasks.violated("task %s: %s %s: from %+v to %+v", guid, command, what, b, a)
	}
	have := l.tasks[guid]
	if (have == nil) != (b == nil) || have != nil && have.ModificationTag != b.ModificationTag {
		return checkUpdates.violated("task %s is written over: the writer had read %+v, and there is %+v", guid, b, have)
	}
	if a == nil {
		delete(l.tasks, guid)
	} else {
		l.tasks[guid] = a
	}
	l.world.meets(commandRow(stateOf(b), command, acts))
	if p := (passage{stateOf(b), stateOf(a)}); !slices.Contains(passages[p], command) {
		return object("takes no way that there is")
	}
	if b == nil {
		return nil
	}
	now := l.now()
	switch command {
	case "Start":
		if s := l.world.speaking; s == nil || s.attempt != (task.Attempt{}) && s.attempt != b.Attempt() {
			return object("is for another attempt")
		}
	case "Reject":
		most := l.world.retries
		if a.RejectionCount != b.RejectionCount+1 {
			return object("does not count")
		}
		if (a.State == task.Completed) != (b.RejectionCount >= most) {
			return object("gives up too early or too late")
		}
	case "ExpirePending":
		if now.Sub(b.CreatedAt)+l.world.slack() < l.world.waits.expirePending {
			return object("comes too early")
		}
	case "ExpireCompleted":
		if now.Sub(b.FirstCompletedAt) < l.world.waits.expireCompleted {
			return object("comes too early")
		}
		if b.CompletionCallbackURL != "" && l.world.healed.Add(l.world.slack()).Before(b.FirstCompletedAt) && !l.world.healed.IsZero() && l.world.posted[guid] == 0 {
			return checkPosts.violated("task %s is gone, and its consumer, who answers, was not told: %+v", guid, b)
		}
	case "DemoteResolving":
		if now.Sub(b.UpdatedAt) < l.world.waits.staleResolving {
			return object("comes too early")
		}
	case "Delete":
		if !asked && b.CompletionCallbackURL != "" && l.world.posted[guid] == 0 {
			return checkPosts.violated("task %s is deleted, and its consumer has not taken the completion: %+v", guid, b)
		}
	}
	return nil
}

// completes judges that a cell was told that its task is over. before is the task
// when the cell spoke.
func (l *ledger) completes(before *task.Task, c task.Complete) error {
	if l.closed || before == nil || before.State != task.Pending || c.Attempt != before.Attempt() {
		return nil
	}
	if t := l.tasks[before.GUID]; t != nil && t.State == task.Pending && t.Attempt() == c.Attempt {
		return checkTasks.violated("task %s: cell %s has done the work of this attempt, and it is to be done again: %+v", t.GUID, c.CellID, t)
	}
	return nil
}

// orderedToCancel judges an order to delete the container of a task when it reaches the
// cell, which may be late, and from a control plane that leads no longer.
func (l *ledger) orderedToCancel(guid, instance string) error {
	t := l.tasks[guid]
	if l.closed || t == nil || t.State != task.Running || t.InstanceGUID != instance {
		return nil
	}
	return checkOrders.violated("task %s is to be cancelled and runs there: %+v", guid, *t)
}

// posts judges a completion that is about to be sent.
func (l *ledger) posts(r *task.CallbackResponse) error {
	if l.closed {
		return nil
	}
	t := l.tasks[r.TaskGUID]
	switch {
	case t == nil:
		return checkPosts.violated("the completion of task %s is told after it was deleted", r.TaskGUID)
	case t.Failed != r.Failed || t.FailureReason != r.FailureReason:
		return checkPosts.violated("task %s is %+v, and its consumer hears %+v", r.TaskGUID, t, r)
	}
	return nil
}
