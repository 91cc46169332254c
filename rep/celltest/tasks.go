package celltest

import (
	"cmp"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/task"
)

// taskCases are about what a cell owes the BBS for a task.
var taskCases = []testCase{
	{sentence: "a task begins after its start was granted, and its end is reported once", check: func(f *fixture) {
		f.onCall(rep.StartTask, func(c call) {
			if n := f.Begun(c.instance); n != 0 {
				f.Errorf("its work has begun %d times before its start was granted", n)
			}
		})
		t := f.runTask()
		if starts := f.accepted(rep.StartTask); len(starts) != 1 || starts[0].instance != t.InstanceGUID {
			f.Errorf("want one start by %s\n%s", t.InstanceGUID, f.bbs.account())
		}
		f.End(f, t.InstanceGUID, false)
		f.completed(false)
		f.begunOnce(t.InstanceGUID)
		if ends := f.accepted(rep.CompleteTask); len(ends) != 1 {
			f.Errorf("want one end\n%s", f.bbs.account())
		}
	}},
	{sentence: "after a start that is refused the task never begins, and the reservation goes", check: func(f *fixture) {
		f.perform(f.task())
		f.onCall(rep.StartTask, func(call) { f.must(f.bbs.CancelTask(f.ctx, job)) })
		f.until("the cell is empty", f.empty)
		f.neverBegun(rep.StartTask)
	}},
	{sentence: "a task that fails is completed as failed, with a reason", check: func(f *fixture) {
		t := f.runTask()
		f.End(f, t.InstanceGUID, true)
		f.completed(true)
	}},
	{sentence: "a report of a task that is lost on its way is made again, and the task runs once", check: func(f *fixture) {
		for _, l := range []loss{requestLost, answerLost} {
			f.bbs.set(func() { f.bbs.lose[rep.StartTask], f.bbs.lose[rep.CompleteTask] = l, l })
			t := f.runTask()
			f.End(f, t.InstanceGUID, false)
			f.completed(false)
			f.begunOnce(t.InstanceGUID)
			f.must(f.bbs.ResolveAndDeleteTask(f.ctx, job))
		}
	}},
	{sentence: "the end of a task that could not be reported is reported later", check: func(f *fixture) {
		t := f.runTask()
		f.bbs.set(func() { f.bbs.down = true })
		f.End(f, t.InstanceGUID, false)
		f.Pass(20 * time.Second)
		f.bbs.set(func() { f.bbs.down = false })
		f.completed(false)
	}},
	{sentence: "CancelTask ends a task, of which the BBS knows already", check: func(f *fixture) {
		t := f.runTask()
		f.must(f.bbs.CancelTask(f.ctx, job))
		f.must(f.Cell.CancelTask(f.ctx, job, t.InstanceGUID))
		f.until("the cell is empty", f.empty)
		f.never(rep.CompleteTask)
	}},
	{sentence: "a task whose record was ended from outside ends", check: func(f *fixture) {
		f.runTask()
		f.must(f.bbs.CancelTask(f.ctx, job)) // and nobody tells the cell
		f.until("the cell is empty", f.empty)
	}},
	{sentence: "a running task of the cell without a container is completed as failed", check: func(f *fixture) {
		f.task()
		ghost := task.Start{CellID: cellID, InstanceGUID: "ghost", Attempt: f.taskRecord().Attempt()}
		_, err := f.bbs.BBS.StartTask(f.ctx, job, ghost)
		f.must(err)
		f.completed(true)
	}},
	{sentence: "a task whose work could not begin is rejected, so that it may be tried again", check: func(f *fixture) {
		f.perform(f.task())
		f.bbs.set(func() { f.bbs.lose[rep.StartTask] = answerLost })
		f.onCall(rep.StartTask, func(call) { f.bbs.set(func() { f.bbs.down = true }) })
		f.Pass(cmp.Or(f.ReservationExpiry, executor.DefaultReservationExpiry) + soon)
		f.bbs.set(func() { f.bbs.down = false })
		f.until("the task is rejected", func() bool { return len(f.accepted(rep.RejectTask)) > 0 })
		f.until("the cell is empty", f.empty)
		f.neverBegun(rep.StartTask)
		if t := f.taskRecord(); t.State != task.Pending || t.RejectionCount != 1 || t.RejectionReason == "" {
			f.Errorf("want it PENDING with one rejection and its reason: %+v", t)
		}
	}},
}

// completed waits until the task has ended, and the cell has no container for it.
func (f *fixture) completed(failed bool) {
	f.Helper()
	f.until("the task is COMPLETED", func() bool { return f.taskRecord().State == task.Completed })
	if t := f.taskRecord(); t.Failed != failed || failed && t.FailureReason == "" {
		f.Errorf("failed is %v with the reason %q, want %v\n%s", t.Failed, t.FailureReason, failed, f.bbs.account())
	}
	f.until("the cell is empty", func() bool { return f.empty() && !slices.Contains(f.state().Tasks, job) })
}
