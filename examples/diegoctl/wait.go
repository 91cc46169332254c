package main

import (
	"cmp"
	"fmt"

	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// This file has what --wait waits for.

// waitForInstances waits, if --wait says so, until every instance runs the
// active definition and there are no others: see following.
func (c *call) waitForInstances(guid string) error {
	if !c.on("wait") {
		return nil
	}
	r, err := c.remote()
	if err != nil {
		return err
	}
	says, look := "", c.following(r, guid)
	if err := c.until(func() (done bool, state string, err error) {
		done, says, err = look()
		return done, says, err
	}); err != nil {
		return err
	}
	return c.Say(done{Done: "running", ProcessGUID: guid}, "%s %s", guid, says)
}

// following returns a look whether every instance of a process runs the
// definition that was active at the first look, and whether there are no others.
// A first definition has nothing to replace, so its instances need not have
// proved healthy. It is also done, and says so, when the rollout waits for
// somebody. The error is that of a rollout that has failed.
func (c *call) following(r *remote, guid string) func() (done bool, state string, err error) {
	wanted := ""
	return func() (done bool, state string, err error) {
		d, err := r.bbs.Deployment(c.ctx, guid)
		if err != nil {
			return false, "", err
		}
		wanted = cmp.Or(wanted, d.ActiveDefinitionID)
		if f := d.RolloutState.Failure; f != nil && f.DefinitionID == wanted {
			return false, "", fmt.Errorf("%s: %s", guid, failureText(d))
		}
		status, err := r.bbs.RolloutStatus(c.ctx, guid)
		if err != nil {
			return false, "", err
		}
		list, err := collect(r.bbs.ActualLRPs(c.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}))
		if err != nil {
			return false, "", err
		}
		switch status.WaitsFor {
		case lrp.WaitConfirmed:
			return true, fmt.Sprintf("waits for its canary to be confirmed; diegoctl deployment confirm %s lets it go on", guid), nil
		case lrp.WaitResumed:
			return true, fmt.Sprintf("is paused; diegoctl deployment resume %s lets it go on", guid), nil
		}
		if len(list) == d.Instances && (status.Complete() || len(d.Definitions) == 1 && status.Done+status.Proving == d.Instances) {
			return true, "runs", nil
		}
		state = fmt.Sprintf("%d of %d run", status.Done+status.Stopping, d.Instances)
		if old := len(list) - d.Instances; status.Done+status.Stopping == d.Instances && old > 0 {
			state += "; " + show.Count(old, "old instance") + " to stop"
		}
		waiting := waitingInstances(d, list, status.HeldBy)
		if len(waiting) > 0 {
			state += fmt.Sprintf("; instance %d: %s", waiting[0].Index, waiting[0].Why)
		}
		if more := len(waiting) - 1; more > 0 {
			state += fmt.Sprintf("; %d more wait", more)
		}
		return false, state, nil
	}
}

// failureText says why the last rollout has failed, and what to do.
func failureText(d *lrp.Deployment) string {
	f := d.RolloutState.Failure
	if d.RolloutState.Paused == lrp.PausedByFailure {
		return fmt.Sprintf("the rollout of %s is paused: %s; diegoctl deployment resume %[3]s tries again, diegoctl deployment abort %[3]s goes back to %s",
			f.DefinitionID, f, d.ProcessGUID, d.RolloutState.From)
	}
	return fmt.Sprintf("the rollout of %s was given up: %s; %s is active again", f.DefinitionID, f, d.ActiveDefinitionID)
}

// A waitingInstance is one that a rollout waits for, or has given up for now.
type waitingInstance struct {
	Index int    `json:"index"`
	Why   string `json:"why"`
}

// waitingInstances are the desired instances of the active definition of which
// it is known why they do not serve, such as that a resource is short. That a
// running instance has still to prove healthy is said of the one that holds the
// rollout up.
func waitingInstances(d *lrp.Deployment, list []lrp.ActualLRP, heldBy int) (waiting []waitingInstance) {
	for i := range list {
		a := &list[i]
		if a.DefinitionID != d.ActiveDefinitionID || !d.Desires(a.Index) {
			continue
		}
		why := troubleOf(a)
		switch {
		case why == "" && !a.Stopping.IsZero():
			why = "it was told to stop, and starts again when it has ended"
		case why != "" || a.Index != heldBy || a.State != lrp.Running:
		case !a.Routable:
			why = "it runs, and is not ready for traffic"
		case d.Rollout != nil:
			why = fmt.Sprintf("it must have been healthy for %v", d.Rollout.MinHealthy)
		}
		if why != "" {
			waiting = append(waiting, waitingInstance{a.Index, why})
		}
	}
	return waiting
}

// progressOfTask looks whether a task has ended.
func (c *call) progressOfTask(r *remote, guid string) (t *task.Task, ended bool, state string, err error) {
	if t, err = r.bbs.Task(c.ctx, guid); err != nil {
		return nil, false, "", err
	}
	state = "the task is " + t.State.String()
	if t.RejectionReason != "" {
		state += ": " + t.RejectionReason
	}
	return t, t.State == task.Completed || t.State == task.Resolving, state, nil
}
