package rep

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
)

func TestTheLabelsOfAContainerComeFromItsTags(t *testing.T) {
	index := 3
	process := NewReservation("i", &auction.Item{Key: auction.Key{Kind: auction.LRP, GUID: "web", Domain: "apps", Index: 3, DefinitionID: "v1"}}).Tags
	setMetricTags(process, map[string]executor.MetricTag{"team": {Static: "blog"}})
	job := NewReservation("t", &auction.Item{Key: auction.Key{Kind: auction.Task, GUID: "job", Domain: "apps"}}).Tags
	setMetricTags(job, nil)
	damaged := map[string]string{executor.TagMetricTags: "{"}
	for _, c := range []struct {
		name, log, metrics string
		tags               map[string]string
		want               LogLabels
	}{
		{"of a process", "", "source", process, LogLabels{LogGUID: "web", InstanceGUID: "c", Domain: "apps", Index: &index, Tags: map[string]string{"team": "blog", "source_id": "source"}}},
		{"of a process with a log guid", "log", "", process, LogLabels{LogGUID: "log", InstanceGUID: "c", Domain: "apps", Index: &index, Tags: map[string]string{"team": "blog"}}},
		{"of a task", "", "", job, LogLabels{LogGUID: "job", InstanceGUID: "c", Domain: "apps"}},
		{"not from a rep", "", "", damaged, LogLabels{InstanceGUID: "c"}},
	} {
		got := LabelsOf("c", c.log, c.metrics, c.tags)
		if len(got.Tags) == 0 {
			got.Tags = nil
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
