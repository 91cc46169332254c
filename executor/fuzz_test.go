package executor_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

// fixedPoint checks that everything that decodes also encodes, unless it is invalid
// and that is the reason, and that decoding and encoding once more changes
// nothing.
func fixedPoint[T validator](t *testing.T, data []byte) {
	var first T
	if err := json.Unmarshal(data, &first); err != nil {
		return
	}
	problems := found(first)
	text, err := json.Marshal(first)
	if errors.Is(err, executor.ErrInvalid) && problems != nil {
		return
	}
	if err != nil {
		t.Fatalf("decoded and does not encode: %v", err)
	}
	var second T
	if err := json.Unmarshal(text, &second); err != nil {
		t.Fatalf("%s: encoded and does not decode: %v", text, err)
	}
	again, err := json.Marshal(second)
	if err != nil || string(again) != string(text) {
		t.Fatalf("%s became %s, %v", text, again, err)
	}
	if diff := cmp.Diff(problems, found(second)); diff != "" {
		t.Fatalf("%s: validation changed its mind:\n%s", text, diff)
	}
}

func FuzzActionJSON(f *testing.F) {
	f.Add([]byte(`{"emit_progress":{"action":{"download":{"from":"a","to":"b","user":"c","checksum":{"algorithm":"md5"}}},"start_message":"<>"}}`))
	f.Add([]byte(`{"timeout":{"action":{"try":{"action":{"run":{}}}},"timeout_ms":-1}}`))
	f.Add([]byte(`{"run":{},"run":{}}`))
	f.Add([]byte(`{"serial":{"actions":[null,{},{"jump":1}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a executor.Action
		err := a.UnmarshalJSON(data)
		if err != nil && json.Valid(data) && !errors.Is(err, executor.ErrInvalid) {
			t.Fatalf("valid JSON, and the error is %T: %v", err, err)
		}
		if err == nil {
			for a := range a.All() {
				a.Kind()
			}
		}
		fixedPoint[executor.Action](t, data)
	})
}

func FuzzRunInfoJSON(f *testing.F) {
	f.Add([]byte(`{"root_fs":"host:","action":{"run":{"path":"a","user":"b"}}}`))
	f.Add([]byte(`{"root_fs":"%zz:","ports":[],"env":[{}],"image_layers":[{}],"check":{"checks":[{}]}}`))
	f.Add([]byte(`{"egress_rules":[{"protocol":"icmp","destinations":["::1"],"icmp":{"type":-1,"code":0}}],"log_rate_limit":{"bytes_per_second":-1}}`))
	f.Add([]byte(`{"volume_mounts":[{"mode":"r","shared":{},"dedicated":{}}],"network":{"properties":{"b":"","a":""}},"sidecars":[{"memory_mb":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) { fixedPoint[executor.RunInfo](t, data) })
}

func FuzzContainerJSON(f *testing.F) {
	f.Add([]byte(`{"guid":"a","resources":{"memory_mb":1,"disk_mb":1,"max_pids":1},"state":"RESERVED","allocated_at":"2030-01-02T03:04:05Z","since":"2030-01-02T03:04:05+01:00"}`))
	f.Add([]byte(`{"state":"COMPLETED","run_result":{"failed":true,"stopped":true},"external_ip":"x","ports":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) { fixedPoint[executor.Container](t, data) })
}

func FuzzEgressRule(f *testing.F) {
	f.Add("tcp", "10.0.0.0/8,192.168.0.1-192.168.0.9", uint16(80), uint16(0), int32(0))
	f.Add("icmp", "fd00::/64", uint16(0), uint16(0), int32(-1))
	f.Add("all", "::ffff:1.2.3.4", uint16(9), uint16(8), int32(256))
	f.Fuzz(func(t *testing.T, protocol, entry string, start, end uint16, icmp int32) {
		rule := executor.EgressRule{Protocol: protocol, Destinations: []string{entry}}
		if start != 0 {
			rule.PortRange = &executor.PortRange{Start: start, End: end}
		}
		if icmp != 0 {
			rule.ICMP = &executor.ICMPInfo{Type: icmp}
		}
		problems := found(rule)
		ranges, err := executor.ParseDestinations(entry)
		if err != nil {
			if ranges != nil || problems == nil {
				t.Fatalf("%q is not a destination (%v), and the rule is valid", entry, err)
			}
			return
		}
		for _, r := range ranges {
			if !r.From.IsValid() || r.From.BitLen() != r.To.BitLen() || r.To.Less(r.From) {
				t.Fatalf("%q has the range %v", entry, r)
			}
			again, err := executor.ParseDestinations(r.String())
			if err != nil || len(again) != 1 || again[0] != r {
				t.Fatalf("%v became %v, %v", r, again, err)
			}
		}
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			r := ranges[0]
			if !prefix.Contains(r.From) || !prefix.Contains(r.To) || prefix.Contains(r.From.Prev()) || prefix.Contains(r.To.Next()) {
				t.Fatalf("%v has the range %v", prefix, r)
			}
		}
	})
}
