package bbs

import (
	"context"
	"iter"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// DesireTask makes a task and requests its start. The error wraps
// task.ErrExists, and so storage.ErrExists, if a task has that guid.
func (b *BBS) DesireTask(ctx context.Context, c task.Desire) error {
	_, _, err := b.stepTask(ctx, "DesireTask", c.GUID, c)
	return err
}

// Tasks lists those that f wants, ordered by guid.
func (b *BBS) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	return b.o.Store.Tasks(ctx, f)
}

// Task is the task with that guid. If there is none, the error wraps
// task.ErrNotFound, and so storage.ErrNotFound, like that of every call about a
// task.
func (b *BBS) Task(ctx context.Context, guid string) (*task.Task, error) {
	return b.o.Store.Task(ctx, guid)
}

// CancelTask completes a task as failed and stops its container (000
// §Cancelling Tasks).
func (b *BBS) CancelTask(ctx context.Context, guid string) error {
	_, _, err := b.stepTask(ctx, "CancelTask", guid, task.Cancel{})
	return err
}

// ResolveTask says that the caller handles a COMPLETED task. It succeeds for
// one caller only.
func (b *BBS) ResolveTask(ctx context.Context, guid string) error {
	_, _, err := b.stepTask(ctx, "ResolveTask", guid, task.Resolve{})
	return err
}

// DeleteTask removes a RESOLVING task.
func (b *BBS) DeleteTask(ctx context.Context, guid string) error {
	_, _, err := b.stepTask(ctx, "DeleteTask", guid, task.Delete{})
	return err
}

// ResolveAndDeleteTask removes a COMPLETED task in one step: ResolveTask and
// then DeleteTask. It succeeds for one caller only.
func (b *BBS) ResolveAndDeleteTask(ctx context.Context, guid string) error {
	_, _, err := b.decideTask(ctx, "ResolveAndDeleteTask", guid, func(t *task.Task) (task.Decision, error) {
		resolved, err := task.Step(t, task.Resolve{}, b.o.Now(), b.o.Tasks)
		if err != nil {
			return task.Decision{}, err
		}
		d, err := task.Step(resolved.Write.After, task.Delete{}, b.o.Now(), b.o.Tasks)
		d.Write.Before, d.Events = t, append(resolved.Events, d.Events...)
		return d, err
	})
	return err
}

// StartTask asks whether a cell is to run a task in its container now: true
// once for a task, and false if this container runs it already. A call that is
// repeated with its request id gets the first answer.
func (b *BBS) StartTask(ctx context.Context, guid string, c task.Start) (shouldRun bool, err error) {
	d, repeated, err := b.stepTask(ctx, "StartTask", guid, c)
	if err != nil || d.ShouldRun {
		return d.ShouldRun, err
	}
	if id := requestID(ctx, "StartTask"); !repeated && id != "" {
		if repeated, err = b.o.Store.Remembers(ctx, id); err != nil {
			return false, b.answer("StartTask", err)
		}
	}
	if !repeated {
		return false, nil
	}
	t, err := b.o.Store.Task(ctx, guid)
	if err != nil {
		return false, b.answer("StartTask", err)
	}
	return t.State == task.Running && t.CellID == c.CellID && t.InstanceGUID == c.InstanceGUID, nil
}

// CompleteTask says that the container of a task has ended.
func (b *BBS) CompleteTask(ctx context.Context, guid string, c task.Complete) error {
	_, _, err := b.stepTask(ctx, "CompleteTask", guid, c)
	return err
}

// FailTask completes a task as failed and stops its container.
func (b *BBS) FailTask(ctx context.Context, guid, reason string) error {
	_, _, err := b.stepTask(ctx, "FailTask", guid, task.Fail{Reason: reason})
	return err
}

// RejectStartedTask says that a cell has not begun the work of its task, so
// that it may be tried elsewhere.
func (b *BBS) RejectStartedTask(ctx context.Context, guid string, c task.Reject) error {
	_, _, err := b.stepTask(ctx, "RejectStartedTask", guid, c)
	return err
}

// RejectTask implements auction.Reporter: no cell has taken this attempt. It
// returns the next one, and false if the retries are used up.
func (b *BBS) RejectTask(ctx context.Context, guid string, attempt task.Attempt, reason string) (next task.Attempt, again bool, err error) {
	d, _, err := b.stepTask(ctx, "RejectTask", guid, task.Reject{Attempt: attempt, Reason: reason})
	if err != nil {
		return task.Attempt{}, false, err
	}
	if d.Write.After == nil {
		return task.Attempt{}, false, nil // counted already, and requested anew
	}
	return d.Write.After.Attempt(), d.Write.After.State == task.Pending, nil
}
