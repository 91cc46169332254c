package rep

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/diegosdk/diego/executor"
)

// LabelsOf returns the labels of the output of a container, without a source and
// a stream, from its tags and two fields of its definition. Metric tags are as
// they were when the container got its work.
func LabelsOf(containerGUID, logGUID, metricsGUID string, tags map[string]string) LogLabels {
	s, ours := subjectOf(executor.Container{GUID: containerGUID, Tags: tags})
	if !ours {
		s = subject{guid: containerGUID}
	}
	var metricTags map[string]executor.MetricTag
	if json.Unmarshal([]byte(tags[executor.TagMetricTags]), &metricTags) != nil {
		metricTags = nil // there are none, or not from a rep
	}
	return s.labels(logGUID, metricsGUID, tags, metricTags)
}

func (s subject) labels(logGUID, metricsGUID string, tags map[string]string, metricTags map[string]executor.MetricTag) LogLabels {
	l := LogLabels{LogGUID: cmp.Or(logGUID, s.task, s.key.ProcessGUID), InstanceGUID: s.guid, Domain: tags[executor.TagDomain]}
	index := ""
	if s.key.ProcessGUID != "" {
		l.Index, index = &s.key.Index, strconv.Itoa(s.key.Index)
	}
	l.Tags = executor.ResolveMetricTags(metricTags, metricsGUID, index, s.guid)
	return l
}

// setMetricTags adds the metric tags of a process or task to the tags of its
// container, for LabelsOf.
func setMetricTags(tags map[string]string, metricTags map[string]executor.MetricTag) {
	if text, err := json.Marshal(metricTags); err == nil && len(metricTags) > 0 { // text always encodes
		tags[executor.TagMetricTags] = string(text)
	}
}
