package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

func taskCommands(p *process) *cobra.Command {
	guid := cli.Completes(p.taskGUIDs(), nil)
	return cli.Group(&cobra.Command{Use: "task", Short: "Tasks, which run once"},
		cli.With(&cobra.Command{
			Use: "run --file FILE", Short: "Run a task", RunE: p.runs(taskRun),
			Long:    "Run a task. With --wait it shows the task when it has ended, and exits with 1 if it failed.",
			Example: "  diegoctl task run -f task.json --wait",
		}, fileFlags("a task"), []cli.Flag{{Name: "guid", Kind: &cli.Kind{Name: "GUID"}, Help: "its guid, instead of the file's"}}, waitFlags),
		cli.With(&cobra.Command{
			Use: "get GUID", Short: "Show a task and its result", RunE: p.asks(taskGet), ValidArgsFunction: guid,
		}, watchFlags),
		cli.With(&cobra.Command{Use: "list", Short: "List tasks", RunE: p.asks(taskList)}, p.domainFlags(), p.cellFlags(), p.selectorFlags("tasks"), []cli.Flag{
			{Name: "state", Kind: cli.OneOf("STATE", "PENDING", "RUNNING", "COMPLETED", "RESOLVING"), Many: true, Help: "only those in this state; may be repeated"},
		}, watchFlags),
		&cobra.Command{Use: "cancel GUID", Short: "End a task as failed", RunE: p.asks(taskCancel), ValidArgsFunction: guid},
		&cobra.Command{
			Use: "delete GUID...", Short: "Remove tasks that have ended", RunE: p.asks(taskDelete), ValidArgsFunction: cli.Completes(p.taskGUIDs()),
			Long: `Remove tasks that have ended. Cancel a task first that still runs. A task that
its owner has begun to resolve is refused unless it is RESOLVING.`,
		},
	)
}

func taskRun(c *call) error {
	t, err := spec(c, specfile.Task)
	if err != nil {
		return err
	}
	if guid := c.text("guid"); guid != "" {
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
		return c.Say(done{Done: "created", TaskGUID: t.GUID}, "task %s is desired", t.GUID)
	}
	var last *task.Task
	err = c.until(func() (ended bool, state string, err error) {
		last, ended, state, err = c.progressOfTask(r, t.GUID)
		return ended, state, err
	})
	if err != nil {
		return err
	}
	if err := c.Show(c.aboutTask(last)); err != nil {
		return err
	}
	if last.Failed {
		return &failedError{}
	}
	return nil
}

func taskGet(c *call, r *remote) error {
	t, err := r.bbs.Task(c.ctx, c.arg(0))
	if err != nil {
		return err
	}
	return c.Show(c.aboutTask(t))
}

func (c *call) aboutTask(t *task.Task) *show.View {
	v := &show.View{Doc: t}
	add := v.AddAbout
	add("task", t.GUID)
	add("domain", t.Domain)
	add("state", stateOfTask(t).Text)
	add("cell", t.CellID)
	add("container", t.InstanceGUID)
	add("failure", t.FailureReason)
	add("result", t.Result)
	if t.RejectionCount > 0 {
		add("rejected", fmt.Sprintf("%s, last: %s", show.Count(t.RejectionCount, "time"), t.RejectionReason))
	}
	add("size", sizeOf(t.Resources))
	add("root fs", t.RootFS)
	add("action", actionText(t.Action))
	add("result file", t.ResultFile)
	add("callback", t.CompletionCallbackURL)
	add("annotation", t.Annotation)
	add("labels", labelText(t.Labels))
	add("age", show.Age(c.now(), t.CreatedAt))
	return v
}

func taskList(c *call, r *remote) error {
	f := storage.TaskFilter{CellIDs: c.list("cell"), Domains: c.list("domain"), Selector: c.selector()}
	for _, name := range c.list("state") {
		var s task.State
		if err := s.UnmarshalText([]byte(name)); err != nil {
			return err
		}
		f.States = append(f.States, s)
	}
	v := &show.View{Heading: []string{"TASK", "DOMAIN", "STATE", "CELL", "AGE", "REJECTED", "RESULT"}, Empty: "there is no task"}
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
		v.Add(t, show.Text(t.GUID), show.Text(t.Domain), stateOfTask(t), show.Text(show.OrDash(t.CellID)), show.Text(show.Age(c.now(), t.CreatedAt)),
			show.Text(strconv.Itoa(t.RejectionCount)), show.Text(show.Cut(outcome, 200)))
	}
	return c.Show(v)
}

func stateOfTask(t *task.Task) show.Cell {
	s := show.Yellow.Of(t.State.String())
	switch {
	case t.State == task.Completed && t.Failed, t.State == task.Resolving && t.Failed:
		s = show.Red.Of(s.Text + ", failed")
	case t.State == task.Completed, t.State == task.Resolving:
		s = show.Green.Of(s.Text + ", succeeded")
	}
	return s
}

func taskCancel(c *call, r *remote) error {
	guid := c.arg(0)
	if err := r.bbs.CancelTask(c.ctx, guid); err != nil {
		return err
	}
	return c.Say(done{Done: "cancelled", TaskGUID: guid}, "task %s is cancelled, its container stops", guid)
}

// taskDelete takes a COMPLETED task through RESOLVING, because nobody else may
// be dealing with it then.
func taskDelete(c *call, r *remote) error {
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
		if err := c.Say(done{Done: "deleted", TaskGUID: guid}, "task %s is deleted", guid); err != nil {
			return err
		}
	}
	return nil
}
