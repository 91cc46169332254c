package lrp

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// A Deployment says what should run at the indices of one process (003
// §LRPDeployment).
//
// ActiveDefinitionID is always a key of Definitions. HealthyDefinitionID is a
// key of Definitions too, or empty if no definition has proved healthy yet.
type Deployment struct {
	ProcessGUID    string         `json:"process_guid"`
	Domain         string         `json:"domain"`
	UpdateStrategy UpdateStrategy `json:"update_strategy"`
	Settings
	// Definitions are the definitions in use, by their ids.
	Definitions map[string]Definition `json:"definitions"`
	// ActiveDefinitionID is the definition that every index is to reach.
	ActiveDefinitionID string `json:"active_definition_id"`
	// HealthyDefinitionID is the definition from which instances restart outside a
	// rollout.
	HealthyDefinitionID string `json:"healthy_definition_id"`
	// RolloutState is the state of the rollout to the active definition.
	RolloutState RolloutState `json:"rollout_state,omitzero"`
	// Revisions are the history as it was recorded; see History. They are not
	// part of the JSON form, and events and lists leave them out.
	Revisions       []Revision      `json:"-"`
	ModificationTag ModificationTag `json:"modification_tag"`
}

// Desires reports whether something should run at the index; false if d is nil.
func (d *Deployment) Desires(index int) bool {
	return d != nil && index >= 0 && index < d.Instances
}

// withoutRevisions is d, or a copy of it, without its revisions.
func (d *Deployment) withoutRevisions() *Deployment {
	if d == nil || d.Revisions == nil {
		return d
	}
	without := *d
	without.Revisions = nil
	return &without
}

// restartDefinition is the definition from which an instance of definitionID
// restarts outside a rollout: its own if it is the active one, otherwise the
// healthy one, or the active one if none was ever healthy (003
// §UpdateLRPDeployment).
func (d *Deployment) restartDefinition(definitionID string) string {
	if definitionID == d.ActiveDefinitionID || d.HealthyDefinitionID == "" {
		return d.ActiveDefinitionID
	}
	return d.HealthyDefinitionID
}

// isActive reports whether the definition is the active one. Without a
// deployment none is.
func (d *Deployment) isActive(definitionID string) bool {
	return d != nil && d.ActiveDefinitionID == definitionID
}

// activeOr is the active definition's id, or def without a deployment.
func (d *Deployment) activeOr(def string) string {
	if d == nil {
		return def
	}
	return d.ActiveDefinitionID
}

// strays reports whether r does not run yet and is of a definition that is
// neither active nor healthy: a rollout that was overtaken has left it behind.
func (d *Deployment) strays(r *ActualLRP) bool {
	return r.Presence == Ordinary && r.State != Running &&
		r.DefinitionID != d.ActiveDefinitionID && r.DefinitionID != d.HealthyDefinitionID
}

// serves reports whether r runs, is not to stop, and is not of the active
// definition.
func (d *Deployment) serves(r *ActualLRP) bool {
	return r.Presence == Ordinary && r.stays() && r.DefinitionID != d.ActiveDefinitionID
}

func (d *Deployment) served(records []ActualLRP) bool {
	for i := range records {
		if d.serves(&records[i]) {
			return true
		}
	}
	return false
}

// overtaken reports whether r waits to replace an instance that runs (served)
// in a rollout that is over.
func (d *Deployment) overtaken(r *ActualLRP, served bool) bool {
	return d != nil && served && r.Presence == Ordinary && r.State != Running && r.DefinitionID != d.ActiveDefinitionID
}

// yields reports whether r runs and yet has not taken the place of own: r is to
// stop because own, of the active definition, has started (003
// §UpdateLRPDeployment); or r does not replace own yet.
func (d *Deployment) yields(r, own *ActualLRP, now time.Time) bool {
	if r.Presence != Ordinary || r.State != Running || r.InstanceKey == own.InstanceKey {
		return false
	}
	stops := r.DefinitionID != own.DefinitionID && d.isActive(own.DefinitionID) && !d.proving(own, now)
	return stops || !d.Replaces(r, own, &executor.Alarm{Now: now})
}

// Promote makes the deployment that a DesiredLRP describes (003 §Promotion).
// Its one definition has the process guid as id; it is healthy if an instance
// is running.
func Promote(d DesiredLRP, running bool) Deployment {
	out := Deployment{
		ProcessGUID: d.ProcessGUID, Domain: d.Domain, UpdateStrategy: d.UpdateStrategy,
		Settings:           d.Settings,
		Definitions:        map[string]Definition{d.ProcessGUID: d.Definition},
		ActiveDefinitionID: d.ProcessGUID,
		ModificationTag:    d.ModificationTag,
	}
	if running {
		out.HealthyDefinitionID = d.ProcessGUID
	}
	return out
}

// Project shows the deployment to consumers that know one definition only: the
// active one (003 §Projection).
func (d *Deployment) Project() DesiredLRP {
	return DesiredLRP{
		ProcessGUID: d.ProcessGUID, Domain: d.Domain, UpdateStrategy: d.UpdateStrategy,
		Settings:        d.Settings,
		Definition:      d.Definitions[d.ActiveDefinitionID],
		ModificationTag: d.ModificationTag,
	}
}
