package system_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
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
		{storage.DeploymentFilter{DefinitionIDs: []string{"none"}}, []string{"a", "b", "c"}},
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

func TestBareTasksComeOverHTTPWithoutTheirDefinitions(t *testing.T) {
	s := newSystem(t, 1, nil)
	large := desiredTask("job", "")
	large.Definition.VolumeMountedFiles = []executor.File{{Path: "f", Content: strings.Repeat("x", executor.MaxFilesBytes)}}
	s.must(s.BBS.DesireTask(s.ctx, large))
	whole, err := s.BBS.Task(s.ctx, "job")
	s.must(err)
	client := overHTTP(t, s.ControlPlane)
	for bare, want := range map[bool]*task.Task{false: whole, true: storage.BareTask(whole)} {
		if diff := cmp.Diff([]*task.Task{want}, gather(s, client.Tasks(s.ctx, storage.TaskFilter{Bare: bare}))); diff != "" {
			t.Errorf("bare: %v (-want +got):\n%s", bare, diff)
		}
	}
}

func TestADeploymentComesOverHTTPWithTheDefinitionsThatAreAskedFor(t *testing.T) {
	s := newSystem(t, 1, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	second, v2 := "v2", desired("web", 1).Definition
	v2.VolumeMountedFiles = []executor.File{{Path: "f", Content: strings.Repeat("x", executor.MaxFilesBytes)}}
	s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{DefinitionID: &second, Definition: &v2}))
	whole, err := s.BBS.Deployment(s.ctx, "web")
	s.must(err)
	client := overHTTP(t, s.ControlPlane)
	for _, ids := range [][]string{{"web"}, {"v2"}, {"none"}, {"v2", "web"}} {
		got := gather(s, client.Deployments(s.ctx, storage.DeploymentFilter{ProcessGUIDs: []string{"web"}, DefinitionIDs: ids}))
		if diff := cmp.Diff([]*lrp.Deployment{storage.WithDefinitions(whole, ids...)}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", ids, diff)
		}
	}
}

func TestConsumersReadLabelsOfInstancesIfTheyAsk(t *testing.T) {
	s := newSystem(t, 2, nil)
	l := desired("web", 2)
	l.Routes = lrp.Routes{lrp.InternalRouter: []byte(`[{"hostname":"web.internal"}]`), "http": []byte(`[{"hostname":"web.example"}]`)}
	l.MetricTags = map[string]lrp.MetricTag{"app": {Static: "web"}, "index": {Dynamic: executor.MetricTagIndex}}
	s.must(s.BBS.Desire(s.ctx, l))
	s.must(s.BBS.Desire(s.ctx, desired("plain", 1)))
	for range 3 {
		s.step()
	}
	shown := func(r *lrp.ActualLRP) string {
		return fmt.Sprintf("%s/%d %v %v %v", r.ProcessGUID, r.Index, r.State, r.InternalRoutes, r.MetricTags)
	}
	want := []string{
		"plain/0 RUNNING [] map[]",
		"web/0 RUNNING [{web.internal}] map[app:web index:0]", "web/1 RUNNING [{web.internal}] map[app:web index:1]",
	}
	f := storage.ActualLRPFilter{Labels: true}
	lists := map[string][]lrp.ActualLRP{
		"ActualLRPs": gather(s, s.BBS.ActualLRPs(s.ctx, f)), "ResolvedLRPs": gather(s, s.BBS.ResolvedLRPs(s.ctx, f)),
	}
	for _, g := range gather(s, s.BBS.ActualLRPGroups(s.ctx, f)) {
		lists["ActualLRPGroups"] = append(lists["ActualLRPGroups"], *g.Instance)
	}
	for name, list := range lists {
		var got []string
		for i := range list {
			got = append(got, shown(&list[i]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, r := range gather(s, s.BBS.ResolvedLRPs(s.ctx, storage.ActualLRPFilter{})) {
		if r.InternalRoutes != nil || r.MetricTags != nil {
			t.Errorf("without asking: %s", shown(&r))
		}
	}

	// Old events and those that a subscriber waits for have the labels of now.
	routes := lrp.Routes{lrp.InternalRouter: []byte(`[{"hostname":"www.internal"}]`)}
	s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{Routes: &routes}))
	events, err := s.BBS.Subscribe(s.ctx, bbs.FromStart, storage.EventFilter{
		Kinds: []string{lrp.InstanceChanged.String(), lrp.InstanceRemoved.String()}, ProcessGUIDs: []string{"web"}, Indices: []int{1}, Labels: true,
	})
	s.must(err)
	var seen []string
	for e, err := range events {
		s.must(err)
		switch r := e.LRP.After; {
		case r == nil:
			seen = append(seen, "removed: "+shown(e.LRP.Before))
		case !r.Stopping.IsZero():
			seen = append(seen, "to stop: "+shown(r))
			s.must(s.BBS.RemoveLRP(s.ctx, "web", 1, lrp.Remove{Instance: r.InstanceKey}))
		case r.State == lrp.Running:
			seen = append(seen, shown(r))
			// The subscriber waits for what follows.
			instances := 1
			s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{Instances: &instances}))
		default:
			seen = append(seen, shown(r))
		}
		if e.LRP.After == nil {
			break
		}
	}
	if diff := cmp.Diff([]string{
		"web/1 CLAIMED [] map[]", "web/1 RUNNING [{www.internal}] map[app:web index:1]",
		"to stop: web/1 RUNNING [{www.internal}] map[app:web index:1]", "removed: web/1 RUNNING [{www.internal}] map[app:web index:1]",
	}, seen); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
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
