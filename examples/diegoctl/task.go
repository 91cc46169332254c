package main

import (
	"fmt"
	"strconv"

	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// This file holds the commands about tasks.

func taskRun(c *call) error {
	t, err := spec(c, specfile.Task)
	if err != nil {
		return err
	}
	if guid := c.flag("guid"); guid != "" {
		t.GUID = guid
	}
	r, err := c.remote()
	if err != nil {
		return err
	}
	if err := r.bbs.DesireTask(c.ctx, t); err != nil {
		return err
	}
	if !c.on("wait") {
		return c.say(done{Done: "created", TaskGUID: t.GUID}, "task %s is desired", t.GUID)
	}
	var last *task.Task
	err = c.until(func() (bool, string, error) {
		if last, err = r.bbs.Task(c.ctx, t.GUID); err != nil {
			return false, "", err
		}
		state := "the task is " + last.State.String()
		if last.RejectionReason != "" {
			state += ": " + last.RejectionReason
		}
		return last.State == task.Completed || last.State == task.Resolving, state, nil
	})
	if err != nil {
		return err
	}
	if err := c.show(c.aboutTask(last)); err != nil {
		return err
	}
	if last.Failed {
		return &failedError{}
	}
	return nil
}

func taskGet(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	t, err := r.bbs.Task(c.ctx, c.arg(0))
	if err != nil {
		return err
	}
	return c.show(c.aboutTask(t))
}

func (c *call) aboutTask(t *task.Task) *view {
	v := &view{doc: t}
	add := func(name, value string) {
		if value != "" {
			v.about = append(v.about, [2]string{name, value})
		}
	}
	add("task", t.GUID)
	add("domain", t.Domain)
	add("state", stateOfTask(t).text)
	add("cell", t.CellID)
	add("container", t.InstanceGUID)
	add("failure", t.FailureReason)
	add("result", t.Result)
	if t.RejectionCount > 0 {
		add("rejected", fmt.Sprintf("%s, last: %s", count(t.RejectionCount, "time"), t.RejectionReason))
	}
	add("size", sizeOf(t.Resources))
	add("root fs", t.RootFS)
	add("action", actionText(t.Action))
	add("result file", t.ResultFile)
	add("callback", t.CompletionCallbackURL)
	add("annotation", t.Annotation)
	add("age", age(c.now(), t.CreatedAt))
	return v
}

func taskList(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	f := storage.TaskFilter{CellIDs: c.list("cell"), Domains: c.list("domain")}
	for _, name := range c.list("state") {
		var s task.State
		if err := s.UnmarshalText([]byte(name)); err != nil {
			return err
		}
		f.States = append(f.States, s)
	}
	v := &view{heading: []string{"TASK", "DOMAIN", "STATE", "CELL", "AGE", "REJECTED", "RESULT"}, empty: "there is no task"}
	for t, err := range r.bbs.Tasks(c.ctx, f) {
		if err != nil {
			return err
		}
		outcome := t.Result
		switch {
		case t.Failed:
			outcome = t.FailureReason
		case t.State == task.Pending:
			outcome = t.RejectionReason
		}
		v.add(t, text(t.GUID), text(t.Domain), stateOfTask(t), text(orDash(t.CellID)), text(age(c.now(), t.CreatedAt)),
			text(strconv.Itoa(t.RejectionCount)), text(cut(outcome, 200)))
	}
	return c.show(v)
}

func stateOfTask(t *task.Task) cell {
	s := cell{t.State.String(), yellow}
	switch {
	case t.State == task.Completed && t.Failed, t.State == task.Resolving && t.Failed:
		s = cell{s.text + ", failed", red}
	case t.State == task.Completed, t.State == task.Resolving:
		s = cell{s.text + ", succeeded", green}
	}
	return s
}

// cut shortens a text to so many characters.
func cut(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

func taskCancel(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	guid := c.arg(0)
	if err := r.bbs.CancelTask(c.ctx, guid); err != nil {
		return err
	}
	return c.say(done{Done: "cancelled", TaskGUID: guid}, "task %s is cancelled, its container stops", guid)
}

// taskDelete takes a COMPLETED task through RESOLVING, as nobody else may be
// dealing with it then.
func taskDelete(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	for _, guid := range c.args {
		t, err := r.bbs.Task(c.ctx, guid)
		if err != nil {
			return fmt.Errorf("%s: %w", guid, err)
		}
		remove := r.bbs.DeleteTask
		if t.State == task.Completed {
			remove = r.bbs.ResolveAndDeleteTask
		}
		if err := remove(c.ctx, guid); err != nil {
			return fmt.Errorf("%s: %w", guid, err)
		}
		if err := c.say(done{Done: "deleted", TaskGUID: guid}, "task %s is deleted", guid); err != nil {
			return err
		}
	}
	return nil
}
