package lrp

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/diegosdk/diego/executor"
)

// An Update says what to change in a deployment; nil fields stay as they are.
// Everything that would need a restart changes through a new Definition with a
// new DefinitionID.
type Update struct {
	Instances  *int    `json:"instances,omitempty"`
	Routes     *Routes `json:"routes,omitempty"`
	Annotation *string `json:"annotation,omitempty"`
	// Labels replaces all labels of the process.
	Labels *map[string]string `json:"labels,omitempty"`
	// Restart replaces the whole policy. The zero policy means the control
	// plane's.
	Restart *RestartPolicy `json:"restart_policy,omitempty"`
	// Rollout replaces the whole policy. The zero policy removes it.
	Rollout *RolloutPolicy `json:"rollout_policy,omitempty"`
	// Disruption replaces the whole budget. The zero budget removes it.
	Disruption    *Disruption           `json:"disruption,omitempty"`
	MetricTags    *map[string]MetricTag `json:"metric_tags,omitempty"`
	ImageUsername *string               `json:"image_username,omitempty"`
	ImagePassword *string               `json:"image_password,omitempty"`
	DefinitionID  *string               `json:"definition_id,omitempty"`
	Definition    *Definition           `json:"definition,omitempty"`
}

// UpdateSettings returns the update that gives a deployment all settings of s.
func UpdateSettings(s Settings) Update {
	return Update{
		Instances: &s.Instances, Routes: &s.Routes, Annotation: &s.Annotation, Labels: &s.Labels, MetricTags: &s.MetricTags,
		Restart: cmp.Or(s.Restart, &RestartPolicy{}), Rollout: cmp.Or(s.Rollout, &RolloutPolicy{}),
		Disruption:    cmp.Or(s.Disruption, &Disruption{}),
		ImageUsername: &s.ImageUsername, ImagePassword: &s.ImagePassword,
	}
}

func (u Update) isZero() bool { return u == Update{} }

// MarshalJSON writes a map that is to be empty as {}: null would mean that it
// stays as it is.
func (u Update) MarshalJSON() ([]byte, error) {
	if u.Routes != nil && *u.Routes == nil {
		u.Routes = &Routes{}
	}
	if u.Labels != nil && *u.Labels == nil {
		u.Labels = &map[string]string{}
	}
	if u.MetricTags != nil && *u.MetricTags == nil {
		u.MetricTags = &map[string]MetricTag{}
	}
	type plain Update
	return json.Marshal(plain(u))
}

// UnmarshalJSON refuses every member that cannot be updated. The error names
// them.
func (u *Update) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	var v executor.Validator
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch name {
		case "instances", "routes", "annotation", "labels", "restart_policy", "rollout_policy", "disruption", "metric_tags", "image_username", "image_password",
			"definition_id", "definition":
		default:
			v.Check(false, name, "", "a member that can be updated; anything else needs a new definition")
		}
	}
	if err := v.Err(); err != nil {
		return err
	}
	type plain Update
	return json.Unmarshal(data, (*plain)(u))
}
