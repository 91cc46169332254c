package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/difference"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

func deploymentCommands(p *process) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "deployment", Short: "Processes with definitions that roll out"}, append(historyCommands(p),
		cli.With(&cobra.Command{
			Use: "create --file FILE", Short: "Desire a process with a definition that you name", RunE: p.runs(deploymentCreate),
		}, fileFlags("a deployment's definition"), minHealthyFlags, waitFlags),
		cli.With(&cobra.Command{
			Use: "update --file FILE", Short: "Make a deployment what a file says", RunE: p.runs(deploymentUpdate),
			Long: `Make a deployment what a file says. A definition_id that the deployment does
not have yet begins a rollout to that definition, one instance after the other.
A definition itself never changes. What was made with lrp create is a deployment
too.`,
			Example: "  diegoctl deployment update -f deployment.json --wait",
		}, fileFlags("a deployment's definition"), minHealthyFlags, waitFlags),
		cli.With(&cobra.Command{
			Use: "activate GUID DEFINITION", Short: "Roll out a definition that the deployment or its history has",
			RunE: p.asks(deploymentActivate), ValidArgsFunction: cli.Completes(p.processGUIDs(), p.definitionIDs(), nil),
		}, waitFlags),
		p.rolloutCommand("pause", "Keep a rollout from changing an instance", `Keep a rollout from changing an instance, until it is resumed or aborted.
Instances that crash start again meanwhile, from the healthy definition.`, func(d *lrp.Deployment) string {
			return d.ProcessGUID + " is paused"
		}, bbs.API.PauseRollout),
		p.rolloutCommand("resume", "Let a paused rollout go on", `Let a paused rollout go on. If it was paused because its definition has failed,
the definition gets another chance.`, func(d *lrp.Deployment) string {
			if d.RolloutState.Paused == lrp.NotPaused {
				return d.ProcessGUID + " was not paused, and goes on"
			}
			return d.ProcessGUID + " goes on"
		}, bbs.API.ResumeRollout),
		p.rolloutCommand("confirm", "Let a rollout go beyond its canary", `Let a rollout go beyond its canary: see canary in the rollout_policy of the
deployment.`, func(d *lrp.Deployment) string { return d.ProcessGUID + " goes on beyond its canary" }, bbs.API.ConfirmRollout),
		p.rolloutCommand("abort", "Go back to the definition from which a rollout began", `Go back to the definition from which a rollout began. It becomes active again,
and instances go back to it as they have come: one after the other.`, func(d *lrp.Deployment) string {
			if d.RolloutState.From == "" {
				return d.ProcessGUID + ": " + failureText(d) // already
			}
			return fmt.Sprintf("%s goes back to definition %s", d.ProcessGUID, d.RolloutState.From)
		}, bbs.API.AbortRollout),
		cli.With(&cobra.Command{
			Use: "list", Short: "List processes and which definitions they have, without the definitions", RunE: p.asks(deploymentList),
			Long: "List processes and which definitions they have, without the definitions. It costs\nless than lrp list. With -o json it has all that a sync compares.",
		}, p.domainFlags(), p.selectorFlags("processes"), watchFlags),
		cli.With(&cobra.Command{
			Use: "status GUID", Short: "Show the progress of a rollout, and what holds it up", RunE: p.asks(deploymentStatusOf), ValidArgsFunction: cli.Completes(p.processGUIDs(), nil),
		}, watchFlags),
	)...)
}

// rolloutCommand makes a command that asks the BBS for something about a
// rollout. says is what it says then, given the deployment as it was before.
func (p *process) rolloutCommand(name, short, long string, says func(*lrp.Deployment) string, ask func(bbs.API, context.Context, string) error) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: name + " GUID", Short: short, Long: long, ValidArgsFunction: cli.Completes(p.processGUIDs(), nil),
		RunE: p.asks(func(c *call, r *remote) error {
			guid := c.arg(0)
			before, err := r.bbs.Deployment(c.ctx, guid)
			if err != nil {
				return err
			}
			if err := ask(r.bbs, c.ctx, guid); err != nil {
				return err
			}
			return c.Say(done{Done: name, ProcessGUID: guid}, "%s", says(before))
		}),
	})
}

func deploymentList(c *call, r *remote) error {
	v := &show.View{Heading: []string{"PROCESS", "DOMAIN", "INSTANCES", "ACTIVE", "HEALTHY", "DEFINITIONS", "AGE"}, Empty: "nothing is desired"}
	for i, err := range r.bbs.SchedulingInfos(c.ctx, c.processes()) {
		if err != nil {
			return err
		}
		v.Add(i, show.Text(i.ProcessGUID), show.Text(i.Domain), show.Text(strconv.Itoa(i.Instances)), show.Text(i.ActiveDefinitionID),
			show.Text(show.OrDash(i.HealthyDefinitionID)), show.Text(strings.Join(i.DefinitionIDs, ", ")), show.Text(show.Age(c.now(), i.ModificationTag.Created())))
	}
	return c.Show(v)
}

func deploymentCreate(c *call) error {
	d, err := spec(c, specfile.Deployment)
	if err != nil {
		return err
	}
	d.Rollout = c.rolloutPolicy(d.Rollout)
	r, err := c.remote()
	if err != nil {
		return err
	}
	if err := r.bbs.CreateDeployment(c.ctx, d); err != nil {
		return err
	}
	if err := c.Say(done{Done: "created", ProcessGUID: d.ProcessGUID}, "%s is desired, %s of definition %s", d.ProcessGUID, show.Count(d.Instances, "instance"), d.DefinitionID); err != nil {
		return err
	}
	return c.waitForInstances(d.ProcessGUID)
}

// deploymentUpdate makes a deployment what the file says. A definition id that
// the deployment does not have yet begins a rollout.
func deploymentUpdate(c *call) error {
	want, err := spec(c, specfile.Deployment)
	if err != nil {
		return err
	}
	r, err := c.remote()
	if err != nil {
		return err
	}
	d, err := r.bbs.Deployment(c.ctx, want.ProcessGUID)
	if err != nil {
		return err
	}
	if d.Domain != want.Domain || d.UpdateStrategy != want.UpdateStrategy {
		return &lrp.RefusedError{ProcessGUID: d.ProcessGUID, Why: fmt.Sprintf(
			"its domain is %s and its update strategy %s, and they cannot change; delete it and create it anew", d.Domain, d.UpdateStrategy)}
	}
	want.Rollout = c.rolloutPolicy(want.Rollout)
	u := lrp.UpdateSettings(want.Settings)
	have, known := d.Definitions[want.DefinitionID]
	switch {
	case !known:
		u.DefinitionID, u.Definition = &want.DefinitionID, &want.Definition
	case !difference.None(have, want.Definition):
		return &lrp.RefusedError{ProcessGUID: d.ProcessGUID, Why: fmt.Sprintf(
			"definition %s is another one already, and definitions never change; give the new one another definition_id", want.DefinitionID)}
	case d.ActiveDefinitionID != want.DefinitionID:
		return &lrp.RefusedError{ProcessGUID: d.ProcessGUID, Why: fmt.Sprintf(
			"it has definition %[2]s already, which is not the active one; diegoctl deployment activate %[1]s %[2]s makes it so", d.ProcessGUID, want.DefinitionID)}
	}
	return c.update(want.ProcessGUID, u, "updated")
}

func deploymentActivate(c *call, r *remote) error {
	guid, id := c.arg(0), c.arg(1)
	if err := r.bbs.ActivateDefinition(c.ctx, guid, id); err != nil {
		return err
	}
	if err := c.Say(done{Done: "activated", ProcessGUID: guid}, "%s goes to definition %s", guid, id); err != nil {
		return err
	}
	return c.waitForInstances(guid)
}

// A deploymentStatus is how far a rollout is, for programs.
type deploymentStatus struct {
	ProcessGUID         string           `json:"process_guid"`
	ActiveDefinitionID  string           `json:"active_definition_id"`
	HealthyDefinitionID string           `json:"healthy_definition_id"`
	Instances           int              `json:"instances"`
	Complete            bool             `json:"complete"`
	Done                int              `json:"done"`
	Stalled             int              `json:"stalled"`
	Pending             int              `json:"pending"`
	Proving             int              `json:"proving,omitempty"`
	Stopping            int              `json:"stopping,omitempty"`
	HeldBy              *int             `json:"held_by,omitempty"`
	Unavailable         int              `json:"unavailable"`
	MaxUnavailable      int              `json:"max_unavailable"`
	WaitsFor            lrp.RolloutWait  `json:"waits_for,omitempty"`
	RolloutState        lrp.RolloutState `json:"rollout_state,omitzero"`
	// Unplaced is the first new instance that no cell has room for.
	Unplaced lrp.Unplaced `json:"unplaced,omitzero"`
	// Waiting are the desired instances of the active definition of which it is
	// known why they do not serve.
	Waiting     []waitingInstance  `json:"waiting,omitempty"`
	Definitions []definitionStatus `json:"definitions"`
}

// A definitionStatus counts the instances of a definition.
type definitionStatus struct {
	ID      string `json:"definition_id"`
	Running int    `json:"running"`
	Others  int    `json:"others"`
}

// available counts the desired indices that have an available instance.
func available(d *lrp.Deployment, list []lrp.ActualLRP) int {
	indices := map[int]bool{}
	for i := range list {
		if a := &list[i]; d.Desires(a.Index) && d.Available(a) {
			indices[a.Index] = true
		}
	}
	return len(indices)
}

func deploymentStatusOf(c *call, r *remote) error {
	d, err := r.bbs.Deployment(c.ctx, c.arg(0))
	if err != nil {
		return err
	}
	status, err := r.bbs.RolloutStatus(c.ctx, d.ProcessGUID)
	if err != nil {
		return err
	}
	list, err := collect(r.bbs.ActualLRPs(c.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{d.ProcessGUID}}))
	if err != nil {
		return err
	}
	doc := deploymentStatus{
		ProcessGUID: d.ProcessGUID, ActiveDefinitionID: d.ActiveDefinitionID, HealthyDefinitionID: d.HealthyDefinitionID,
		Instances: d.Instances, Complete: status.Complete(), Done: status.Done, Stalled: status.Stalled, Pending: status.Pending, Proving: status.Proving, Stopping: status.Stopping,
		WaitsFor: status.WaitsFor, RolloutState: d.RolloutState, Unplaced: status.Unplaced,
	}
	// A deployment of one definition has nothing to roll out.
	about, first, heldBy := "rollout", len(d.Definitions) == 1, -1 // what the text is about
	rollout := fmt.Sprintf("%d of %d done", status.Done, d.Instances)
	if status.Stopping > 0 {
		rollout += fmt.Sprintf(", %d more once what is replaced has stopped", status.Stopping)
	}
	if first {
		about, rollout = "running", fmt.Sprintf("%d of %d", status.Done+status.Proving, d.Instances)
	}
	switch {
	case first && status.Done+status.Proving == d.Instances:
		rollout = show.Count(d.Instances, "instance")
	case status.Complete():
		rollout = fmt.Sprintf("complete, %s", show.Count(d.Instances, "instance"))
	case status.WaitsFor == lrp.WaitConfirmed:
		rollout += ", waits for the canary to be confirmed or aborted"
	case status.WaitsFor == lrp.WaitResumed:
		rollout += ", paused until it is resumed or aborted"
	case status.HeldBy >= 0:
		held := status.HeldBy
		if i := slices.IndexFunc(list, func(a lrp.ActualLRP) bool { return a.State != lrp.Running }); first && i >= 0 {
			held = list[i].Index
		}
		rollout += fmt.Sprintf(", waits for instance %d", held)
		heldBy = held
	}
	if status.HeldBy >= 0 {
		doc.HeldBy = &status.HeldBy
	}
	doc.Waiting = waitingInstances(d, list, heldBy)
	var others [][2]string
	for _, w := range doc.Waiting {
		if w.Index == heldBy {
			rollout += ": " + w.Why
		} else {
			others = append(others, [2]string{"instance " + strconv.Itoa(w.Index), w.Why})
		}
	}
	if more := len(others) - show.Some; more > 0 {
		others = append(others[:show.Some], [2]string{"instances", fmt.Sprintf("%d more wait", more)})
	}
	if status.Stalled > 0 {
		rollout += fmt.Sprintf(", %d given up for now", status.Stalled)
	}
	v := &show.View{Heading: []string{"DEFINITION", "RUNNING", "OTHERS", "ROLE"}, About: [][2]string{{"process", d.ProcessGUID}, {about, rollout}}}
	v.About = append(append(v.About, others...), [2]string{"changed", "version " + strconv.FormatInt(d.ModificationTag.Index, 10)})
	doc.Unavailable, doc.MaxUnavailable = d.Instances-available(d, list), d.MaxUnavailable()
	if d.Disruption != nil {
		v.About = append(v.About, [2]string{"budget", fmt.Sprintf("%d of %d without a ready instance, at most %d by disruptions", doc.Unavailable, d.Instances, doc.MaxUnavailable)})
	}
	if d.RolloutState.Failure != nil {
		v.About = append(v.About, [2]string{"trouble", failureText(d)})
	}
	for _, id := range d.DefinitionIDs() {
		s := definitionStatus{ID: id}
		for i := range list {
			switch a := &list[i]; {
			case a.DefinitionID != id:
			case a.State == lrp.Running && a.Stopping.IsZero():
				s.Running++
			default:
				s.Others++
			}
		}
		doc.Definitions = append(doc.Definitions, s)
		role := ""
		switch {
		case id == d.ActiveDefinitionID && id == d.HealthyDefinitionID:
			role = "active, healthy"
		case id == d.ActiveDefinitionID:
			role = "active, not proved healthy yet"
		case id == d.HealthyDefinitionID:
			role = "healthy: what instances restart from"
		}
		v.Add(s, show.Text(id), show.Text(strconv.Itoa(s.Running)), show.Text(strconv.Itoa(s.Others)), show.Text(role))
	}
	v.Doc = doc
	return c.Show(v)
}
