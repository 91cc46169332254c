package lrp

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/diegosdk/diego/executor"
)

// A RoutingInfo is what a router needs of a deployment.
type RoutingInfo struct {
	ProcessGUID string `json:"process_guid"`
	Domain      string `json:"domain"`
	// Instances is the number of indices wanted. [ActualLRP] says what runs.
	Instances int `json:"instances"`
	// Routes are as the consumer gave them.
	Routes Routes `json:"routes,omitempty"`
	// MetricTags are not resolved: [RoutingInfo.Labels] does that for an instance.
	MetricTags map[string]MetricTag `json:"metric_tags,omitempty"`
	// ModificationTag is the deployment's. The info with the higher index of one
	// epoch is the newer one.
	ModificationTag ModificationTag `json:"modification_tag"`
}

// A SchedulingInfo is what a consumer needs of a deployment to see whether it is
// as it should be: all but image credentials and the definitions themselves. A
// definition never changes, so its id identifies it.
type SchedulingInfo struct {
	RoutingInfo
	UpdateStrategy UpdateStrategy `json:"update_strategy"`
	Annotation     string         `json:"annotation,omitempty"`
	// Labels are those of the process.
	Labels map[string]string `json:"labels,omitempty"`
	Policies
	// DefinitionIDs are sorted.
	DefinitionIDs       []string `json:"definition_ids"`
	ActiveDefinitionID  string   `json:"active_definition_id"`
	HealthyDefinitionID string   `json:"healthy_definition_id"`
	// RolloutState is the state of the rollout to the active definition.
	RolloutState RolloutState `json:"rollout_state,omitzero"`
}

// RoutingInfo shows the deployment to routers. It does not use the definitions,
// so d may lack them.
func (d *Deployment) RoutingInfo() RoutingInfo {
	return RoutingInfo{
		ProcessGUID: d.ProcessGUID, Domain: d.Domain, Instances: d.Instances,
		Routes: d.Routes, MetricTags: d.MetricTags, ModificationTag: d.ModificationTag,
	}
}

// SchedulingInfo shows the deployment to consumers that compare it with what
// they want. It uses only the ids of the definitions.
func (d *Deployment) SchedulingInfo() SchedulingInfo {
	return SchedulingInfo{
		RoutingInfo:    d.RoutingInfo(),
		UpdateStrategy: d.UpdateStrategy, Annotation: d.Annotation, Labels: d.Labels, Policies: d.Policies,
		DefinitionIDs: d.DefinitionIDs(), ActiveDefinitionID: d.ActiveDefinitionID, HealthyDefinitionID: d.HealthyDefinitionID,
		RolloutState: d.RolloutState,
	}
}

// InternalRouter is the router of routes within the fleet. The JSON of this one
// router is known: a list of [InternalRoute].
const InternalRouter = "internal-router"

// An InternalRoute is a name under which other instances reach this one.
type InternalRoute struct {
	// Hostname has 1 to 255 bytes.
	Hostname string `json:"hostname"`
}

// Internal returns the routes of the InternalRouter, nil if there are none. The
// error says what is wrong with their JSON. Unknown members are ignored.
func (r Routes) Internal() ([]InternalRoute, error) {
	text, has := r[InternalRouter]
	if !has {
		return nil, nil
	}
	var list []InternalRoute
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	for i, route := range list {
		if !executor.IsName(route.Hostname) {
			return nil, fmt.Errorf("hostname %q of route %d has %d bytes, want 1 to %d", route.Hostname, i, len(route.Hostname), MaxNameBytes)
		}
	}
	return list, nil
}

// Labels returns a function that sets the labels of a record of this process:
// its internal routes, and its metric tags with the record's index and instance
// guid in place of dynamic ones. Only a RUNNING record gets labels. Records
// share the routes, so nobody may change them. Internal routes that cannot be
// read are left out: a deployment may be older than their validation. The
// function may be called concurrently for different records.
func (i *RoutingInfo) Labels() func(*ActualLRP) {
	routes, err := i.Routes.Internal()
	if err != nil {
		routes = nil
	}
	return func(r *ActualLRP) {
		r.InternalRoutes, r.MetricTags = nil, nil
		if r.State == Running {
			r.InternalRoutes = routes
			r.MetricTags = executor.ResolveMetricTags(i.MetricTags, "", strconv.Itoa(r.Index), r.InstanceGUID)
		}
	}
}
