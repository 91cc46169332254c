package executor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
)

// demanding has every field that a cell may refuse.
var demanding = executor.ContainerSpec{
	GUID: "g", RootFS: "preloaded:linux", Resources: executor.Resources{MemoryMB: 1, DiskMB: 1, MaxPIDs: 1},
	CPUWeight: 50, Privileged: true, EgressRules: []executor.EgressRule{{Protocol: executor.ProtocolAll}},
	NetworkProperties: map[string]string{"app": "a1"}, CertificateProperties: &executor.CertificateConfig{},
	ImageUsername: "u", ImagePassword: "secret",
}

func TestAHostRefusesByNameEachFieldThatItCannotHonour(t *testing.T) {
	everything := executor.Host{Isolated: true}
	for _, d := range executor.Demands() {
		everything.Features = append(everything.Features, executor.Feature{Name: d.Feature})
	}
	if err := everything.Refuse(&demanding); err != nil {
		t.Errorf("a host with every feature: %v", err)
	}
	for i, d := range executor.Demands() {
		t.Run(d.Field, func(t *testing.T) {
			h := everything
			h.Features = slices.Clone(h.Features)
			h.Features[i].Missing = "no such thing"
			err := h.Refuse(&demanding)
			want := `container "g": not supported here: ` + d.Field + " (" + string(d.Feature) + "): no such thing"
			if !errors.Is(err, executor.ErrUnsupported) || err.Error() != want {
				t.Errorf("an isolated host says %v, want %s", err, want)
			}
			h.Isolated = false
			if err := h.Refuse(&demanding); (err == nil) != (d.Instead != "") {
				t.Errorf("a host without isolation says %v; in its place: %q", err, d.Instead)
			}
			h.Features = slices.Delete(h.Features, i, i+1)
			if err := h.Refuse(&demanding); d.Instead == "" && (err == nil || !strings.HasSuffix(err.Error(), d.Help) || d.Help == "") {
				t.Errorf("a host that does not know the feature says %v, want it to end in %q", err, d.Help)
			}
		})
	}
	err := executor.Host{}.Refuse(&demanding)
	for _, d := range executor.Demands() {
		if named := strings.Contains(err.Error(), d.Field); named != (d.Instead == "") {
			t.Errorf("%s is named: %v, in %v", d.Field, named, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error shows the password: %v", err)
	}
	if err := (executor.Host{}).Refuse(&executor.ContainerSpec{RootFS: "host:", CPUWeight: executor.MaxCPUWeight}); err != nil {
		t.Errorf("a spec without such fields: %v", err)
	}
}

func TestPlacementKnowsWhatAHostRefuses(t *testing.T) {
	info := executor.RunInfo{
		RootFS: "preloaded:linux", CPUWeight: 50, Privileged: true, EgressRules: demanding.EgressRules,
		Network: &executor.Network{Properties: demanding.NetworkProperties}, CertificateProperties: &executor.CertificateConfig{},
	}
	all := []string{"cpu_weight", "privileged", "egress_rules", "network", "certificate_properties", "image_username"}
	if got := executor.DemandedFields(&info, true); !slices.Equal(got, all) {
		t.Errorf("the work demands %q, want %q", got, all)
	}
	if got := (executor.Host{}).RefusedFields(); !slices.Equal(got, all) {
		t.Errorf("a host without features refuses %q, want %q", got, all)
	}
	if got := executor.DemandedFields(&executor.RunInfo{RootFS: "preloaded:linux", CPUWeight: executor.MaxCPUWeight, Network: &executor.Network{}}, false); got != nil {
		t.Errorf("plain work demands %q", got)
	}
	h := executor.Host{Features: []executor.Feature{{Name: executor.FeatureEgressRules}, {Name: executor.FeaturePrivileged, Missing: "not allowed"}}}
	if got := h.RefusedFields(); slices.Contains(got, "egress_rules") || !slices.Contains(got, "privileged") {
		t.Errorf("the host refuses %q", got)
	}
}
