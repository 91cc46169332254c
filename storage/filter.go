package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// Each field of a filter lists the values that are wanted; an empty field wants
// all. A record must satisfy every field. The Matcher methods are the rule; a
// Store may let its database choose, as long as it chooses the same. A matcher
// costs about the same for each record however many values the filter lists,
// and several goroutines may use it. Match makes one for a single record.

// A DeploymentFilter selects deployments. Each list names the values that are
// wanted; an empty list wants all. A deployment must satisfy every list and the
// Selector.
type DeploymentFilter struct {
	ProcessGUIDs []string `json:"process_guids,omitempty"`
	Domains      []string `json:"domains,omitempty"`
	// Selector wants processes with certain labels, such as "team=blog,!tier". A
	// deployment that cannot be decoded is listed with any Selector.
	Selector executor.Selector `json:"selector,omitzero"`
	// Bare leaves out what is large: see [Bare].
	Bare bool `json:"bare,omitempty"`
	// WithoutDefinitions leaves out the definitions but not the settings: see
	// [WithoutDefinitions]. It adds nothing to Bare. A BBS of 0.1 refuses the member;
	// RemoteBBS then asks without it, so a reader may get all definitions.
	WithoutDefinitions bool `json:"without_definitions,omitempty"`
	// DefinitionIDs leaves out all definitions but these, unless it is empty: see
	// [WithDefinitions]. It selects no deployment, and adds nothing to Bare and
	// WithoutDefinitions. Damage in the other definitions alone may go unnoticed. A
	// BBS of 0.1 refuses the member; RemoteBBS then asks without it, so a reader may
	// get all definitions. Look for yours by its id.
	DefinitionIDs []string `json:"definition_ids,omitempty"`
}

// Matcher returns a function that reports whether f wants a deployment.
// Goroutines may share the function.
func (f *DeploymentFilter) Matcher() func(*lrp.Deployment) bool {
	guids, domains, selector := oneOf(f.ProcessGUIDs), oneOf(f.Domains), f.Selector
	return func(d *lrp.Deployment) bool {
		return guids.has(d.ProcessGUID) && domains.has(d.Domain) && selector.Matches(d.Labels)
	}
}

// Match reports whether f wants d. For many deployments, use Matcher.
func (f *DeploymentFilter) Match(d *lrp.Deployment) bool { return f.Matcher()(d) }

// Bare returns the part of d that lrp.Step and converge.PlanLRPs use: its
// process guid, domain, update strategy, number of instances and [Rules], the
// ids of the active, the healthy and all other definitions, and the tag. The
// definitions themselves and the other settings are zero. [Batch.Check] refuses
// to commit such a deployment.
func Bare(d *lrp.Deployment) *lrp.Deployment {
	bare := WithoutDefinitions(d)
	bare.Settings = lrp.Settings{Instances: d.Instances}
	RulesOf(d).Set(bare)
	return bare
}

// WithoutDefinitions returns a copy of d that has the ids of the definitions,
// but zero in place of each, and no revisions. It is enough for lrp.RoutingInfo
// and lrp.SchedulingInfo. [Batch.Check] refuses to commit it.
func WithoutDefinitions(d *lrp.Deployment) *lrp.Deployment { return WithDefinitions(d) }

// WithDefinitions returns a copy of d that has all settings and only the
// definitions with the given ids, but the ids of all: it has zero in place of each
// other one, and no revisions. An id without a definition adds nothing.
// [Batch.Check] refuses to commit the copy unless it has all definitions.
func WithDefinitions(d *lrp.Deployment, ids ...string) *lrp.Deployment {
	some := *d
	some.Revisions = nil
	some.Definitions = make(map[string]lrp.Definition, len(d.Definitions))
	for id := range d.Definitions {
		some.Definitions[id] = lrp.Definition{}
	}
	for _, id := range ids {
		if definition, has := d.Definitions[id]; has {
			some.Definitions[id] = definition
		}
	}
	return &some
}

// An ActualLRPFilter selects ActualLRPs. Each list names the values that are
// wanted; an empty list wants all. A record must satisfy every list.
type ActualLRPFilter struct {
	ProcessGUIDs []string       `json:"process_guids,omitempty"`
	Indices      []int          `json:"indices,omitempty"`
	CellIDs      []string       `json:"cell_ids,omitempty"`
	Domains      []string       `json:"domains,omitempty"`
	States       []lrp.State    `json:"states,omitempty"`
	Presences    []lrp.Presence `json:"presences,omitempty"`
	// Selector asks a BBS for instances of processes with certain labels, such as
	// "team=blog,!tier". It selects no instance of a process that is no longer
	// desired. A Store ignores it.
	Selector executor.Selector `json:"selector,omitzero"`
	// Labels asks a BBS for the labels of the instances, see lrp.RoutingInfo.Labels.
	// It selects nothing, and a Store ignores it.
	Labels bool `json:"labels,omitempty"`
}

// Matcher returns a function that reports whether f wants an ActualLRP.
// Goroutines may share the function.
func (f *ActualLRPFilter) Matcher() func(*lrp.ActualLRP) bool {
	guids, indices, cells := oneOf(f.ProcessGUIDs), oneOf(f.Indices), oneOf(f.CellIDs)
	domains, states, presences := oneOf(f.Domains), oneOf(f.States), oneOf(f.Presences)
	return func(r *lrp.ActualLRP) bool {
		return guids.has(r.ProcessGUID) && indices.has(r.Index) && cells.has(r.CellID) &&
			domains.has(r.Domain) && states.has(r.State) && presences.has(r.Presence)
	}
}

// Match reports whether f wants r. For many records, use Matcher.
func (f *ActualLRPFilter) Match(r *lrp.ActualLRP) bool { return f.Matcher()(r) }

// A TaskFilter selects tasks. Each list names the values that are wanted; an
// empty list wants all. A task must satisfy every list and the Selector.
type TaskFilter struct {
	CellIDs []string     `json:"cell_ids,omitempty"`
	Domains []string     `json:"domains,omitempty"`
	States  []task.State `json:"states,omitempty"`
	// Selector wants tasks with certain labels, such as "team=blog,!tier". A task
	// that cannot be decoded is listed with any Selector.
	Selector executor.Selector `json:"selector,omitzero"`
	// Bare leaves out the definition and the result, which may be large: see
	// [BareTask]. A BBS of 0.1 refuses the member; RemoteBBS then asks without it, so a
	// reader may get whole tasks.
	Bare bool `json:"bare,omitempty"`
}

// Matcher returns a function that reports whether f wants a task. Goroutines
// may share the function.
func (f *TaskFilter) Matcher() func(*task.Task) bool {
	cells, domains, states, selector := oneOf(f.CellIDs), oneOf(f.Domains), oneOf(f.States), f.Selector
	return func(t *task.Task) bool {
		return cells.has(t.CellID) && domains.has(t.Domain) && states.has(t.State) && selector.Matches(t.Labels)
	}
}

// Match reports whether f wants t. For many tasks, use Matcher.
func (f *TaskFilter) Match(t *task.Task) bool { return f.Matcher()(t) }

// BareTask returns a copy of t without its definition and its result. What is left
// says where the task runs, which attempt that is and how it ended, and is a few
// KiB at most. It is enough for task.Task.Attempt, and not for auction.NewTask.
// Damage in the definition alone may go unnoticed in a bare task. [Batch.Check]
// refuses to commit it.
func BareTask(t *task.Task) *task.Task {
	bare := *t
	bare.Definition, bare.Result = task.Definition{}, ""
	return &bare
}

// An EventFilter selects events by their [Subject]. Each list names the values
// that are wanted; an empty list wants all. An event must satisfy every list.
type EventFilter struct {
	Kinds        []string `json:"kinds,omitempty"`
	ProcessGUIDs []string `json:"process_guids,omitempty"`
	Indices      []int    `json:"indices,omitempty"`
	TaskGUIDs    []string `json:"task_guids,omitempty"`
	// CellIDs wants events about records that were on one of the cells before
	// or are after.
	CellIDs []string `json:"cell_ids,omitempty"`
	Domains []string `json:"domains,omitempty"`
	// Selector asks a BBS for the events about processes and tasks with certain
	// labels: see [Selection]. A Store ignores it.
	Selector executor.Selector `json:"selector,omitzero"`
	// Labels asks a BBS for the labels of the instances, see lrp.RoutingInfo.Labels,
	// as they are when the event is read. It selects nothing, and a Store ignores
	// it.
	Labels bool `json:"labels,omitempty"`
}

// Validate checks that the wanted kinds of events exist, so that nobody waits
// for an event that never comes.
func (f *EventFilter) Validate(v *executor.Validator) {
	if len(f.Kinds) == 0 {
		return
	}
	known := EventKinds()
	for i, kind := range f.Kinds {
		v.Check(slices.Contains(known, kind), fmt.Sprintf("kinds[%d]", i), kind, "one of "+strings.Join(known, ", "))
	}
}

// Matcher returns a function that reports whether f wants an event about a
// subject. Goroutines may share the function.
func (f *EventFilter) Matcher() func(*Subject) bool {
	kinds, guids, indices := oneOf(f.Kinds), oneOf(f.ProcessGUIDs), oneOf(f.Indices)
	tasks, domains, cells := oneOf(f.TaskGUIDs), oneOf(f.Domains), oneOf(f.CellIDs)
	return func(s *Subject) bool {
		return kinds.has(s.Kind) && guids.has(s.ProcessGUID) && indices.has(s.Index) && tasks.has(s.TaskGUID) &&
			domains.has(s.Domain) && (cells.has(s.CellBefore) || cells.has(s.CellAfter))
	}
}

// Match reports whether f wants an event about s. For many events, use Matcher.
func (f *EventFilter) Match(s *Subject) bool { return f.Matcher()(s) }

// A choice is one field of a filter. Long choices have an index.
type choice[T comparable] struct {
	values []T
	index  map[T]struct{}
}

// fewValues is the number of values up to which comparing is faster than
// hashing.
const fewValues = 8

func oneOf[T comparable](values []T) choice[T] {
	c := choice[T]{values: values}
	if len(values) > fewValues {
		c.index = make(map[T]struct{}, len(values))
		for _, v := range values {
			c.index[v] = struct{}{}
		}
	}
	return c
}

// has has a value receiver, so that a matcher is one allocation with all its choices.
func (c choice[T]) has(v T) bool {
	if c.index != nil {
		_, is := c.index[v]
		return is
	}
	return len(c.values) == 0 || slices.Contains(c.values, v)
}
