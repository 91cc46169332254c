package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/difference"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// This file has the commands about the history of a deployment.

func historyCommands(p *process) []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "history GUID", Short: "List which definitions were active, and what became of them", RunE: p.asks(deploymentHistory),
			Long: `List which definitions of a deployment were active, and what became of them. A
revision is a time during which one definition was active. DONE says how many
instances ran only that definition at its end, or do now. The control plane keeps
some revisions before the active one, with their definitions.`,
			ValidArgsFunction: cli.Completes(p.processGUIDs(), nil),
		},
		{
			Use: "diff GUID A [B]", Short: "Show how two definitions differ", RunE: p.asks(deploymentDiff),
			Long: `Show how two definitions of a deployment differ, field by field. A and B are
numbers of revisions or definition ids; without B it is the active definition.
The values of environment variables and the content of files are hidden.`,
			Example:           "  diegoctl deployment diff web 3",
			ValidArgsFunction: cli.Completes(p.processGUIDs(), p.revisions(), p.revisions(), nil),
		},
		cli.With(&cobra.Command{
			Use: "rollback GUID [REVISION]", Short: "Roll out the definition of an earlier revision", RunE: p.asks(deploymentRollback),
			Long: `Roll out the definition of an earlier revision. Without REVISION it is the newest
one before the active one that proved healthy, was not given up, and has another
definition. It is a rollout like any other: the rollout_policy holds. To go to
a definition by its id, see "deployment activate".`,
			Example:           "  diegoctl deployment rollback web --wait",
			ValidArgsFunction: cli.Completes(p.processGUIDs(), p.revisions(), nil),
		}, waitFlags),
		cli.With(&cobra.Command{
			Use: "restart GUID", Short: "Replace every instance by a new one", RunE: p.asks(deploymentRestart),
			Long: `Replace every instance of a process by a new one. The active definition gets
a new id and is rolled out under that id, so the rollout_policy and the budget for
disruptions hold, and it can be paused and aborted. A file that names the former
definition_id leads back to that id when it is applied.`,
			ValidArgsFunction: cli.Completes(p.processGUIDs(), nil),
		}, waitFlags),
	}
}

// revisions completes with the numbers of a deployment's revisions.
func (p *process) revisions() cli.Values {
	return p.among(func(c *call, r *remote) (list []string) {
		revisions, _ := r.bbs.Revisions(c.ctx, c.arg(0))
		for _, v := range revisions {
			list = append(list, strconv.Itoa(v.Number))
		}
		return list
	})
}

var beganTexts = map[lrp.RevisionBegin]string{
	lrp.BeganUnknown: "-", lrp.BeganCreated: "created", lrp.BeganUpdated: "updated", lrp.BeganActivated: "activated",
	lrp.BeganRolledBack: "rolled back", lrp.BeganRestarted: "restarted",
}

// becameText says what became of a revision.
func becameText(r *lrp.Revision) string {
	paused := ""
	if r.Failure != nil {
		paused = fmt.Sprintf(", paused: %v", r.Failure)
	}
	switch r.End {
	case lrp.RevisionActive:
		return "active" + paused
	case lrp.RevisionReplaced:
		return "ran until it was replaced"
	case lrp.RevisionSuperseded:
		return "overtaken by the next one" + paused
	case lrp.RevisionGivenUp:
		return fmt.Sprintf("given up: %v", r.Failure)
	}
	return "replaced by a control plane that keeps no history"
}

func deploymentHistory(c *call, r *remote) error {
	list, err := r.bbs.Revisions(c.ctx, c.arg(0))
	if err != nil {
		return err
	}
	v := &show.View{Heading: []string{"REVISION", "DEFINITION", "BEGAN", "AGE", "BY", "DONE", "WHAT BECAME OF IT"}}
	for i := range list {
		r := &list[i]
		reached := fmt.Sprintf("%d of %d", r.Done, r.Desired)
		if r.End == lrp.RevisionLost {
			reached = "-"
		}
		v.Add(r, show.Text(strconv.Itoa(r.Number)), show.Text(r.DefinitionID), show.Text(beganTexts[r.Began]), show.Text(show.Age(c.now(), r.BeganAt)),
			show.Text(show.OrDash(r.By)), show.Text(reached), show.Text(becameText(r)))
	}
	return c.Show(v)
}

// A definitionName names a definition for programs.
type definitionName struct {
	Revision     int    `json:"revision"`
	DefinitionID string `json:"definition_id"`
}

func (n definitionName) String() string {
	return fmt.Sprintf("revision %d (%s)", n.Revision, n.DefinitionID)
}

// A definitionDiff is what differs between two definitions, for programs.
type definitionDiff struct {
	ProcessGUID string             `json:"process_guid"`
	Before      definitionName     `json:"before"`
	After       definitionName     `json:"after"`
	Differences []difference.Field `json:"differences"`
}

func deploymentDiff(c *call, r *remote) error {
	guid := c.arg(0)
	list, err := r.bbs.Revisions(c.ctx, guid)
	if err != nil {
		return err
	}
	before, err := revisionOf(guid, list, c.arg(1))
	if err != nil {
		return err
	}
	after := &list[len(list)-1]
	if c.arg(2) != "" {
		if after, err = revisionOf(guid, list, c.arg(2)); err != nil {
			return err
		}
	}
	doc := definitionDiff{ProcessGUID: guid, Before: definitionName{before.Number, before.DefinitionID}, After: definitionName{after.Number, after.DefinitionID}}
	if doc.Differences, err = difference.Of(before.Definition, after.Definition); err != nil {
		return err
	}
	if c.Programs {
		return c.Emit(doc)
	}
	if len(doc.Differences) == 0 {
		return c.Line(show.Text(fmt.Sprintf("%s: %v and %v are the same", guid, doc.Before, doc.After)))
	}
	if err := c.Line(show.Text(fmt.Sprintf("%s: from %v to %v", guid, doc.Before, doc.After))); err != nil {
		return err
	}
	for _, f := range doc.Differences {
		if err := c.Line(show.Text("  " + f.String())); err != nil {
			return err
		}
	}
	return nil
}

// revisionOf finds a revision by its number, or else the newest one of
// a definition. It has its definition.
func revisionOf(guid string, list []lrp.Revision, name string) (*lrp.Revision, error) {
	i := slices.IndexFunc(list, func(r lrp.Revision) bool { return strconv.Itoa(r.Number) == name })
	for newest := len(list) - 1; i < 0 && newest >= 0; newest-- {
		if list[newest].DefinitionID == name {
			i = newest
		}
	}
	switch {
	case i < 0:
		return nil, fmt.Errorf("%s: the revision %q, by its number or definition, is %w; diegoctl deployment history %s lists all", guid, name, storage.ErrNotFound, guid)
	case list[i].Definition == nil:
		return nil, fmt.Errorf("%s: the definition of revision %d is %w: a control plane that keeps no history has dropped it", guid, list[i].Number, storage.ErrNotFound)
	}
	return &list[i], nil
}

func deploymentRollback(c *call, r *remote) error {
	guid := c.arg(0)
	if c.arg(1) != "" && c.argNumber(1) == 0 {
		return cli.Wrong("REVISION is %q; revisions count from 1, and without one it is the newest that proved healthy", c.arg(1))
	}
	if err := r.bbs.RollBack(c.ctx, guid, c.argNumber(1)); err != nil {
		return err
	}
	return c.rollsOut(r, guid, "rolled back", "%s goes back to definition %s")
}

func deploymentRestart(c *call, r *remote) error {
	guid := c.arg(0)
	if err := r.bbs.RestartDeployment(c.ctx, guid); err != nil {
		return err
	}
	return c.rollsOut(r, guid, "restarted", "%s restarts, as definition %s")
}

// rollsOut says to which definition a process is moving now, and waits if
// --wait says so.
func (c *call) rollsOut(r *remote, guid, what, says string) error {
	d, err := r.bbs.Deployment(c.ctx, guid)
	if err != nil {
		return err
	}
	if err := c.Say(done{Done: what, ProcessGUID: guid}, says, guid, d.ActiveDefinitionID); err != nil {
		return err
	}
	return c.waitForInstances(guid)
}
