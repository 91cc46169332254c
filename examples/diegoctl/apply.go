package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/intent"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

func applyCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "apply --file FILE", Short: "Make processes and tasks what files say", RunE: p.runs(apply),
		Long: `Make processes and tasks what files say. A file has one LRP, deployment or task,
or several: as a list, or as documents of YAML. First apply shows what differs,
field by field. It hides the values of environment variables, the content of
files, and passwords, and shows all else, such as arguments and URLs. Then it
creates what is missing, updates settings, and rolls out definitions that are
new. An LRP's new definition gets an id made from its content; if the process
still has an equal definition, apply goes back to that. A task that exists is
left alone.

A process whose document has no rollout_policy gets one with --min-healthy, as with
"lrp create".

Nothing is begun unless all files are valid and nothing is refused. If a call
fails later, apply says what was done; the same command does the rest. If
nothing differs, it says so and changes nothing.

With --dry-run nothing changes. It shows what differs, and where new instances
would go: of a rollout, the first ones, beside the old. Like plan, it exits with
1 if anything goes nowhere. Differences alone are not a failure.

With --prune, processes in the domain that no file has are deleted, after all
else. Tasks are not.`,
		Example: `  diegoctl apply -f specs/ --dry-run
  diegoctl apply -f web.yaml -f worker.yaml --wait
  diegoctl apply -f specs/ --domain apps --prune`,
	}, []cli.Flag{
		{Name: "file", Short: "f", Kind: cli.File, Required: true, Many: true,
			Help: "a spec file in YAML or JSON, or a directory of such files; - is standard input; may be repeated"},
		{Name: "dry-run", Kind: cli.Switch, Help: "show what would change and where new instances would go, and change nothing"},
		{Name: "domain", Kind: &cli.Kind{Name: "DOMAIN", Values: p.domainNames()}, Help: "refuse files with anything in another domain"},
		{Name: "prune", Kind: cli.Switch, Help: "delete the processes in the domain of --domain that the files do not have"},
	}, minHealthyFlags, waitFlags)
}

func apply(c *call) error {
	if c.on("prune") && !c.given("domain") {
		return cli.Wrong("--prune deletes what else is in a domain; name the domain with --domain")
	}
	docs, err := c.documents(c.list("file"))
	if err != nil {
		return err
	}
	if c.given("domain") {
		if err := allIn(c.text("domain"), docs); err != nil {
			return err
		}
	}
	for _, d := range docs {
		if d.Process != nil {
			d.Process.Rollout = c.rolloutPolicy(d.Process.Rollout)
		}
	}
	r, err := c.remote()
	if err != nil {
		return err
	}
	intents, err := c.intents(r, docs)
	if err != nil {
		return err
	}
	differing := slices.DeleteFunc(slices.Clone(intents), func(i intent.Intent) bool { return i.Do == intent.Keep })
	if err := c.showIntents(intents, len(differing)); err != nil {
		return err
	}
	if c.on("dry-run") {
		return c.wouldFit(r, differing)
	}
	if err := c.carryOut(r, differing); err != nil {
		return err
	}
	return c.waitForAll(r, intents)
}

// allIn refuses documents of other domains.
func allIn(domain string, docs []specfile.Document) error {
	var errs []error
	for _, d := range docs {
		has := ""
		if d.Task != nil {
			has = d.Task.Domain
		} else {
			has = d.Process.Domain
		}
		if has != domain {
			errs = append(errs, wrongDocument(d, "domain", fmt.Sprintf("%s: want %s, the domain of --domain", has, domain)))
		}
	}
	return errors.Join(errs...)
}

// intents compares the documents with what is there. The error has everything
// that is refused.
func (c *call) intents(r *remote, docs []specfile.Document) (list []intent.Intent, err error) {
	var guids []string
	wanted := map[string]bool{}
	for _, d := range docs {
		if d.Process != nil {
			guids = append(guids, d.Process.ProcessGUID)
			wanted[d.Process.ProcessGUID] = true
		}
	}
	have := map[string]*lrp.Deployment{}
	for some := range slices.Chunk(guids, 1000) {
		for d, err := range r.bbs.Deployments(c.ctx, storage.DeploymentFilter{ProcessGUIDs: some}) {
			if err != nil {
				return nil, err
			}
			have[d.ProcessGUID] = d
		}
	}
	var refused []error
	for _, d := range docs {
		var i intent.Intent
		if d.Task != nil {
			var t *task.Task
			if t, err = r.bbs.Task(c.ctx, d.Task.GUID); err != nil && !errors.Is(err, task.ErrNotFound) {
				return nil, err
			}
			state := ""
			if t != nil {
				state = stateOfTask(t).Text
			}
			i, err = intent.Task(d.Task, t, state)
		} else {
			i, err = intent.Process(d.Process, have[d.Process.ProcessGUID])
		}
		list, refused = append(list, i), append(refused, err)
	}
	if err := errors.Join(refused...); err != nil || !c.on("prune") {
		return list, err
	}
	there, err := collect(r.bbs.SchedulingInfos(c.ctx, storage.DeploymentFilter{Domains: []string{c.text("domain")}}))
	return append(list, intent.Prune(there, wanted)...), err
}

var intentStyles = map[string]show.Style{intent.Create: show.Green, intent.Update: show.Yellow, intent.RollOut: show.Yellow, intent.Delete: show.Red}

func (c *call) showIntents(intents []intent.Intent, differing int) error {
	for n := range intents {
		i := &intents[n]
		if c.Programs {
			if err := c.Emit(i); err != nil {
				return err
			}
			continue
		}
		if err := c.Line(intentStyles[i.Do].Of(i.String())); err != nil {
			return err
		}
		for _, f := range i.Differences {
			if err := c.Line(show.Text("  " + f.String())); err != nil {
				return err
			}
		}
	}
	if c.Programs {
		return nil
	}
	if differing == 0 {
		_, err := fmt.Fprintln(c.Out, "nothing to do")
		return err
	}
	_, err := fmt.Fprintf(c.Out, "to do: %d of %d\n", differing, len(intents))
	return err
}

// wouldFit says where the new instances and tasks would go.
func (c *call) wouldFit(r *remote, intents []intent.Intent) error {
	var items []auction.Item
	for n := range intents {
		more, err := intents[n].Items(c.now())
		if err != nil {
			return err
		}
		items = append(items, more...)
	}
	if len(items) == 0 {
		return nil
	}
	if !c.Programs {
		fmt.Fprintln(c.Out)
	}
	return c.showPlan(r, items)
}

// An unfinishedError says how far apply came.
type unfinishedError struct {
	at         string
	done, left []string
	err        error
}

func (e *unfinishedError) Error() string {
	return fmt.Sprintf("%s: %v\ndone before: %s; not begun: %s\nthe same command does the rest", e.at, e.err, show.Names(e.done), show.Names(e.left))
}

func (e *unfinishedError) Unwrap() error { return e.err }

// carryOut makes the calls of the intents, one after the other.
func (c *call) carryOut(r *remote, intents []intent.Intent) error {
	names := make([]string, len(intents))
	for n := range intents {
		names[n] = intents[n].Name()
	}
	for n := range intents {
		if err := c.carryOutOne(r, &intents[n]); err != nil {
			return &unfinishedError{names[n], names[:n], names[n+1:], err}
		}
	}
	return nil
}

func (c *call) carryOutOne(r *remote, i *intent.Intent) error {
	did, err := i.CarryOut(c.ctx, r.bbs)
	if err != nil {
		return err
	}
	text := i.Name() + " is " + did
	if i.Do == intent.RollOut {
		text += ", to definition " + i.DefinitionID
	}
	return c.Say(done{Done: did, ProcessGUID: i.ProcessGUID, TaskGUID: i.TaskGUID}, "%s", show.Printable(text))
}

// An awaited process or task is one that apply waits for.
type awaited struct {
	name string
	doc  done
	// over is what becomes of it.
	over string
	// look says whether the wait is over, and how things are.
	look func() (over bool, state string, err error)
	last string
}

// waitForAll waits, if --wait says so, until every process runs and every task
// has ended that had not before. It shows each change on the way. It fails if
// such a task fails.
func (c *call) waitForAll(r *remote, intents []intent.Intent) error {
	if !c.on("wait") {
		return nil
	}
	var waiting []*awaited
	failed := false
	for _, i := range intents {
		a := &awaited{name: i.Name(), doc: done{ProcessGUID: i.ProcessGUID, TaskGUID: i.TaskGUID}, over: "running"}
		switch {
		case i.Final():
			continue
		case i.TaskGUID != "":
			a.over = "ended"
			a.look = func() (bool, string, error) {
				t, over, state, err := c.progressOfTask(r, i.TaskGUID)
				if errors.Is(err, task.ErrNotFound) {
					return true, "it is gone, so its result was taken", nil
				}
				if over {
					state = stateOfTask(t).Text
					failed = failed || t.Failed
				}
				if over && t.Failed {
					state += ": " + t.FailureReason
				}
				return over, state, err
			}
		default:
			a.look = c.following(r, i.ProcessGUID)
		}
		waiting = append(waiting, a)
	}
	err := c.until(func() (bool, string, error) {
		var still []*awaited
		var names []string
		for _, a := range waiting {
			over, state, err := a.look()
			if err != nil {
				return false, "", fmt.Errorf("%s: %w", a.name, err)
			}
			if !over {
				still, names = append(still, a), append(names, a.name+": "+state)
			}
			if state == a.last && !over {
				continue
			}
			a.last, a.doc.State, a.doc.Done = state, state, "waiting"
			if over {
				a.doc.Done = a.over
			}
			if err := c.Say(a.doc, "%s: %s", a.name, show.Printable(state)); err != nil {
				return false, "", err
			}
		}
		waiting = still
		return len(waiting) == 0, show.Names(names), nil
	})
	if err == nil && failed {
		return &failedError{}
	}
	return err
}
