package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/diegosdk/diego/examples/diegoctl/internal/difference"
	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// This file decides what apply does, and does nothing.

// What an intent may be.
const (
	doCreate  = "create"
	doUpdate  = "update"
	doRollOut = "rollout"
	doKeep    = "keep"
	doDelete  = "delete"
)

// An intent is what apply does about one process or task.
type intent struct {
	Do          string `json:"do"`
	ProcessGUID string `json:"process_guid,omitempty"`
	TaskGUID    string `json:"task_guid,omitempty"`
	Domain      string `json:"domain"`
	// Instances is that of a process afterwards, or before it is deleted.
	Instances *int `json:"instances,omitempty"`
	// DefinitionID is that of a process afterwards.
	DefinitionID string             `json:"definition_id,omitempty"`
	Differences  []difference.Field `json:"differences,omitempty"`
	// State is that of a task which is kept.
	State string `json:"state,omitempty"`

	// ended is true of a task that had ended already.
	ended bool
	// before and after are nil where there is no process.
	before, after *lrp.Deployment
	// The calls, in their order; those that are not needed are nil or empty.
	create   *lrp.DeploymentDefinition
	update   *lrp.Update
	activate string
	task     *task.Desire
}

func (i *intent) name() string {
	if i.TaskGUID != "" {
		return "task " + i.TaskGUID
	}
	return i.ProcessGUID
}

// intendProcess decides about a process, of which have is nil if there is none.
// The error wraps lrp.ErrRefused or executor.ErrInvalid.
func intendProcess(want *lrp.DeploymentDefinition, have *lrp.Deployment) (intent, error) {
	i := intent{Do: doCreate, ProcessGUID: want.ProcessGUID, Domain: want.Domain, Instances: &want.Instances, before: have}
	if have == nil {
		after, err := newDeployment(*want)
		if err != nil {
			return i, err
		}
		create := *want
		create.DefinitionID = after.ActiveDefinitionID
		i.DefinitionID, i.after, i.create = create.DefinitionID, after, &create
		return i, nil
	}
	if err := changeless(have, want); err != nil {
		return i, err
	}
	id, err := definitionFor(want, have)
	if err != nil {
		return i, err
	}
	update := lrp.UpdateSettings(want.Settings)
	if _, known := have.Definitions[id]; !known {
		update.DefinitionID, update.Definition = &id, &want.Definition
	}
	change, err := have.Update(update)
	if err != nil {
		return i, err
	}
	settings, err := differences(have.Settings, change.After.Settings)
	if err != nil {
		return i, err
	}
	if update.DefinitionID != nil || len(settings) > 0 {
		i.update = &update
	}
	if change.After.ActiveDefinitionID != id {
		i.activate = id
		if change, err = change.After.Activate(id, time.Time{}); err != nil {
			return i, err
		}
	}
	i.DefinitionID, i.after = id, change.After
	if i.Differences, err = differences(inTheFormOf(want, have), inTheFormOf(want, i.after)); err != nil {
		return i, err
	}
	switch {
	case have.ActiveDefinitionID != id:
		i.Do = doRollOut
	case i.update != nil:
		i.Do = doUpdate
	default:
		i.Do = doKeep
	}
	return i, nil
}

// changeless refuses what cannot change in a process.
func changeless(have *lrp.Deployment, want *lrp.DeploymentDefinition) error {
	refuse := func(field string, has, wants any) error {
		return &lrp.RefusedError{ProcessGUID: have.ProcessGUID, Why: fmt.Sprintf(
			"its %s is %v and cannot become %v; keep it, or delete the process with diegoctl lrp delete %s and apply the file again", field, has, wants, have.ProcessGUID)}
	}
	switch {
	case have.Domain != want.Domain:
		return refuse("domain", have.Domain, want.Domain)
	case have.UpdateStrategy != want.UpdateStrategy:
		return refuse("update_strategy", have.UpdateStrategy, want.UpdateStrategy)
	}
	return nil
}

// definitionFor is the id of the wanted definition: that which a deployment's
// document names, or for an LRP that of an equal definition, or a new one, which
// follows from the definition. So a repetition finds what was made before.
func definitionFor(want *lrp.DeploymentDefinition, have *lrp.Deployment) (string, error) {
	if id := want.DefinitionID; id != "" {
		if known, ok := have.Definitions[id]; ok && !equal(known, want.Definition) {
			return "", &lrp.RefusedError{ProcessGUID: have.ProcessGUID, Why: fmt.Sprintf(
				"definition %s is another one already, and definitions never change; give the new one another definition_id", id)}
		}
		return id, nil
	}
	for _, id := range append([]string{have.ActiveDefinitionID}, have.DefinitionIDs()...) {
		if equal(have.Definitions[id], want.Definition) {
			return id, nil
		}
	}
	text, err := json.Marshal(want.Definition)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), err
}

func equal(a, b any) bool {
	fields, err := differences(a, b)
	return err == nil && len(fields) == 0
}

// differences are the fields in which two values differ by what they mean.
func differences(before, after any) ([]difference.Field, error) {
	a, err := specfile.Meaning(before)
	if err != nil {
		return nil, err
	}
	b, err := specfile.Meaning(after)
	if err != nil {
		return nil, err
	}
	return difference.Of(a, b)
}

// inTheFormOf is a deployment with the fields that a document has: those of an
// LRP or of a deployment.
func inTheFormOf(doc *lrp.DeploymentDefinition, d *lrp.Deployment) any {
	if doc.DefinitionID == "" {
		l := d.Project()
		l.ModificationTag = lrp.ModificationTag{}
		return l
	}
	return lrp.DeploymentDefinition{
		ProcessGUID: d.ProcessGUID, Domain: d.Domain, UpdateStrategy: d.UpdateStrategy, Settings: d.Settings,
		DefinitionID: d.ActiveDefinitionID, Definition: d.Definitions[d.ActiveDefinitionID],
	}
}

// intendTask decides about a task, of which have is nil if there is none. A task
// runs once: one that exists stays as it is.
func intendTask(want *task.Desire, have *task.Task) (intent, error) {
	i := intent{Do: doCreate, TaskGUID: want.GUID, Domain: want.Domain}
	if have == nil {
		i.task = want
		return i, nil
	}
	i.Do, i.Domain, i.State = doKeep, have.Domain, stateOfTask(have).Text
	i.ended = have.State == task.Completed || have.State == task.Resolving
	type form struct { // of a task's document
		Domain string `json:"domain"`
		task.Definition
	}
	var err error
	i.Differences, err = differences(form{have.Domain, have.Definition}, form{want.Domain, want.Definition})
	return i, err
}

// intendPrune decides about the processes of a domain, given those that are
// wanted.
func intendPrune(list []lrp.SchedulingInfo, wanted map[string]bool) (intents []intent) {
	for _, info := range list {
		if !wanted[info.ProcessGUID] {
			intents = append(intents, intent{Do: doDelete, ProcessGUID: info.ProcessGUID, Domain: info.Domain, Instances: &info.Instances})
		}
	}
	return intents
}

// surge is how many instances of the new definition begin beside the old ones.
func (i *intent) surge() int {
	if i.Do != doRollOut {
		return 0
	}
	inFlight := 1
	if p := i.after.Rollout; p != nil {
		inFlight = max(1, p.MaxInFlight)
	}
	return min(inFlight, i.after.Instances)
}

// text is the intent in one line.
func (i *intent) text() string {
	switch {
	case i.Do == doKeep && i.TaskGUID != "" && len(i.Differences) > 0:
		return fmt.Sprintf("%s: left alone, %s; a task cannot change, so the file's needs another task_guid", i.name(), i.State)
	case i.Do == doKeep && i.TaskGUID != "":
		return fmt.Sprintf("%s: left alone, %s", i.name(), i.State)
	case i.Do == doKeep:
		return i.name() + ": as it should be"
	case i.TaskGUID != "":
		return i.name() + ": run"
	case i.Do == doRollOut:
		return fmt.Sprintf("%s: roll out definition %s, %s", i.name(), i.DefinitionID, count(*i.Instances, "instance"))
	case i.Do == doUpdate:
		return i.name() + ": update"
	case i.Do == doDelete:
		return fmt.Sprintf("%s: delete, %s; it is not in the files", i.name(), count(*i.Instances, "instance"))
	}
	return fmt.Sprintf("%s: create, %s", i.name(), count(*i.Instances, "instance"))
}

// fieldText is a difference in one line.
func fieldText(f difference.Field) string {
	const most = 100 // characters of a value
	before, after := cut(string(f.Before), most), cut(string(f.After), most)
	switch {
	case f.Secret:
		return f.Name + ": differs, not shown"
	case f.Before == nil:
		return f.Name + ": " + after + ", new"
	case f.After == nil:
		return f.Name + ": " + before + ", removed"
	}
	return fmt.Sprintf("%s: %s → %s", f.Name, before, after)
}
