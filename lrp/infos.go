package lrp

// A RoutingInfo is what a router needs of a deployment.
type RoutingInfo struct {
	ProcessGUID string `json:"process_guid"`
	Domain      string `json:"domain"`
	// Instances is the number of indices wanted. [ActualLRP] says what runs.
	Instances int `json:"instances"`
	// Routes are as the consumer gave them.
	Routes Routes `json:"routes,omitempty"`
	// MetricTags are not resolved: [RoutingInfo.Label] does that for an instance.
	MetricTags map[string]MetricTag `json:"metric_tags,omitempty"`
	// ModificationTag is the deployment's. The info with the higher index of one
	// epoch is the newer one.
	ModificationTag ModificationTag `json:"modification_tag"`
}

// A SchedulingInfo is what a consumer needs of a deployment to see whether it is
// as it should be: all but image credentials and the definitions themselves.
// Because a definition never changes, its id tells which one it is.
type SchedulingInfo struct {
	RoutingInfo
	UpdateStrategy UpdateStrategy `json:"update_strategy"`
	Annotation     string         `json:"annotation,omitempty"`
	// DefinitionIDs are sorted.
	DefinitionIDs       []string `json:"definition_ids"`
	ActiveDefinitionID  string   `json:"active_definition_id"`
	HealthyDefinitionID string   `json:"healthy_definition_id"`
}

// RoutingInfo shows the deployment to routers. Of its definitions it uses
// nothing.
func (d *Deployment) RoutingInfo() RoutingInfo {
	return RoutingInfo{
		ProcessGUID: d.ProcessGUID, Domain: d.Domain, Instances: d.Instances,
		Routes: d.Routes, MetricTags: d.MetricTags, ModificationTag: d.ModificationTag,
	}
}

// SchedulingInfo shows the deployment to consumers that compare it with what
// they want. Of its definitions it uses the ids.
func (d *Deployment) SchedulingInfo() SchedulingInfo {
	return SchedulingInfo{
		RoutingInfo:    d.RoutingInfo(),
		UpdateStrategy: d.UpdateStrategy, Annotation: d.Annotation,
		DefinitionIDs: d.DefinitionIDs(), ActiveDefinitionID: d.ActiveDefinitionID, HealthyDefinitionID: d.HealthyDefinitionID,
	}
}
