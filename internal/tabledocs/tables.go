package tabledocs

import (
	"fmt"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/task"
)

func tables() []table {
	return []table{lrpTable(), evacuationTable(), evacuationCallsTable(), taskTable(), taskStates(), callbackTable(), containerStates(), rolloutTable()}
}

const situations = "α is the container's own instance on this cell, ω any other holder."

func origin(added bool, section string) string {
	if added {
		return "added"
	}
	return section
}

func lrpTable() table {
	t := table{
		name: "rep-lrp", title: "LRPs on a cell", source: "rep.DecideLRP",
		intro: "What a cell that operates normally does about a container and the record at its index. " + situations +
			" A start also removes the evacuating or suspect record that it replaces. Rows that the specification leaves out are added.",
		head: []string{"container", "ActualLRP", "action", "odds", "reason", "origin"},
	}
	failed := rep.LRPRunFailed()
	t.intro += fmt.Sprintf(" If the container cannot be run (`rep.LRPRunFailed`): %s; %s.", failed.Action(), failed.Reason)
	for c := range rep.ContainerSituation(rep.ContainerSituations) {
		for l := range rep.LRPSituation(rep.LRPSituations) {
			r := rep.DecideLRP(c, l)
			t.rows = append(t.rows, []string{c.String(), l.String(), r.Action(), r.Odds.String(), r.Reason, origin(r.Added, "000 §Harmonizing ActualLRPs")})
		}
	}
	return t
}

func evacuationTable() table {
	t := table{
		name: "evacuation-running", title: "Evacuation of a RUNNING container", source: "lrp.EvacuationRule",
		intro: "What becomes of a RUNNING container on an evacuating cell and of the records at its index. " +
			"α is that container's instance, ω any other holder, β an instance that another cell evacuates, ε a placement error. " +
			"Evacuating records live for the evacuation timeout. The container stays unless the action says otherwise.",
		head: []string{"ordinary", "evacuating", "action", "odds", "reason", "origin"},
	}
	for o := range lrp.OrdinarySituation(lrp.OrdinarySituations) {
		for e := range lrp.EvacuatingSituation(lrp.EvacuatingSituations) {
			r := lrp.EvacuationRule(o, e)
			t.rows = append(t.rows, []string{o.String(), e.String(), r.Action(), r.Odds.String(), r.Reason, origin(r.Added, "000 §Harmonizing During Evacuation")})
		}
	}
	return t
}

func evacuationCallsTable() table {
	t := table{
		name: "rep-evacuation", title: "LRPs on an evacuating cell", source: "rep.DecideEvacuation",
		intro: "What an evacuating cell does about a container and the record at its index. " + situations +
			" The BBS decides what becomes of the records; for RUNNING containers see [evacuation-running](evacuation-running.md).",
		head: []string{"container", "ActualLRP", "action", "odds", "reason", "origin"},
	}
	for c := range rep.ContainerSituation(rep.ContainerSituations) {
		for l := range rep.LRPSituation(rep.LRPSituations) {
			r := rep.DecideEvacuation(c, l)
			record, section := l.String(), "000 §Harmonizing ActualLRPs"
			if c != rep.NoContainer {
				if l != 0 {
					continue // one row for every record
				}
				record, section = "any", "000 §Harmonizing During Evacuation"
			}
			t.rows = append(t.rows, []string{c.String(), record, r.Action(), r.Odds.String(), r.Reason, origin(r.Added, section)})
		}
	}
	return t
}

func taskTable() table {
	t := table{
		name: "rep-task", title: "Tasks on a cell", source: "rep.DecideTask",
		intro: "What a cell does about a container and the record of its task. α is this container on this cell, ω anybody else or nobody. " +
			"Rows that the specification's long table leaves out are added.",
		head: []string{"container", "task", "action", "odds", "reason", "origin"},
	}
	failed := rep.TaskRunFailed()
	t.intro += fmt.Sprintf(" If the container cannot be run (`rep.TaskRunFailed`): %s; %s.", failed.Action(), failed.Reason)
	unheard := rep.TaskStartedUnheard()
	t.intro += fmt.Sprintf(" If this cell has asked to start the task of a RESERVED container and finds it RUNNING α (`rep.TaskStartedUnheard`): %s; %s.", unheard.Action(), unheard.Reason)
	for c := range rep.TaskContainer(rep.TaskContainers) {
		for s := range rep.TaskSituation(rep.TaskSituations) {
			r := rep.DecideTask(c, s)
			t.rows = append(t.rows, []string{c.String(), s.String(), r.Action(), r.Odds.String(), r.Reason, origin(r.Added, "000 §Harmonizing Tasks")})
		}
	}
	return t
}

func taskStates() table {
	t := table{
		name: "task", title: "Commands to a task", source: "task.Table",
		intro: "What becomes of a task in each state when a command comes. The premise is what the command takes for true of the record.",
		head:  []string{"state", "command", "premise", "next state", "refusal", "effect", "reason"},
	}
	for _, r := range task.Table() {
		refusal := ""
		if r.Err != nil {
			refusal = r.Err.Error()
		}
		effects := make([]string, len(r.Effects))
		for i, e := range r.Effects {
			effects[i] = e.String()
		}
		t.rows = append(t.rows, []string{r.State.String(), r.Command, r.Premise.String(), r.Next.String(), refusal, strings.Join(effects, ", "), r.Reason})
	}
	return t
}

func callbackTable() table {
	t := table{
		name: "callback", title: "Answers to a callback", source: "task.CallbackRules",
		intro: "What the HTTP status of an answer to a task's completion callback means. The first row that applies counts. " +
			"Redirects that repeat the request unchanged are followed first. After the last attempt, and for a status without a row, the action is `leave it`: " +
			"the task stays, and can be polled until it expires.",
		head: []string{"status", "action", "reason"},
	}
	for _, r := range task.CallbackRules() {
		status := fmt.Sprintf("%d to %d", r.From, r.To)
		switch r.From {
		case 0:
			status = "none"
		case r.To:
			status = fmt.Sprint(r.From)
		}
		t.rows = append(t.rows, []string{status, r.Action.String(), r.Reason})
	}
	return t
}

func rolloutTable() table {
	t := table{
		name: "rollout", title: "Rollouts", source: "lrp.RolloutTable",
		intro: "What a rollout does at one index of a process, and what it waits for. Of the rows that apply the first one counts. " +
			"The turn says when the index may change. The active definition is the one that is rolled out; the others are of the ORDINARY records beside its own. " +
			"An index that is in flight is also pending.",
		head: []string{"turn", "active definition", "other definitions", "command", "counts as", "waits for", "reason"},
	}
	for _, r := range lrp.RolloutTable() {
		command, wait := "", ""
		if r.Command != nil {
			command = r.Command.Name()
		}
		if r.Wait != lrp.WaitNothing {
			wait = r.Wait.String()
		}
		t.rows = append(t.rows, []string{anyOf(r.Turns), anyOf(r.Active), anyOf(r.Others), command, r.Count.String(), wait, r.Reason})
	}
	return t
}

// anyOf lists values, none of which means any.
func anyOf[T fmt.Stringer](values []T) string {
	if len(values) == 0 {
		return "any"
	}
	var names []string
	for _, v := range values {
		names = append(names, v.String())
	}
	return strings.Join(names, " or ")
}

func containerStates() table {
	t := table{
		name: "container", title: "States of a container", source: "executor.Transitions",
		intro: "How a container's state may change (000 §Container State). It may be deleted in any state.",
		head:  []string{"state", "next state"},
	}
	for _, change := range executor.Transitions() {
		t.rows = append(t.rows, []string{change.From.String(), change.To.String()})
	}
	return t
}
