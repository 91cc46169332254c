package specfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/diegosdk/diego/executor"
)

// Meaning is the JSON of an LRP, a deployment, a task, or a part of one, as maps,
// lists and leaves. It leaves out what means the same as nothing: members that are
// given as their defaults, and objects that are empty then. Defaults that a control
// plane or a cell chooses stay. The error is that of a value without JSON.
func Meaning(v any) (out any, err error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	return meaning("", out), nil
}

// A defaulted is a member with a default other than zero, which encoding/json
// leaves out by itself. An empty parent stands for all.
type defaulted struct{ parent, member, value string }

var defaults = []defaulted{
	{"", "cpu_weight", fmt.Sprint(executor.MaxCPUWeight)},
	{"rollout_policy", "max_in_flight", "1"},
	{"resource_limits", "nofile", fmt.Sprint(executor.DefaultNofile)},
	{"http", "path", "/"},
	{"http", "request_timeout_ms", fmt.Sprint(executor.DefaultCheckTimeout.Milliseconds())},
	{"tcp", "connect_timeout_ms", fmt.Sprint(executor.DefaultCheckTimeout.Milliseconds())},
}

// emptied are the objects that mean nothing when they are empty.
var emptied = []string{"restart_policy", "rollout_policy", "disruption", "network", "resource_limits"}

// userNamed are the objects whose members have names of the user's.
var userNamed = []string{"routes", "labels", "metric_tags", "extra_resources", "properties"}

// meaning is a value of JSON, which is the member name of its parent.
func meaning(name string, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = meaning(name, v[i])
		}
	case map[string]any:
		if slices.Contains(userNamed, name) {
			return v
		}
		for member := range v {
			v[member] = meaning(member, v[member])
			object, _ := v[member].(map[string]any)
			if object != nil && len(object) == 0 && slices.Contains(emptied, member) ||
				slices.ContainsFunc(defaults, func(d defaulted) bool {
					return d.member == member && (d.parent == "" || d.parent == name) && fmt.Sprint(v[member]) == d.value
				}) {
				delete(v, member)
			}
		}
	}
	return v
}
