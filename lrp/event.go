package lrp

import "github.com/diegosdk/diego/internal/enum"

// An EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events about a slot. Instance events report single records.
// Group events report what a router should know about one definition at one
// index: created adds a route, removed withdraws it (000 §Suspect Cells).
const (
	InstanceCreated EventKind = iota + 1
	InstanceChanged
	InstanceRemoved
	InstanceCrashed
	GroupCreated
	GroupChanged
	GroupRemoved

	// Deployment events report what is desired. Desired events report the same as
	// a DesiredLRP: they come only if the active definition's projection changes,
	// appears or disappears.
	DeploymentCreated
	DeploymentChanged
	DeploymentRemoved
	DesiredCreated
	DesiredChanged
	DesiredRemoved
)

var eventKinds = enum.Names[EventKind]{
	InstanceCreated: "actual_lrp_instance_created",
	InstanceChanged: "actual_lrp_instance_changed",
	InstanceRemoved: "actual_lrp_instance_removed",
	InstanceCrashed: "actual_lrp_crashed",
	GroupCreated:    "actual_lrp_created",
	GroupChanged:    "actual_lrp_changed",
	GroupRemoved:    "actual_lrp_removed",

	DeploymentCreated: "lrp_deployment_created",
	DeploymentChanged: "lrp_deployment_changed",
	DeploymentRemoved: "lrp_deployment_removed",
	DesiredCreated:    "desired_lrp_created",
	DesiredChanged:    "desired_lrp_changed",
	DesiredRemoved:    "desired_lrp_removed",
}

// String is the kind's name, for example "actual_lrp_instance_created".
func (k EventKind) String() string { return eventKinds.Of(k) }

// MarshalText fails on a value that is not a kind.
func (k EventKind) MarshalText() ([]byte, error) { return eventKinds.Marshal("kind", k) }

// UnmarshalText accepts only the names of kinds.
func (k *EventKind) UnmarshalText(text []byte) error { return eventKinds.Unmarshal("kind", k, text) }

// An Event says what changed. Created events have no Before, and removed events
// no After. A crashed event has the record before the crash (nil if it was
// lost) and after it (nil if it was removed).
type Event struct {
	Kind   EventKind  `json:"kind"`
	Before *ActualLRP `json:"before,omitempty"`
	After  *ActualLRP `json:"after,omitempty"`
	// DeploymentBefore and DeploymentAfter are set in Deployment and Desired
	// events, in place of Before and After.
	DeploymentBefore *Deployment `json:"deployment_before,omitempty"`
	DeploymentAfter  *Deployment `json:"deployment_after,omitempty"`
	// Cause is the command that made the change.
	Cause Cause `json:"cause"`
}
