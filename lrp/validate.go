package lrp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/diegosdk/diego/executor"
)

// Limits of deployments.
const (
	// MaxInstances is the largest number of instances of one process.
	MaxInstances = 100_000
	// MaxRoutesBytes limits the routes of a process together: 128 KiB. New routes count
	// with the names of their routers, as the JSON in which they are stored; see
	// executor.MaxDefinitionBytes.
	MaxRoutesBytes = 128 * 1024
	// MaxNameBytes limits a domain, a definition id and a placement tag, in bytes.
	MaxNameBytes = executor.MaxNameBytes
)

// Validate checks every limit. The error is an *executor.ValidationError that
// names the fields, their values and the limits.
func (l *DesiredLRP) Validate() error {
	var v executor.Validator
	checkIdentity(&v, l.ProcessGUID, l.Domain, l.UpdateStrategy)
	l.Settings.check(&v, l.MetricsGUID)
	l.Definition.check(&v)
	return v.Err()
}

// Validate checks every limit, and that the active and the healthy definition
// exist. The error is an *executor.ValidationError that names the fields, their
// values and the limits.
func (d *Deployment) Validate() error { return d.validate(nil) }

// validate is Validate, without the definitions under the ids that are known. An earlier
// release may have taken more in them, and such a process must be scaled, updated
// and rolled back all the same.
func (d *Deployment) validate(known map[string]Definition) error {
	var v executor.Validator
	checkIdentity(&v, d.ProcessGUID, d.Domain, d.UpdateStrategy)
	d.Settings.check(&v, d.Definitions[d.ActiveDefinitionID].MetricsGUID)
	v.Check(len(d.Definitions) <= MaxDefinitions, "definitions", len(d.Definitions), "at most 16")
	for _, id := range d.DefinitionIDs() {
		if _, old := known[id]; old {
			continue
		}
		v.Name("definition_id", id)
		definition := d.Definitions[id]
		definition.check(v.In("definitions").In(id))
	}
	_, there := d.Definitions[d.ActiveDefinitionID]
	v.Check(there, "active_definition_id", d.ActiveDefinitionID, "the id of a definition")
	_, there = d.Definitions[d.HealthyDefinitionID]
	v.Check(there || d.HealthyDefinitionID == "", "healthy_definition_id", d.HealthyDefinitionID, "the id of a definition, or empty")
	from := d.RolloutState.From
	v.Check(from == "" || d.has(from), "rollout_state.from", from, "the id of a definition, or empty")
	return v.Err()
}

func checkIdentity(v *executor.Validator, processGUID, domain string, strategy UpdateStrategy) {
	v.GUID("process_guid", processGUID)
	v.Name("domain", domain)
	_, err := strategy.MarshalText()
	v.Check(err == nil, "update_strategy", strategy, "ROLLING or RECREATE")
}

func (s *Settings) check(v *executor.Validator, metricsGUID string) {
	v.Check(s.Instances >= 0 && s.Instances <= MaxInstances, "instances", s.Instances, "0 to 100000")
	size := 0
	for _, router := range slices.Sorted(maps.Keys(s.Routes)) {
		size += len(s.Routes[router])
		v.Name("routes", router)
		v.In("routes").Check(json.Valid(s.Routes[router]), router, string(s.Routes[router]), "JSON")
	}
	if _, err := s.Routes.Internal(); err != nil {
		v.In("routes").Check(false, InternalRouter, string(s.Routes[InternalRouter]), fmt.Sprintf(`a list such as [{"hostname":"web.internal"}]: %v`, err))
	}
	v.Check(size <= MaxRoutesBytes, "routes", strconv.Itoa(size)+" bytes", "at most 131072 bytes in all")
	executor.ValidateAnnotation(v, s.Annotation)
	executor.ValidateLabels(v, s.Labels)
	s.Restart.check(v.In("restart_policy"))
	s.Rollout.check(v.In("rollout_policy"))
	s.Disruption.check(v.In("disruption"))
	executor.ValidateMetricTags(v, s.MetricTags, metricsGUID)
	executor.ValidateImageCredentials(v, s.ImageUsername, s.ImagePassword)
}

func (d *Definition) check(v *executor.Validator) {
	d.Resources.Validate(v)
	d.RunInfo.Validate(v)
	executor.ValidatePlacementTags(v, d.PlacementTags)
}
