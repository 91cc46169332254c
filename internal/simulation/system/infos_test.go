package system_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

func TestRoutersAndSyncsListProcessesWithoutTheirDefinitions(t *testing.T) {
	s := newSystem(t, 1, nil)
	consumer := s.asked(s.ControlPlane)
	for i, guid := range []string{"a", "b", "c"} {
		l := desired(guid, i+1)
		l.Domain = map[bool]string{true: "apps", false: "tools"}[guid != "b"]
		l.Routes = lrp.Routes{"http": []byte(fmt.Sprintf(`[{"hostname":"%s.example"}]`, guid))}
		l.Annotation, l.UpdateStrategy = "of "+guid, lrp.Recreate
		l.MetricTags = map[string]lrp.MetricTag{"app": {Static: guid}}
		s.must(s.BBS.Desire(s.ctx, l))
	}
	second, v2 := "v2", desired("a", 1).Definition
	s.must(s.BBS.UpdateDeployment(s.ctx, "a", lrp.Update{DefinitionID: &second, Definition: &v2}))
	for _, test := range []struct {
		filter storage.DeploymentFilter
		want   []string
	}{
		{storage.DeploymentFilter{}, []string{"a", "b", "c"}},
		{storage.DeploymentFilter{Bare: true}, []string{"a", "b", "c"}},
		{storage.DeploymentFilter{Domains: []string{"apps"}}, []string{"a", "c"}},
		{storage.DeploymentFilter{ProcessGUIDs: []string{"c", "b", "x"}}, []string{"b", "c"}},
		{storage.DeploymentFilter{ProcessGUIDs: []string{"c", "b"}, Domains: []string{"tools"}}, []string{"b"}},
		{storage.DeploymentFilter{Domains: []string{"none"}}, nil},
	} {
		var routing []lrp.RoutingInfo
		var scheduling []lrp.SchedulingInfo
		for _, guid := range test.want {
			d, err := s.BBS.Deployment(s.ctx, guid)
			s.must(err)
			routing = append(routing, lrp.RoutingInfo{
				ProcessGUID: guid, Domain: d.Domain, Instances: d.Instances, Routes: d.Routes, MetricTags: d.MetricTags, ModificationTag: d.ModificationTag,
			})
			scheduling = append(scheduling, lrp.SchedulingInfo{
				RoutingInfo: routing[len(routing)-1], UpdateStrategy: lrp.Recreate, Annotation: "of " + guid,
				DefinitionIDs: d.DefinitionIDs(), ActiveDefinitionID: d.ActiveDefinitionID,
			})
		}
		if diff := cmp.Diff(routing, gather(s, consumer.RoutingInfos(s.ctx, test.filter))); diff != "" {
			t.Errorf("%+v: routing infos (-want +got):\n%s", test.filter, diff)
		}
		if diff := cmp.Diff(scheduling, gather(s, consumer.SchedulingInfos(s.ctx, test.filter))); diff != "" {
			t.Errorf("%+v: scheduling infos (-want +got):\n%s", test.filter, diff)
		}
	}
	if first := gather(s, consumer.SchedulingInfos(s.ctx, storage.DeploymentFilter{ProcessGUIDs: []string{"a"}}))[0]; first.ActiveDefinitionID != "v2" || !slices.Equal(first.DefinitionIDs, []string{"a", "v2"}) {
		t.Errorf("of a rollout it shows %+v", first)
	}
}

// gather is a list without errors.
func gather[T any](s *system, list iter.Seq2[T, error]) (all []T) {
	s.t.Helper()
	for v, err := range list {
		s.must(err)
		all = append(all, v)
	}
	return all
}
