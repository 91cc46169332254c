package executor

import (
	"maps"
	"slices"
)

// A MetricTag labels the metrics of an instance or a task: exactly one of
// Static and Dynamic is set.
type MetricTag struct {
	Static string `json:"static,omitempty"`
	// Dynamic is INDEX or INSTANCE_GUID.
	Dynamic string `json:"dynamic,omitempty"`
}

// Validate checks that exactly one field is set, and its value.
func (t MetricTag) Validate(v *Validator) {
	v.Check((t.Static == "") != (t.Dynamic == ""), "static", t.Static, "exactly one of static and dynamic")
	v.Check(t.Dynamic == "" || t.Dynamic == "INDEX" || t.Dynamic == "INSTANCE_GUID",
		"dynamic", t.Dynamic, "INDEX or INSTANCE_GUID")
}

// ValidateMetricTags checks the record's field metric_tags, in the order of
// the tags' names. If there are any, and the record has a metricsGUID, the
// static tag source_id must be that guid.
func ValidateMetricTags(v *Validator, tags map[string]MetricTag, metricsGUID string) {
	if len(tags) == 0 || !v.listLength("metric_tags", len(tags)) {
		return
	}
	in := v.In("metric_tags")
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		tags[name].Validate(in.In(name))
	}
	if metricsGUID != "" {
		in.Check(tags["source_id"].Static == metricsGUID, "source_id", tags["source_id"].Static, "the static tag "+metricsGUID)
	}
}
