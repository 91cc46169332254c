package lrp

import (
	"fmt"
	"slices"
	"strings"
)

// Explain describes the event for people, without the name of the process and
// its index: "placed on cell-1", "crashed: exit status 137 (crash 2, restarts
// at once)". It uses only the event's records and cause, and an instance's
// timeline consists of such texts. The text may change; programs use Kind and
// the records.
func (e Event) Explain() string {
	switch {
	case e.DeploymentBefore != nil || e.DeploymentAfter != nil:
		return explainDeployment(e.DeploymentBefore, e.DeploymentAfter)
	case e.Kind == InstanceCrashed:
		return e.explainCrash()
	case e.Before == nil && e.After == nil:
		return e.Kind.String()
	case e.Before == nil:
		return e.explainCreated()
	case e.After == nil:
		return e.explainRemoved()
	}
	return e.explainChanged()
}

func (e Event) explainCrash() string {
	next := "is not started again"
	if e.After != nil {
		next = fmt.Sprintf("crash %d, restarts at once", e.After.CrashCount)
		if e.After.State == Crashed {
			next = fmt.Sprintf("crash %d, waits before it restarts", e.After.CrashCount)
		}
	}
	return "crashed: " + orUnknown(e.Cause.Detail) + " (" + next + ")"
}

func orUnknown(text string) string {
	if text == "" {
		return "for an unknown reason"
	}
	return text
}

func (e Event) explainCreated() string {
	switch {
	case e.After.Presence == Evacuating:
		return "cell " + e.After.CellID + " is evacuating: runs on until it is replaced"
	case e.After.State != Unclaimed:
		return happened(e.After)
	}
	switch e.Cause.Command {
	case Crash{}.Name(), EvacuateCrashed{}.Name():
		return fmt.Sprintf("waits for a cell after crash %d", e.After.CrashCount)
	case Restart{}.Name():
		return fmt.Sprintf("waits for a cell: the wait after crash %d is over", e.After.CrashCount)
	case MarkSuspect{}.Name():
		return "moved: cell " + e.Cause.Detail + " is missing"
	case EvacuateRunning{}.Name(), EvacuateClaimed{}.Name():
		return "moved: cell " + e.Cause.Detail + " is evacuating"
	case Remove{}.Name(), EvacuateStopped{}.Name():
		return "waits for a cell: the instance on " + e.Cause.Detail + " has ended"
	case Retire{}.Name():
		return "waits for a cell: it was retired"
	case AdvanceRollout{}.Name():
		return "waits for a cell: the rollout of " + e.After.DefinitionID + " has come here"
	}
	return "waits for a cell"
}

func (e Event) explainRemoved() string {
	cell := e.Cause.Detail
	switch e.Cause.Command {
	case Start{}.Name():
		return "replaced by the instance on " + cell
	case Crash{}.Name(), EvacuateCrashed{}.Name():
		return "ended: it crashed"
	case Remove{}.Name(), EvacuateStopped{}.Name(), EvacuateClaimed{}.Name(), RemoveEvacuating{}.Name():
		return "ended on " + cell
	case MarkSuspect{}.Name():
		return "given up: cell " + e.Before.CellID + " is missing"
	case Recover{}.Name():
		return "not needed any more: cell " + cell + " is not missing any more"
	case RemoveSuspect{}.Name():
		return "replaced: cell " + e.Before.CellID + " is missing"
	case Prune{}.Name():
		return "given up: cell " + e.Before.CellID + " is gone, or its evacuation took too long"
	case EvacuateRunning{}.Name():
		return "moved: cell " + cell + " is evacuating"
	case StopExtra{}.Name():
		return "not desired any more"
	case StopOvertaken{}.Name(), AdvanceRollout{}.Name():
		return "not needed any more: another definition is rolled out"
	case Restart{}.Name(), Retire{}.Name():
		return "ended: it starts anew"
	}
	return "ended"
}

func (e Event) explainChanged() string {
	before, after := e.Before, e.After
	switch {
	case before.Presence != after.Presence:
		return "cell " + after.CellID + " " + becameOf(before.Presence, after.Presence)
	case before.Stopping.IsZero() && !after.Stopping.IsZero():
		return "is to stop on " + after.CellID
	case after.State == Unclaimed && before.PlacementError != after.PlacementError:
		return "could not be placed: " + after.PlacementError.String()
	case after.State == Claimed && e.Cause.Detail != "" && e.Cause.Detail != after.CellID: // which is the detail of a claim without a reason
		return happened(after) + ": " + e.Cause.Detail
	case after.State != before.State || after.InstanceKey != before.InstanceKey:
		return happened(after)
	case before.Routable && !after.Routable:
		return "is not ready for traffic"
	case !before.Routable && after.Routable:
		return "is ready for traffic"
	case after.State == Running:
		return "has other addresses on " + after.CellID
	}
	return happened(after)
}

func becameOf(before, after Presence) string {
	switch {
	case after == Suspect:
		return "is missing: a replacement is on its way"
	case after == Evacuating:
		return "is evacuating: runs on until it is replaced"
	case before == Evacuating:
		return "is not evacuating any more"
	}
	return "is not missing any more"
}

// happened says how a record got into its state.
func happened(r *ActualLRP) string {
	switch r.State {
	case Claimed:
		return "placed on " + r.CellID
	case Running:
		return "runs on " + r.CellID
	case Crashed:
		return fmt.Sprintf("waits before it restarts after crash %d", r.CrashCount)
	}
	return "waits for a cell"
}

func countInstances(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// explainRollout describes what happened to one rollout.
func explainRollout(before, after RolloutState) (parts []string) {
	for _, c := range []struct {
		happened bool
		text     string
	}{
		{before.Paused == NotPaused && after.Paused != NotPaused, "rollout paused"},
		{before.Paused != NotPaused && after.Paused == NotPaused && after.From != "", "rollout resumed"},
		{!before.Proved && after.Proved, "the canary proved healthy"},
		{!before.Confirmed && after.Confirmed, "the canary is confirmed"},
	} {
		if c.happened {
			parts = append(parts, c.text)
		}
	}
	return parts
}

func (f *RolloutFailure) explain() string {
	if f.Kind == RolloutAborted {
		return "the rollout of " + f.DefinitionID + " was aborted"
	}
	return "definition " + f.DefinitionID + " failed: " + f.String()
}

func explainDeployment(before, after *Deployment) string {
	switch {
	case after == nil:
		return "deleted"
	case before == nil:
		return fmt.Sprintf("desired: %s of definition %s", countInstances(after.Instances), after.ActiveDefinitionID)
	}
	var parts []string
	if before.Instances != after.Instances {
		parts = append(parts, fmt.Sprintf("scaled from %s to %d", countInstances(before.Instances), after.Instances))
	}
	if before.ActiveDefinitionID != after.ActiveDefinitionID {
		parts = append(parts, "rollout from definition "+before.ActiveDefinitionID+" to "+after.ActiveDefinitionID)
	}
	switch f, earlier := after.RolloutState.Failure, before.RolloutState.Failure; {
	case f != nil && (earlier == nil || *f != *earlier):
		parts = append(parts, f.explain())
	case before.HealthyDefinitionID != after.HealthyDefinitionID:
		parts = append(parts, "definition "+after.HealthyDefinitionID+" proved healthy")
	}
	if before.ActiveDefinitionID == after.ActiveDefinitionID {
		parts = append(parts, explainRollout(before.RolloutState, after.RolloutState)...)
	}
	dropped := slices.DeleteFunc(before.DefinitionIDs(), func(id string) bool {
		_, kept := after.Definitions[id]
		return kept
	})
	if len(dropped) > 0 {
		parts = append(parts, "dropped definition "+strings.Join(dropped, ", "))
	} else if before.RolloutState.From != "" && after.RolloutState.IsZero() && len(parts) == 0 {
		parts = append(parts, "the rollout has ended")
	}
	if len(parts) == 0 {
		return "updated"
	}
	return strings.Join(parts, "; ")
}
