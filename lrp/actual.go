package lrp

import "time"

// A Key says which place an ActualLRP fills.
type Key struct {
	ProcessGUID  string `json:"process_guid"`
	DefinitionID string `json:"definition_id"`
	Index        int    `json:"index"`
	Domain       string `json:"domain"`
}

// An InstanceKey names one instance on one cell: the α, β and ω of the
// specification's tables. It is zero for an instance on no cell.
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
	// slice, and nobody changes it.
	Ports []PortMapping `json:"ports"`
	// InstanceAddress is the container's own address, if it has one.
	InstanceAddress string `json:"instance_address,omitempty"`
}

// A PortMapping makes ContainerPort reachable as HostPort.
type PortMapping struct {
	ContainerPort uint16 `json:"container_port"`
	HostPort      uint16 `json:"host_port"`
}

// An ActualLRP is the record of one instance. A record is a value: its
// holder may keep it, and nobody changes what it points to.
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
	// Routable says whether a RUNNING instance should receive traffic.
	Routable bool `json:"routable"`
	// Zone is the availability zone of the holding cell.
	Zone            string          `json:"zone,omitempty"`
	ModificationTag ModificationTag `json:"modification_tag"`
}

// A Slot is everything recorded at one index of one process: at most one record
// per definition and presence, in that order. It is the unit of decision. A
// Slot with only its process guid and index set is an index without records.
type Slot struct {
	ProcessGUID string      `json:"process_guid"`
	Index       int         `json:"index"`
	Records     []ActualLRP `json:"records"`
}
