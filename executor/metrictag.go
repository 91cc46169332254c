package executor

import (
	"maps"
	"slices"
)

// The values of MetricTag.Dynamic.
const (
	MetricTagIndex        = "INDEX"
	MetricTagInstanceGUID = "INSTANCE_GUID"
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
	v.Check(t.Dynamic == "" || t.Dynamic == MetricTagIndex || t.Dynamic == MetricTagInstanceGUID,
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

// ResolveMetricTags returns the texts of the tags of one instance: a dynamic tag
// is its index or its guid. A metricsGUID is the tag source_id, also without
// other tags. A task has no index, so it has no tag INDEX. The result is nil if
// there is none.
func ResolveMetricTags(tags map[string]MetricTag, metricsGUID, index, instanceGUID string) map[string]string {
	resolved := map[string]string{}
	if metricsGUID != "" {
		resolved["source_id"] = metricsGUID
	}
	for name, t := range tags { //lint:maporder each tag is for itself
		text := t.Static
		switch t.Dynamic {
		case MetricTagIndex:
			text = index
		case MetricTagInstanceGUID:
			text = instanceGUID
		}
		if text != "" {
			resolved[name] = text
		}
	}
	if len(resolved) == 0 {
		return nil
	}
	return resolved
}
