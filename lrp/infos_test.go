package lrp_test

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

func TestARouterReachesAnInstanceWhereItsCellPrefers(t *testing.T) {
	ports := []lrp.PortMapping{{ContainerPort: 8080, HostPort: 61001}, {ContainerPort: 8443, HostPort: 61002}}
	for _, test := range []struct {
		name string
		info lrp.NetInfo
		port uint16
		want string
		at   uint16
	}{
		{"no preference", lrp.NetInfo{Address: "host", InstanceAddress: "own", Ports: ports}, 8443, "host", 61002},
		{"the host", lrp.NetInfo{Address: "host", InstanceAddress: "own", Ports: ports, PreferredAddress: lrp.PreferHost}, 8080, "host", 61001},
		{"the instance", lrp.NetInfo{Address: "host", InstanceAddress: "own", Ports: ports, PreferredAddress: lrp.PreferInstance}, 8080, "own", 8080},
		{"the instance, at a port that is not mapped", lrp.NetInfo{Address: "host", InstanceAddress: "own", PreferredAddress: lrp.PreferInstance}, 9, "own", 9},
		{"an instance without an address", lrp.NetInfo{Address: "host", Ports: ports, PreferredAddress: lrp.PreferInstance}, 8080, "host", 61001},
		{"a port that is not mapped", lrp.NetInfo{Address: "host", Ports: ports}, 9, "", 0},
		{"nothing", lrp.NetInfo{}, 8080, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			address, port, ok := test.info.Endpoint(test.port)
			if address != test.want || port != test.at || ok != (test.want != "") {
				t.Errorf("got %s:%d, %v, want %s:%d", address, port, ok, test.want, test.at)
			}
		})
	}
}

func TestRoutesWithinTheFleetAreRefusedIfNobodyCanReadThem(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "", `null`: "", `[{"hostname":"a.internal"},{"hostname":"b.internal","port":1}]`: "",
		`{}`: "cannot unmarshal", `["a"]`: "cannot unmarshal", `[{"host":"a"}]`: `hostname "" of route 0 has 0 bytes`,
		`[{"hostname":"` + strings.Repeat("x", 256) + `"}]`: "has 256 bytes",
	} {
		l := lrp.DesiredLRP{
			ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Routes: lrp.Routes{lrp.InternalRouter: []byte(text)}},
			Definition: lrp.Definition{RunInfo: executor.RunInfo{RootFS: "host:", Action: executor.Action{Run: &executor.RunAction{Path: "/a", User: "u"}}}},
		}
		err := l.Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (!errors.Is(err, executor.ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "routes.internal-router")):
			t.Errorf("%s: %v, want it to be invalid: %s", text, err, want)
		}
	}
}

func TestASchedulingInfoHasEverySettingButSecrets(t *testing.T) {
	d := lrp.Deployment{Settings: lrp.Settings{
		Instances: 2, Routes: lrp.Routes{"http": []byte(`1`)}, Annotation: "a", Labels: map[string]string{"a": "b"}, Policies: lrp.Policies{Restart: &lrp.RestartPolicy{}, Rollout: &lrp.RolloutPolicy{}, Disruption: &lrp.Disruption{}}, MetricTags: map[string]lrp.MetricTag{"a": {Static: "b"}},
		ImageUsername: "user", ImagePassword: "secret",
	}}
	settings, info := reflect.ValueOf(d.Settings), reflect.ValueOf(d.SchedulingInfo())
	for i := range settings.NumField() {
		name := settings.Type().Field(i).Name
		if settings.Field(i).IsZero() {
			t.Errorf("the test does not set %s", name)
		}
		got := info.FieldByName(name)
		switch secret := name == "ImageUsername" || name == "ImagePassword"; {
		case secret && got.IsValid():
			t.Errorf("a scheduling info shows %s", name)
		case !secret && (!got.IsValid() || !reflect.DeepEqual(got.Interface(), settings.Field(i).Interface())):
			t.Errorf("a scheduling info lacks %s", name)
		}
	}
}

func TestOnlyARunningInstanceHasLabelsWithItsIndexAndGUID(t *testing.T) {
	info := lrp.RoutingInfo{
		Routes: lrp.Routes{"http": []byte(`1`), lrp.InternalRouter: []byte(`[{"hostname":"a.internal"}]`)},
		MetricTags: map[string]lrp.MetricTag{
			"app": {Static: "web"}, "at": {Dynamic: executor.MetricTagIndex}, "id": {Dynamic: executor.MetricTagInstanceGUID},
		},
	}
	r := lrp.ActualLRP{Key: lrp.Key{Index: 7}, InstanceKey: lrp.InstanceKey{InstanceGUID: "i-1"}, State: lrp.Running}
	info.Labels()(&r)
	if want := []lrp.InternalRoute{{Hostname: "a.internal"}}; !reflect.DeepEqual(r.InternalRoutes, want) {
		t.Errorf("internal routes %v, want %v", r.InternalRoutes, want)
	}
	if want := map[string]string{"app": "web", "at": "7", "id": "i-1"}; !maps.Equal(r.MetricTags, want) {
		t.Errorf("metric tags %v, want %v", r.MetricTags, want)
	}
	for _, state := range []lrp.State{lrp.Unclaimed, lrp.Claimed, lrp.Crashed} {
		r.State = state
		if info.Labels()(&r); r.InternalRoutes != nil || r.MetricTags != nil {
			t.Errorf("a %v instance has the labels %v %v", state, r.InternalRoutes, r.MetricTags)
		}
	}
	r.State, info.Routes[lrp.InternalRouter] = lrp.Running, []byte(`"of before they were validated"`)
	if info.Labels()(&r); r.InternalRoutes != nil || len(r.MetricTags) != 3 {
		t.Errorf("with routes that cannot be read it has the labels %v %v", r.InternalRoutes, r.MetricTags)
	}
}
