package specfile_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// plain is a process with nothing that has a default.
const plain = `{"process_guid": "web", "domain": "apps", "definition_id": "v1", "definition": {"root_fs": "host:",
	"check": {"checks": [{"http": {"port": 8080}}, {"tcp": {"port": 8081}}]},
	"action": {"run": {"path": "/bin/web", "user": "nobody"}}}}`

func TestADefaultMeansTheSameWhetherItIsGivenOrNot(t *testing.T) {
	process := func(text string) any {
		d, err := specfile.Deployment("web", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	given := `{"process_guid": "web", "domain": "apps", "update_strategy": "ROLLING",
		"instances": 0, "annotation": "", "routes": {}, "labels": {}, "metric_tags": {}, "image_username": "",
		"restart_policy": {"immediate_restarts": 0}, "disruption": {"max_unavailable": 0},
		"rollout_policy": {"min_healthy_nanoseconds": 0, "max_in_flight": 1, "canary": 0, "on_failure": "KEEP_TRYING"},
		"definition_id": "v1", "definition": {"root_fs": "host:", "memory_mb": 0, "extra_resources": {}, "env": [], "ports": [], "privileged": false,
			"cpu_weight": 100, "start_timeout_ms": 0, "sidecars": [], "network": {"properties": {}}, "placement_tags": [],
			"check": {"log_source": "", "readiness_checks": [],
				"checks": [{"http": {"port": 8080, "path": "/", "request_timeout_ms": 1000, "interval_ms": 0}}, {"tcp": {"port": 8081, "connect_timeout_ms": 1000}}]},
			"action": {"run": {"path": "/bin/web", "args": [], "dir": "", "user": "nobody", "resource_limits": {"nofile": 1024}}}}}`
	if diff := cmp.Diff(meant(t, process(plain)), meant(t, process(given))); diff != "" {
		t.Errorf("(-left out +given)\n%s", diff)
	}

	k, err := specfile.Task("task", []byte(`{"task_guid": "t", "domain": "apps", "root_fs": "host:", "cpu_weight": 100, "labels": {}, "result_file": "",
		"completion_callback_url": "", "action": {"serial": {"actions": [{"run": {"path": "/bin/x", "user": "nobody", "resource_limits": {"nofile": 1024}}}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	bare, err := specfile.Task("task", []byte(`{"task_guid": "t", "domain": "apps", "root_fs": "host:",
		"action": {"serial": {"actions": [{"run": {"path": "/bin/x", "user": "nobody"}}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(meant(t, bare), meant(t, k)); diff != "" {
		t.Errorf("(-left out +given)\n%s", diff)
	}
}

// Every member that may be left out is tried: its empty value means the same as
// nothing, unless it is known to mean something.
func TestEveryMemberThatIsEmptyMeansTheSameAsNothing(t *testing.T) {
	// These ask for something even if they are empty.
	asking := map[string]bool{"monitor": true, "setup": true, "check": true, "log_rate_limit": true, "certificate_properties": true}
	var members func(of reflect.Type) map[string]reflect.Type
	members = func(of reflect.Type) map[string]reflect.Type {
		all := map[string]reflect.Type{}
		for i := range of.NumField() {
			f := of.Field(i)
			if f.Anonymous {
				for name, kind := range members(f.Type) {
					all[name] = kind
				}
				continue
			}
			if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); strings.HasPrefix(options, "omit") {
				all[name] = f.Type
			}
		}
		return all
	}
	for _, of := range []any{lrp.Settings{}, lrp.Definition{}, task.Definition{}} {
		kind := reflect.TypeOf(of)
		nothing := meant(t, of)
		found := members(kind)
		if len(found) < 5 {
			t.Fatalf("%v has only the members %v", kind, found)
		}
		for name, member := range found {
			empty := map[reflect.Kind]string{reflect.Map: "{}", reflect.Slice: "[]", reflect.Pointer: "{}", reflect.String: `""`, reflect.Bool: "false"}[member.Kind()]
			if empty == "" {
				empty = "0"
			}
			v := reflect.New(kind)
			if err := json.Unmarshal([]byte(`{"`+name+`": `+empty+`}`), v.Interface()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if same := cmp.Equal(nothing, meant(t, v.Elem().Interface())); same == asking[name] {
				t.Errorf("%v: %s as %s means nothing: %v, want %v", kind, name, empty, same, !asking[name])
			}
		}
	}
}

// What is opaque, or named by users, keeps all that it has.
func TestWhatUsersNameKeepsItsMeaning(t *testing.T) {
	for name, text := range map[string]string{
		"a route":     `{"routes": {"http": {"path": "/", "network": {}}}}`,
		"a label":     `{"labels": {"cpu_weight": "100"}}`,
		"a weight":    `{"cpu_weight": 50}`,
		"in flight":   `{"rollout_policy": {"max_in_flight": 2}}`,
		"the control": `{"restart_policy": {"max_restarts": 200}}`,
	} {
		var v, nothing struct {
			lrp.Settings
			lrp.Definition
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(meant(t, nothing), meant(t, v)) {
			t.Errorf("%s: %s means nothing", name, text)
		}
	}
	var v lrp.Settings
	if err := json.Unmarshal([]byte(`{"routes": {"http": {"path": "/", "network": {}}}}`), &v); err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(meant(t, v)); err != nil || string(text) != `{"instances":0,"routes":{"http":{"network":{},"path":"/"}}}` {
		t.Errorf("%s, %v", text, err)
	}
}

func meant(t *testing.T, v any) any {
	t.Helper()
	m, err := specfile.Meaning(v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
