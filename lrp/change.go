package lrp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
)

// This file holds the changes that a consumer may make to what is desired. Each
// function returns a Change and modifies nothing. After the commit of a Change,
// Delta, Step with CreateMissing and StopExtra, and Rollout bring the instances
// up to date.

// A Change is a new version of a deployment. Before is nil if the deployment is
// created, After is nil if it is deleted. The zero Change is a no-op. Events
// are committed together with the new version.
type Change struct {
	Before *Deployment
	After  *Deployment
	Events []Event
}

// IsZero reports whether nothing changes.
func (c Change) IsZero() bool { return c.Before == nil && c.After == nil }

// Every [RefusedError] wraps ErrRefused.
var ErrRefused = errors.New("deployment change refused")

// A RefusedError says why a deployment cannot be changed in this way.
type RefusedError struct {
	ProcessGUID string
	Why         string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.ProcessGUID, ErrRefused, e.Why)
}

// Unwrap makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Unwrap() error { return ErrRefused }

// MaxDefinitions is the number of definitions that a deployment may hold at
// once. A rollout needs two, and a third if one overtakes another.
const MaxDefinitions = 16

// A DeploymentDefinition holds everything that creates a deployment (003
// §CreateLRPDeployment).
type DeploymentDefinition struct {
	ProcessGUID    string         `json:"process_guid"`
	Domain         string         `json:"domain"`
	UpdateStrategy UpdateStrategy `json:"update_strategy"`
	Settings
	DefinitionID string     `json:"definition_id"`
	Definition   Definition `json:"definition"`
}

// Create makes a deployment with one definition, which is active and has yet to
// prove healthy. The store checks that no deployment of this process exists.
// The error is an *executor.ValidationError.
func Create(c DeploymentDefinition, now time.Time) (Change, error) {
	d := Deployment{
		ProcessGUID: c.ProcessGUID, Domain: c.Domain, UpdateStrategy: c.UpdateStrategy,
		Settings:           c.Settings,
		Definitions:        map[string]Definition{c.DefinitionID: c.Definition},
		ActiveDefinitionID: c.DefinitionID,
	}
	return created(d, "Create", now)
}

// CreateFrom makes the deployment that a DesiredLRP describes: see [Promote].
// Otherwise it is like [Create]; its errors name the fields of the DesiredLRP.
func CreateFrom(l DesiredLRP, now time.Time) (Change, error) {
	// Errors name the fields of the DesiredLRP, not those of the deployment.
	if err := l.Validate(); err != nil {
		return Change{}, err
	}
	return created(Promote(l, false), "Desire", now)
}

func created(d Deployment, command string, now time.Time) (Change, error) {
	d.ModificationTag = ModificationTag{Epoch: now.UnixNano()}
	if err := checkNewDomain(d.Domain); err != nil {
		return Change{}, err
	}
	if err := d.Validate(); err != nil {
		return Change{}, err
	}
	if err := checkNew(d.Definitions[d.ActiveDefinitionID], d.Settings); err != nil {
		return Change{}, err
	}
	if err := checkNewRoutes(d.Routes); err != nil {
		return Change{}, err
	}
	return change(nil, &d, command), nil
}

// Update makes the changes of u (000 §DesiredLRPs, 003 §UpdateLRPDeployment). A
// new definition becomes the active one and so begins a rollout. The error
// wraps ErrRefused, or is an *executor.ValidationError for a value outside its
// limits.
func (d *Deployment) Update(u Update) (Change, error) {
	if u.DefinitionID == nil && u.Definition != nil || u.DefinitionID != nil && u.Definition == nil {
		return Change{}, d.refuse("a new definition and its id come together")
	}
	next := *d
	set(&next.Instances, u.Instances)
	set(&next.Routes, u.Routes)
	set(&next.Annotation, u.Annotation)
	set(&next.Labels, u.Labels)
	setPolicy(&next.Restart, u.Restart)
	setPolicy(&next.Rollout, u.Rollout)
	setPolicy(&next.Disruption, u.Disruption)
	set(&next.MetricTags, u.MetricTags)
	set(&next.ImageUsername, u.ImageUsername)
	set(&next.ImagePassword, u.ImagePassword)
	if u.Definition != nil || u.MetricTags != nil || u.ImageUsername != nil || u.ImagePassword != nil {
		var definition Definition
		set(&definition, u.Definition)
		if err := checkNew(definition, next.Settings); err != nil {
			return Change{}, err
		}
	}
	if u.Routes != nil {
		if err := checkNewRoutes(next.Routes); err != nil {
			return Change{}, err
		}
	}
	if u.DefinitionID != nil {
		if err := next.define(*u.DefinitionID, *u.Definition); err != nil {
			return Change{}, err
		}
		next.lead(*u.DefinitionID)
	}
	if u.isZero() {
		return Change{}, nil
	}
	return d.changed(next, "Update")
}

// checkNew refuses a new definition with too many placement tags, or one that is too large
// together with the settings, some of which go to the cells too.
func checkNew(d Definition, s Settings) error {
	s.Routes = nil // which have a bound of their own
	var v executor.Validator
	executor.ValidateSize(&v, struct {
		Definition Definition
		Settings   Settings
	}{d, s}, d.VolumeMountedFiles)
	executor.ValidateNewPlacementTags(&v, d.PlacementTags)
	return v.Err()
}

// checkNewRoutes refuses routes that are too large as the JSON in which they are stored.
// A store gives them back with its escapes, and they must still be valid then: otherwise
// the process could not be changed any more.
func checkNewRoutes(r Routes) error {
	text, _ := json.Marshal(r) // what is not JSON is refused anyway
	var v executor.Validator
	v.Check(len(text) <= MaxRoutesBytes, "routes", fmt.Sprintf("%d bytes", len(text)),
		fmt.Sprintf("at most %d bytes as JSON, together with the names of the routers", MaxRoutesBytes))
	return v.Err()
}

// define adds a definition under an id that is not in use.
func (d *Deployment) define(id string, definition Definition) error {
	if d.has(id) {
		return d.refuse(fmt.Sprintf("definition id %q is taken; activate it, or choose another id", id))
	}
	if len(d.Definitions) >= MaxDefinitions {
		return d.refuse(fmt.Sprintf("it has %d definitions in use already; wait for the rollout", len(d.Definitions)))
	}
	d.Definitions = maps.Clone(d.Definitions)
	d.Definitions[id] = definition
	return nil
}

// UpdateTo begins a rollout to everything that l describes, under a new
// definition id: the update identifier of 004 (004 §Proposed API). l must have
// the deployment's process guid, domain and update strategy.
func (d *Deployment) UpdateTo(l DesiredLRP, definitionID string) (Change, error) {
	if l.ProcessGUID != d.ProcessGUID || l.Domain != d.Domain || l.UpdateStrategy != d.UpdateStrategy {
		return Change{}, d.refuse("an update keeps the process guid, the domain and the update strategy")
	}
	u := UpdateSettings(l.Settings)
	u.DefinitionID, u.Definition = &definitionID, &l.Definition
	return d.Update(u)
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// setPolicy is set for a policy whose zero value means that there is none.
func setPolicy[T comparable](field **T, value *T) {
	var zero T
	switch {
	case value == nil:
	case *value == zero:
		*field = nil
	default:
		*field = value
	}
}

// Activate begins a rollout to an existing definition (003
// §ActivateLRPDeploymentDefinition), or to one that only a revision still has. It
// is a no-op for the active one. What instances of that definition did before
// now does not count against it. The error wraps ErrRefused if there is no
// definition with this id.
func (d *Deployment) Activate(definitionID string, now time.Time) (Change, error) {
	if d.has(definitionID) {
		return d.goTo(definitionID, nil, now, "Activate")
	}
	known := d.DefinitionIDs()
	for _, r := range slices.Backward(d.Revisions) {
		switch {
		case r.Definition == nil || slices.Contains(known, r.DefinitionID):
		case r.DefinitionID == definitionID:
			return d.goTo(definitionID, r.Definition, now, "Activate")
		default:
			known = append(known, r.DefinitionID)
		}
	}
	slices.Sort(known)
	return Change{}, d.refuse(fmt.Sprintf("it has no definition %q; it has %q", definitionID, known))
}

// Delete ends the deployment. StopExtra then stops its instances, of any
// definition.
func (d *Deployment) Delete() Change { return change(d, nil, "Delete") }

// PruneDefinitions drops the definitions that are no longer needed: those that
// are neither active nor healthy and not in use. inUse reports whether a record
// of the process, in any state and presence, names the definition. If the
// process has a rollout policy or its rollout is paused, the definition from
// which the rollout began stays too, so that the rollout can be aborted.
func (d *Deployment) PruneDefinitions(inUse func(definitionID string) bool) Change {
	return d.tidied(*d, inUse, "PruneDefinitions")
}

// tidied drops the definitions of next that are not needed.
func (d *Deployment) tidied(next Deployment, inUse func(definitionID string) bool, command string) Change {
	from := next.RolloutState.From
	if next.Rollout.orZero() == (RolloutPolicy{}) && next.RolloutState.Paused == NotPaused {
		from = ""
	}
	next.Definitions = maps.Clone(d.Definitions)
	maps.DeleteFunc(next.Definitions, func(id string, _ Definition) bool {
		return id != d.ActiveDefinitionID && id != d.HealthyDefinitionID && id != from && !inUse(id)
	})
	if _, kept := next.Definitions[next.RolloutState.From]; !kept && next.RolloutState.From != "" {
		next.RolloutState = RolloutState{}
	}
	if len(next.Definitions) == len(d.Definitions) && next.RolloutState == d.RolloutState {
		return Change{}
	}
	next.ModificationTag = d.ModificationTag.Next()
	return change(d, &next, command)
}

// DefinitionIDs returns the ids of all definitions in ascending order.
func (d *Deployment) DefinitionIDs() []string {
	return slices.Sorted(maps.Keys(d.Definitions))
}

func (d *Deployment) changed(next Deployment, command string) (Change, error) {
	next.ModificationTag = d.ModificationTag.Next()
	if err := next.validate(d.Definitions); err != nil {
		return Change{}, err
	}
	return change(d, &next, command), nil
}

func (d *Deployment) refuse(why string) error {
	return &RefusedError{ProcessGUID: d.ProcessGUID, Why: why}
}

// change makes the events of a new version. A version that only drops
// definitions or ends a rollout makes no Desired event, because no projection
// shows it.
func change(before, after *Deployment, command string) Change {
	deployment, desired := DeploymentChanged, DesiredChanged
	switch {
	case before == nil:
		deployment, desired = DeploymentCreated, DesiredCreated
	case after == nil:
		deployment, desired = DeploymentRemoved, DesiredRemoved
	}
	c := Change{Before: before, After: after}
	e := Event{DeploymentBefore: before.withoutRevisions(), DeploymentAfter: after.withoutRevisions(), Cause: Cause{Command: command}}
	for _, e.Kind = range [...]EventKind{deployment, desired} {
		if e.Kind != DesiredChanged || command != "PruneDefinitions" && command != "EndRollout" {
			c.Events = append(c.Events, e)
		}
	}
	return c
}
