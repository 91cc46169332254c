package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// Each field of a filter lists the values that are wanted; an empty field
// wants all. A record must satisfy every field. The Match methods are the
// rule; a Store may leave the choice to its database as long as it chooses the
// same.

// A DeploymentFilter chooses deployments.
type DeploymentFilter struct {
	ProcessGUIDs []string `json:"process_guids,omitempty"`
	Domains      []string `json:"domains,omitempty"`
	// Bare leaves out what is large: see [Bare].
	Bare bool `json:"bare,omitempty"`
}

// Match reports whether f wants d.
func (f *DeploymentFilter) Match(d *lrp.Deployment) bool {
	return wants(f.ProcessGUIDs, d.ProcessGUID) && wants(f.Domains, d.Domain)
}

// Bare is what lrp.Step and converge.PlanLRPs look at of a deployment: who it
// is, its domain, update strategy and number of instances, the ids of the
// active, the healthy and all other definitions, and the tag. The definitions
// themselves and the other settings are zero, and Check refuses to commit that.
func Bare(d *lrp.Deployment) *lrp.Deployment {
	ids := make(map[string]lrp.Definition, len(d.Definitions))
	for id := range d.Definitions {
		ids[id] = lrp.Definition{}
	}
	return &lrp.Deployment{
		ProcessGUID: d.ProcessGUID, Domain: d.Domain, UpdateStrategy: d.UpdateStrategy,
		Settings:           lrp.Settings{Instances: d.Instances},
		Definitions:        ids,
		ActiveDefinitionID: d.ActiveDefinitionID, HealthyDefinitionID: d.HealthyDefinitionID,
		ModificationTag: d.ModificationTag,
	}
}

// An ActualLRPFilter chooses ActualLRPs.
type ActualLRPFilter struct {
	ProcessGUIDs []string       `json:"process_guids,omitempty"`
	Indices      []int          `json:"indices,omitempty"`
	CellIDs      []string       `json:"cell_ids,omitempty"`
	Domains      []string       `json:"domains,omitempty"`
	States       []lrp.State    `json:"states,omitempty"`
	Presences    []lrp.Presence `json:"presences,omitempty"`
}

// Match reports whether f wants r.
func (f *ActualLRPFilter) Match(r *lrp.ActualLRP) bool {
	return wants(f.ProcessGUIDs, r.ProcessGUID) && wants(f.Indices, r.Index) &&
		wants(f.CellIDs, r.CellID) && wants(f.Domains, r.Domain) &&
		wants(f.States, r.State) && wants(f.Presences, r.Presence)
}

// A TaskFilter chooses tasks.
type TaskFilter struct {
	CellIDs []string     `json:"cell_ids,omitempty"`
	Domains []string     `json:"domains,omitempty"`
	States  []task.State `json:"states,omitempty"`
}

// Match reports whether f wants t.
func (f *TaskFilter) Match(t *task.Task) bool {
	return wants(f.CellIDs, t.CellID) && wants(f.Domains, t.Domain) && wants(f.States, t.State)
}

// An EventFilter chooses events by their [Subject].
type EventFilter struct {
	Kinds        []string `json:"kinds,omitempty"`
	ProcessGUIDs []string `json:"process_guids,omitempty"`
	Indices      []int    `json:"indices,omitempty"`
	TaskGUIDs    []string `json:"task_guids,omitempty"`
	// CellIDs wants events about records that were on one of the cells before
	// or are after.
	CellIDs []string `json:"cell_ids,omitempty"`
	Domains []string `json:"domains,omitempty"`
}

// Validate checks that there are events of the kinds that f wants: whoever waits
// for one that never comes should know.
func (f *EventFilter) Validate(v *executor.Validator) {
	known := EventKinds()
	for i, kind := range f.Kinds {
		v.Check(slices.Contains(known, kind), fmt.Sprintf("kinds[%d]", i), kind, "one of "+strings.Join(known, ", "))
	}
}

// Match reports whether f wants an event about s.
func (f *EventFilter) Match(s *Subject) bool {
	return wants(f.Kinds, s.Kind) && wants(f.ProcessGUIDs, s.ProcessGUID) && wants(f.Indices, s.Index) &&
		wants(f.TaskGUIDs, s.TaskGUID) && wants(f.Domains, s.Domain) &&
		(wants(f.CellIDs, s.CellBefore) || wants(f.CellIDs, s.CellAfter))
}

func wants[T comparable](values []T, v T) bool {
	return len(values) == 0 || slices.Contains(values, v)
}
