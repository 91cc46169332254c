package executor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

func TestAnInvalidEgressRuleIsRefusedWithItsPath(t *testing.T) {
	type R = executor.EgressRule
	here := []string{"10.0.0.1"}
	icmp := &executor.ICMPInfo{Type: -1, Code: -1}
	const destination = "want IP addresses, CIDR blocks or ranges from-to, separated by commas"
	const noICMP = "icmp: want ICMP type and code for icmp and icmpv6, and for them only"
	for _, test := range []struct {
		name string
		rule R
		want []string
	}{
		{"an unknown protocol", R{Protocol: "TCP", Destinations: here}, []string{"protocol: TCP: want tcp, udp, icmp, icmpv6 or all"}},
		{"no protocol", R{Destinations: here}, []string{"protocol: want tcp, udp, icmp, icmpv6 or all"}},
		{"no destination", R{Protocol: "all"}, []string{"destinations: 0: want at least 1 element"}},
		{"too many destinations", R{Protocol: "all", Destinations: make([]string, 10001)}, []string{"destinations: 10001: want at most 10000 elements"}},
		{"a name as destination", R{Protocol: "all", Destinations: []string{"10.0.0.1", "example.com"}}, []string{"destinations[1]: example.com: " + destination}},
		{"tcp without ports", R{Protocol: "tcp", Destinations: here}, []string{"ports: want exactly one of ports and port_range for tcp"}},
		{"udp with ports and a range", R{Protocol: "udp", Destinations: here, Ports: []uint16{1}, PortRange: &executor.PortRange{Start: 1, End: 2}},
			[]string{"ports: want exactly one of ports and port_range for udp"}},
		{"port 0", R{Protocol: "tcp", Destinations: here, Ports: []uint16{80, 0}}, []string{"ports[1]: 0: want 1 to 65535"}},
		{"a range that runs backwards", R{Protocol: "tcp", Destinations: here, PortRange: &executor.PortRange{Start: 9, End: 8}},
			[]string{"port_range.end: 8: want at least the start, 9"}},
		{"a range from port 0", R{Protocol: "tcp", Destinations: here, PortRange: &executor.PortRange{End: 8}}, []string{"port_range.start: 0: want 1 to 65535"}},
		{"tcp with icmp", R{Protocol: "tcp", Destinations: here, Ports: []uint16{1}, ICMP: icmp}, []string{noICMP}},
		{"icmp without icmp", R{Protocol: "icmp", Destinations: here}, []string{noICMP}},
		{"icmpv6 with ports", R{Protocol: "icmpv6", Destinations: here, ICMP: icmp, Ports: []uint16{1}}, []string{"ports: [1]: want no ports for icmpv6"}},
		{"icmp with a range", R{Protocol: "icmp", Destinations: here, ICMP: icmp, PortRange: &executor.PortRange{Start: 1, End: 1}},
			[]string{"port_range: want no port range for icmp"}},
		{"icmp out of range", R{Protocol: "icmp", Destinations: here, ICMP: &executor.ICMPInfo{Type: 256, Code: -2}},
			[]string{"icmp.type: 256: want -1 to 255", "icmp.code: -2: want -1 to 255"}},
		{"all with anything", R{Protocol: "all", Destinations: here, ICMP: icmp, Ports: []uint16{1}, PortRange: &executor.PortRange{Start: 1, End: 1}},
			[]string{"ports: [1]: want no ports for all", "port_range: want no port range for all", noICMP}},
		{"too many ports", R{Protocol: "tcp", Destinations: here, Ports: make([]uint16, 10001)}, []string{"ports: 10001: want at most 10000 elements"}},
		{"too many annotations", R{Protocol: "all", Destinations: here, Annotations: make([]string, 10001)}, []string{"annotations: 10001: want at most 10000 elements"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, found(test.rule)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDestinationsBecomeRanges(t *testing.T) {
	for _, test := range []struct{ entry, want string }{
		{"10.0.0.1", "10.0.0.1"},
		{"10.0.0.0/8", "10.0.0.0-10.255.255.255"},
		{"10.1.2.3/8", "10.0.0.0-10.255.255.255"},
		{"10.1.2.3/30", "10.1.2.0-10.1.2.3"},
		{"10.1.2.3/32", "10.1.2.3"},
		{"0.0.0.0/0", "0.0.0.0-255.255.255.255"},
		{"10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.9"},
		{"10.0.0.1-10.0.0.1", "10.0.0.1"},
		{"fd00::/126", "fd00::-fd00::3"},
		{"fd00::1-fd00::ff", "fd00::1-fd00::ff"},
		{"::/0", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"::/80", "::-::ffff:255.255.255.255"},
		{"::-::ffff:255.255.255.255", "::-::ffff:255.255.255.255"},
		{"10.0.0.1,fd00::1,10.0.1.0/31", "10.0.0.1 fd00::1 10.0.1.0-10.0.1.1"},
	} {
		ranges, err := executor.ParseDestinations(test.entry)
		var got []string
		for _, r := range ranges {
			got = append(got, r.String())
		}
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, %v, want %s", test.entry, got, err, test.want)
		}
	}
}

func TestTextThatIsNoDestinationIsAnError(t *testing.T) {
	for _, entry := range []string{
		"", ",", "10.0.0.1,", " 10.0.0.1", "10.0.0.1, 10.0.0.2", "10.0.0", "10.0.0.256", "010.0.0.1", "10.0.0.0/33", "10.0.0.0/-1", "fd00::/129",
		"10.0.0.9-10.0.0.1", "10.0.0.1-fd00::1", "10.0.0.1-", "-10.0.0.1", "10.0.0.1-10.0.0.2-10.0.0.3", "10.0.0.0/8-11.0.0.0/8",
		"fe80::1%eth0", "fe80::%eth0/64", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "::ffff:10.0.0.1-1::", "localhost",
		strings.Repeat("10.0.0.1,", executor.MaxListLength) + "10.0.0.1",
	} {
		ranges, err := executor.ParseDestinations(entry)
		if ranges != nil || !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("%.40q: %v, %v", entry, ranges, err)
		}
	}
}
