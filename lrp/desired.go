package lrp

import (
	"encoding/json"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
)

// Routes hold JSON for each router. The key is the router's name of 1 to 255
// bytes. The JSON is opaque, except for that of the [InternalRouter].
// docs/daemons.md says under "Routers and syncs" how a router reads them.
type Routes map[string]json.RawMessage

// A MetricTag labels the metrics of an instance.
type MetricTag = executor.MetricTag

// Settings are the parts that may change without restarting an instance (000
// §DesiredLRPs, 002 §Updating DesiredLRPs).
type Settings struct {
	// Instances is the number of indices wanted, counted from 0; at most 100,000.
	Instances int `json:"instances"`
	// Routes is at most 128 KiB in all, with the names of the routers and with the
	// escapes of encoding/json.
	Routes Routes `json:"routes,omitempty"`
	// Annotation is free text of at most 10 KiB.
	Annotation string `json:"annotation,omitempty"`
	// Labels are keys and values by which consumers choose processes: at most 32,
	// each key and each value with at most 128 letters, digits and - _ . / : @, a
	// letter or digit at both ends. Values may be empty. Stores do not encrypt them.
	Labels map[string]string `json:"labels,omitempty"`
	Policies
	// MetricTags label the output of every instance; see rep.LogLabels and
	// docs/logs.md.
	MetricTags map[string]MetricTag `json:"metric_tags,omitempty"`
	// ImageUsername and ImagePassword are set together or not at all. They are
	// for cells of other modules that log in to a registry; the cells of this one
	// refuse work that has them. See executor.Demands.
	ImageUsername string `json:"image_username,omitempty"`
	ImagePassword string `json:"image_password,omitempty"`
}

// Policies are the settings by which a process departs from the control plane's
// own rules. [Step] and the planners use them.
type Policies struct {
	// Restart is when a crashed instance starts again. A field that is zero takes
	// the control plane's value; all do if Restart is nil. Other values may only
	// make restarts rarer; see RestartPolicy.Within.
	Restart *RestartPolicy `json:"restart_policy,omitempty"`
	// Rollout is how rollouts of the process proceed. Without it, one index at a
	// time moves to the new definition, and an old instance stops when the new one
	// runs. See docs/deployments.md.
	Rollout *RolloutPolicy `json:"rollout_policy,omitempty"`
	// Disruption is how many indices may be without a ready instance because the
	// control plane takes one away. Without it, nothing is counted: an instance is
	// replaced as soon as the new one runs, ready or not.
	Disruption *Disruption `json:"disruption,omitempty"`
}

// A Definition says how an instance is scheduled and what runs in it. It never
// changes; a deployment moves from one definition to another (003
// §LRPDeployment).
type Definition struct {
	executor.Resources
	executor.RunInfo
	// PlacementTags select the cells. A cell is selected if all its required tags
	// are among these, and if each of these is among its required and optional
	// tags. A new definition has at most 100, and none twice.
	PlacementTags []string `json:"placement_tags,omitempty"`
}

// An UpdateStrategy says how an evacuated instance is replaced.
type UpdateStrategy uint8

const (
	// Rolling starts the replacement before the old instance stops.
	Rolling UpdateStrategy = iota
	// Recreate stops the old instance first: at one index at a time, or at as many
	// as the Disruption of the process allows.
	Recreate
)

var strategies = enum.Names[UpdateStrategy]{Rolling: "ROLLING", Recreate: "RECREATE"}

// String is "ROLLING" or "RECREATE".
func (u UpdateStrategy) String() string { return strategies.Of(u) }

// MarshalText fails on a value that is not a strategy.
func (u UpdateStrategy) MarshalText() ([]byte, error) {
	return strategies.Marshal("update_strategy", u)
}

// UnmarshalText accepts only the two words, upper case.
func (u *UpdateStrategy) UnmarshalText(text []byte) error {
	return strategies.Unmarshal("update_strategy", u, text)
}

// A DesiredLRP says that Instances of one definition should run. Consumers that
// know one definition only see a Deployment in this form.
type DesiredLRP struct {
	ProcessGUID    string         `json:"process_guid"`
	Domain         string         `json:"domain"`
	UpdateStrategy UpdateStrategy `json:"update_strategy"`
	Settings
	Definition
	ModificationTag ModificationTag `json:"modification_tag"`
}
