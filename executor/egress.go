package executor

// An EgressRule allows outgoing traffic.
type EgressRule struct {
	// Protocol is tcp, udp, icmp, icmpv6 or all.
	Protocol string `json:"protocol"`
	// Destinations are IP addresses, CIDR blocks or ranges "from-to"; one
	// entry may hold several, separated by commas.
	Destinations []string `json:"destinations"`
	// Ports or PortRange are required for tcp and udp, and refused otherwise.
	Ports     []uint16   `json:"ports,omitempty"`
	PortRange *PortRange `json:"port_range,omitempty"`
	// ICMP is required for icmp and icmpv6, and refused otherwise.
	ICMP *ICMPInfo `json:"icmp,omitempty"`
	// Log asks for a log line per new connection.
	Log         bool     `json:"log,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// PortRange is from Start to End, both included.
type PortRange struct {
	Start uint16 `json:"start"`
	End   uint16 `json:"end"`
}

// ICMPInfo selects ICMP messages; -1 means any.
type ICMPInfo struct {
	Type int32 `json:"type"`
	Code int32 `json:"code"`
}
