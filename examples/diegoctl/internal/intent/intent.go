// Package intent decides what apply does about each process and task of its
// files, and does it. It reads nothing: Process, Task and Prune get what is there.
package intent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/diegosdk/diego/examples/diegoctl/internal/difference"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// What an intent may be.
const (
	Create  = "create"
	Update  = "update"
	RollOut = "rollout"
	Keep    = "keep"
	Delete  = "delete"
)

// An Intent is what apply does about one process or task.
type Intent struct {
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

// Name is the guid of a process, or "task" and that of a task.
func (i *Intent) Name() string {
	if i.TaskGUID != "" {
		return "task " + i.TaskGUID
	}
	return i.ProcessGUID
}

// Final reports whether nothing comes of the intent that one could wait for: it
// deletes a process, or is about a task that had ended before.
func (i *Intent) Final() bool { return i.Do == Delete || i.ended }

// Process decides about a process, of which have is nil if there is none.
// The error wraps lrp.ErrRefused or executor.ErrInvalid.
func Process(want *lrp.DeploymentDefinition, have *lrp.Deployment) (Intent, error) {
	i := Intent{Do: Create, ProcessGUID: want.ProcessGUID, Domain: want.Domain, Instances: &want.Instances, before: have}
	if have == nil {
		create := *want
		create.DefinitionID = cmp.Or(want.DefinitionID, want.ProcessGUID) // as lrp create does
		change, err := lrp.Create(create, time.Time{})
		i.DefinitionID, i.after, i.create = create.DefinitionID, change.After, &create
		return i, err
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
	settings, err := difference.Of(have.Settings, change.After.Settings)
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
	if i.Differences, err = difference.Of(inTheFormOf(want, have), inTheFormOf(want, i.after)); err != nil {
		return i, err
	}
	switch {
	case have.ActiveDefinitionID != id:
		i.Do = RollOut
	case i.update != nil:
		i.Do = Update
	default:
		i.Do = Keep
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
		if known, ok := have.Definitions[id]; ok && !difference.None(known, want.Definition) {
			return "", &lrp.RefusedError{ProcessGUID: have.ProcessGUID, Why: fmt.Sprintf(
				"definition %s is another one already, and definitions never change; give the new one another definition_id", id)}
		}
		return id, nil
	}
	for _, id := range append([]string{have.ActiveDefinitionID}, have.DefinitionIDs()...) {
		if difference.None(have.Definitions[id], want.Definition) {
			return id, nil
		}
	}
	text, err := json.Marshal(want.Definition)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), err
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

// Task decides about a task, of which have is nil if there is none; state is what
// people read of have. A task runs once: one that exists stays as it is.
func Task(want *task.Desire, have *task.Task, state string) (Intent, error) {
	i := Intent{Do: Create, TaskGUID: want.GUID, Domain: want.Domain}
	if have == nil {
		i.task = want
		return i, nil
	}
	i.Do, i.Domain, i.State = Keep, have.Domain, state
	i.ended = have.State == task.Completed || have.State == task.Resolving
	type form struct { // of a task's document
		Domain string `json:"domain"`
		task.Definition
	}
	var err error
	i.Differences, err = difference.Of(form{have.Domain, have.Definition}, form{want.Domain, want.Definition})
	return i, err
}

// Prune decides about the processes of a domain, given those that are
// wanted.
func Prune(list []lrp.SchedulingInfo, wanted map[string]bool) (intents []Intent) {
	for _, info := range list {
		if !wanted[info.ProcessGUID] {
			intents = append(intents, Intent{Do: Delete, ProcessGUID: info.ProcessGUID, Domain: info.Domain, Instances: &info.Instances})
		}
	}
	return intents
}

// String is the intent in one line.
func (i *Intent) String() string {
	switch {
	case i.Do == Keep && i.TaskGUID != "" && len(i.Differences) > 0:
		return fmt.Sprintf("%s: left alone, %s; a task cannot change, so the file's needs another task_guid", i.Name(), i.State)
	case i.Do == Keep && i.TaskGUID != "":
		return fmt.Sprintf("%s: left alone, %s", i.Name(), i.State)
	case i.Do == Keep:
		return i.Name() + ": as it should be"
	case i.TaskGUID != "":
		return i.Name() + ": run"
	case i.Do == RollOut:
		return fmt.Sprintf("%s: roll out definition %s, %s", i.Name(), i.DefinitionID, show.Count(*i.Instances, "instance"))
	case i.Do == Update:
		return i.Name() + ": update"
	case i.Do == Delete:
		return fmt.Sprintf("%s: delete, %s; it is not in the files", i.Name(), show.Count(*i.Instances, "instance"))
	}
	return fmt.Sprintf("%s: create, %s", i.Name(), show.Count(*i.Instances, "instance"))
}
