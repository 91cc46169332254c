package executor

import (
	"fmt"
	"net/netip"
	"strings"
)

// The protocols of an EgressRule.
const (
	ProtocolTCP    = "tcp"
	ProtocolUDP    = "udp"
	ProtocolICMP   = "icmp"
	ProtocolICMPv6 = "icmpv6"
	// ProtocolAll is every protocol, those without a name here included.
	ProtocolAll = "all"
)

// An EgressRule allows outgoing traffic. It applies to the address and port
// that the container dials, even if a port mapping then leads elsewhere.
type EgressRule struct {
	// Protocol is tcp, udp, icmp, icmpv6 or all.
	Protocol string `json:"protocol"`
	// Destinations are IP addresses, CIDR blocks or ranges "from-to"; one
	// entry may hold several, separated by commas, without spaces.
	// [ParseDestinations] reads an entry.
	Destinations []string `json:"destinations"`
	// Exactly one of Ports and PortRange is required for tcp and udp, and
	// both are refused otherwise.
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

// Validate checks 1 ≤ Start ≤ End.
func (r PortRange) Validate(v *Validator) {
	v.port("start", r.Start)
	v.Check(r.Start <= r.End, "end", r.End, fmt.Sprintf("at least the start, %d", r.Start))
}

// ICMPInfo selects ICMP messages; -1 means any.
type ICMPInfo struct {
	Type int32 `json:"type"`
	Code int32 `json:"code"`
}

// Validate checks that type and code are of one byte, or -1.
func (i ICMPInfo) Validate(v *Validator) {
	v.Check(-1 <= i.Type && i.Type <= 255, "type", i.Type, "-1 to 255")
	v.Check(-1 <= i.Code && i.Code <= 255, "code", i.Code, "-1 to 255")
}

// Validate checks the destinations and that the rule has what its protocol
// needs and nothing else.
func (r EgressRule) Validate(v *Validator) {
	ports, icmp := false, false
	switch r.Protocol {
	case ProtocolTCP, ProtocolUDP:
		ports = true
	case ProtocolICMP, ProtocolICMPv6:
		icmp = true
	case ProtocolAll:
	default:
		v.Check(false, "protocol", r.Protocol, "tcp, udp, icmp, icmpv6 or all")
		return
	}

	v.atLeastOne("destinations", len(r.Destinations))
	if v.listLength("destinations", len(r.Destinations)) {
		for i, entry := range r.Destinations {
			_, err := ParseDestinations(entry)
			v.Check(err == nil, fmt.Sprintf("destinations[%d]", i), entry, destinationLimit)
		}
	}

	if ports {
		v.Check((len(r.Ports) > 0) != (r.PortRange != nil), "ports", "", "exactly one of ports and port_range for "+r.Protocol)
	} else {
		v.Check(len(r.Ports) == 0, "ports", r.Ports, "no ports for "+r.Protocol)
		v.Check(r.PortRange == nil, "port_range", "", "no port range for "+r.Protocol)
	}
	if v.listLength("ports", len(r.Ports)) {
		for i, port := range r.Ports {
			v.port(fmt.Sprintf("ports[%d]", i), port)
		}
	}
	if r.PortRange != nil {
		r.PortRange.Validate(v.In("port_range"))
	}

	v.Check((r.ICMP != nil) == icmp, "icmp", "", "ICMP type and code for icmp and icmpv6, and for them only")
	if r.ICMP != nil {
		r.ICMP.Validate(v.In("icmp"))
	}
	v.listLength("annotations", len(r.Annotations))
}

// egressMatches counts what rules match: see MaxEgressMatches.
func egressMatches(rules []EgressRule) (matches int) {
	for _, r := range rules {
		ranges := 0
		for _, entry := range r.Destinations {
			ranges += 1 + strings.Count(entry, ",")
		}
		matches += ranges * max(1, len(r.Ports))
	}
	return matches
}

// An AddrRange holds the addresses from From to To, both included and of one
// family.
type AddrRange struct {
	From, To netip.Addr
}

// String returns the address if there is only one, and otherwise "from-to".
func (r AddrRange) String() string {
	if r.From == r.To {
		return r.From.String()
	}
	return r.From.String() + "-" + r.To.String()
}

const destinationLimit = "IP addresses, CIDR blocks or ranges from-to, separated by commas"

// ParseDestinations reads one entry of EgressRule.Destinations. Its ranges are
// in the entry's order and may overlap. A CIDR block stands for all of its
// addresses; bits after the prefix are ignored. IPv6 zones and IPv4 addresses
// in IPv6 form are refused, because it is unclear which packets they would
// match; only the end of an IPv6 range may be one, as that of ::/80 is. An error
// is a *ValidationError.
func ParseDestinations(entry string) ([]AddrRange, error) {
	var ranges []AddrRange
	for i, text := range strings.Split(entry, ",") {
		r, ok := parseDestination(text)
		if !ok || i >= MaxListLength {
			var v Validator
			v.Check(false, "destinations", text, destinationLimit)
			return nil, v.Err()
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

func parseDestination(text string) (AddrRange, bool) {
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || !plain(prefix.Addr()) {
			return AddrRange{}, false
		}
		return AddrRange{prefix.Masked().Addr(), lastAddr(prefix)}, true
	}
	fromText, toText, isRange := strings.Cut(text, "-")
	if !isRange {
		toText = fromText
	}
	from, fromErr := netip.ParseAddr(fromText)
	to, toErr := netip.ParseAddr(toText)
	ok := fromErr == nil && toErr == nil && plain(from) && to.Zone() == "" &&
		from.BitLen() == to.BitLen() && from.Compare(to) <= 0
	return AddrRange{from, to}, ok
}

func plain(a netip.Addr) bool { return a.Zone() == "" && !a.Is4In6() }

// lastAddr is the highest address of a CIDR block.
func lastAddr(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes) // 4 or 16 bytes, as they were
	return last
}
