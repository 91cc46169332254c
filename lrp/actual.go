package lrp

import (
	"time"

	"github.com/diegosdk/diego/internal/enum"
)

// A Key says which place an ActualLRP fills.
type Key struct {
	ProcessGUID  string `json:"process_guid"`
	DefinitionID string `json:"definition_id"`
	Index        int    `json:"index"`
	Domain       string `json:"domain"`
}

// An InstanceKey names one instance on one cell: the α, β and ω of the
// specification's tables. Both are empty for an instance on no
// cell.
type InstanceKey struct {
	InstanceGUID string `json:"instance_guid"`
	CellID       string `json:"cell_id"`
}

// IsZero reports whether k names no instance.
func (k InstanceKey) IsZero() bool { return k == InstanceKey{} }

// NetInfo says how to reach a RUNNING instance. It is empty in other states.
type NetInfo struct {
	// Address is the cell's address as seen from outside.
	Address string `json:"address"`
	// Ports map container ports to ports of Address. Copies of a NetInfo share the
	// slice, so nobody may change it.
	Ports []PortMapping `json:"ports"`
	// InstanceAddress is the container's own address, if it has one.
	InstanceAddress string `json:"instance_address,omitempty"`
	// PreferredAddress says which of the two routers should use: see
	// [NetInfo.Endpoint].
	PreferredAddress PreferredAddress `json:"preferred_address,omitzero"`
}

// A PreferredAddress is the operator's choice for the instances of a cell.
type PreferredAddress uint8

const (
	// PreferNone leaves the choice to routers.
	PreferNone PreferredAddress = iota
	// PreferInstance is for routers that reach the containers' network. That of
	// executor/libcontainer is reached only from the cell's own host.
	PreferInstance
	// PreferHost is for routers that reach only the cells.
	PreferHost
)

var preferences = enum.Names[PreferredAddress]{PreferNone: "UNKNOWN", PreferInstance: "INSTANCE", PreferHost: "HOST"}

// String is "UNKNOWN", "INSTANCE" or "HOST".
func (p PreferredAddress) String() string { return preferences.Of(p) }

// MarshalText fails on a value that is not one of the constants.
func (p PreferredAddress) MarshalText() ([]byte, error) {
	return preferences.Marshal("preferred_address", p)
}

// UnmarshalText accepts only the three words, upper case.
func (p *PreferredAddress) UnmarshalText(text []byte) error {
	return preferences.Unmarshal("preferred_address", p, text)
}

// Endpoint returns where a router reaches a container port: at the container
// itself if that is preferred and it has an address, otherwise at the cell. ok
// is false if the cell maps no port to it.
func (n *NetInfo) Endpoint(containerPort uint16) (address string, port uint16, ok bool) {
	if n.PreferredAddress == PreferInstance && n.InstanceAddress != "" {
		return n.InstanceAddress, containerPort, true
	}
	for _, p := range n.Ports {
		if p.ContainerPort == containerPort {
			return n.Address, p.HostPort, true
		}
	}
	return "", 0, false
}

// A PortMapping makes ContainerPort reachable as HostPort.
type PortMapping struct {
	ContainerPort uint16 `json:"container_port"`
	HostPort      uint16 `json:"host_port"`
}

// An ActualLRP is the record of one instance. A record is a value: its holder
// may keep it, and nobody may change what it points to.
type ActualLRP struct {
	Key
	InstanceKey
	NetInfo
	State    State    `json:"state"`
	Presence Presence `json:"presence"`
	// CrashCount is the number of crashes since it was last reset.
	CrashCount int `json:"crash_count"`
	// CrashReason is why the instance crashed last, at most 1024 bytes.
	CrashReason string `json:"crash_reason,omitempty"`
	// PlacementError is why no cell was found; set only while UNCLAIMED.
	PlacementError PlacementError `json:"placement_error"`
	// Since is when State last changed.
	Since time.Time `json:"since"`
	// RunningSince is when the instance became RUNNING; zero in other states.
	// Changes of addresses and readiness do not change it.
	RunningSince time.Time `json:"running_since,omitzero"`
	// ExpiresAt is when an EVACUATING record is removed; zero otherwise.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Stopping is when the control plane first told the cell to stop the instance;
	// zero unless it did. Such an instance still runs but counts as one that does
	// not: it replaces nothing, and no budget relies on it. Reports of the cell
	// keep the mark until the instance has ended.
	Stopping time.Time `json:"stopping,omitzero"`
	// Routable says whether a RUNNING instance should receive traffic.
	Routable bool `json:"routable"`
	// Zone is the availability zone of the holding cell.
	Zone string `json:"zone,omitempty"`
	// InternalRoutes and MetricTags are the labels that the process gives to a
	// RUNNING instance; see [RoutingInfo.Labels]. A BBS adds them for readers that
	// ask for labels, as they are at that time. They are not part of the record:
	// Step ignores them and no store has them.
	InternalRoutes  []InternalRoute   `json:"internal_routes,omitempty"`
	MetricTags      map[string]string `json:"metric_tags,omitempty"`
	ModificationTag ModificationTag   `json:"modification_tag"`
}

// stays reports whether the instance is RUNNING and was not told to stop.
func (r *ActualLRP) stays() bool { return r.State == Running && r.Stopping.IsZero() }

// A Slot is everything recorded at one index of one process: at most one record
// per definition and presence, in that order. It is the unit of decision. A
// Slot with only its process guid and index set is an index without records.
type Slot struct {
	ProcessGUID string      `json:"process_guid"`
	Index       int         `json:"index"`
	Records     []ActualLRP `json:"records"`
}
