package executor

import (
	"fmt"
	"strings"
)

// A Demand is a field of a definition that not every cell can honour. A cell
// that cannot refuses the work by the field's name; it never ignores it. A
// Demand is a value that goroutines may share.
type Demand struct {
	// Field is the field's name in JSON, such as "egress_rules".
	Field string
	// Feature is what a host needs to honour the field.
	Feature FeatureName
	// Instead says what a field means on a host that is not isolated and lacks
	// the feature. If it is empty, such a host refuses the field as well.
	Instead string
	// Help says what to do about a refusal where the host does not say it.
	Help string

	asked func(*request) bool
}

// A request is what demands look at.
type request struct {
	Resources
	*RunInfo
	imageCredentials bool
}

// Demands returns all demands, in the order in which they are checked. The
// caller may change the slice.
func Demands() []Demand { return append([]Demand(nil), demands[:]...) }

var demands = [...]Demand{
	{"root_fs", FeatureRootFS, "", "use the root file system host:",
		func(a *request) bool { return !strings.HasPrefix(strings.ToLower(a.RootFS), "host:") }},
	{"memory_mb", FeatureMemoryLimit, "counted and not limited", "",
		func(a *request) bool { return a.MemoryMB > 0 }},
	{"disk_mb", FeatureDiskLimit, "counted and not limited", "",
		func(a *request) bool { return a.DiskMB > 0 }},
	{"max_pids", FeaturePIDLimit, "counted and not limited", "",
		func(a *request) bool { return a.MaxPIDs > 0 }},
	{"cpu_weight", FeatureCPUWeight, "", "leave it out, or use a cell with real containers",
		func(a *request) bool { return a.CPUWeight > 0 && a.CPUWeight != MaxCPUWeight }},
	{"privileged", FeaturePrivileged, "", "leave it out, or use a cell that allows privileged containers",
		func(a *request) bool { return a.Privileged }},
	{"egress_rules", FeatureEgressRules, "", "leave them out, or use a cell whose containers have networks of their own",
		func(a *request) bool { return len(a.EgressRules) > 0 }},
	{"network", FeatureNetworkProperties, "", "leave the properties out; they are for a network plug-in, and this backend has none",
		func(a *request) bool { return a.Network != nil && len(a.Network.Properties) > 0 }},
	{"certificate_properties", FeatureIdentity, "", "leave them out, or use a cell that has an authority for the certificates of containers (identity_ca_cert)",
		func(a *request) bool { return a.CertificateProperties != nil }},
	{"image_username", FeatureImageCredentials, "",
		"leave it and image_password out; this cell reads images from its own disk and logs in to no registry",
		func(a *request) bool { return a.imageCredentials }},
}

// DemandedFields returns the fields of a definition that a cell may refuse, in
// the order of [Demands]. It leaves out root_fs, for which cells have a list of
// providers, and the sizes.
func DemandedFields(info *RunInfo, imageCredentials bool) []string {
	var fields []string
	a := request{RunInfo: info, imageCredentials: imageCredentials}
	for i := range demands {
		if d := &demands[i]; d.placed() && d.asked(&a) {
			fields = append(fields, d.Field)
		}
	}
	return fields
}

// RefusedFields returns the fields that a host refuses in all work, in the order
// of [Demands]. It leaves out the same fields as [DemandedFields].
func (h Host) RefusedFields() []string {
	var fields []string
	for i := range demands {
		if d := &demands[i]; d.placed() && !h.honours(d) {
			fields = append(fields, d.Field)
		}
	}
	return fields
}

// placed reports whether placement compares the field with what cells refuse.
func (d *Demand) placed() bool { return d.Instead == "" && d.Feature != FeatureRootFS }

// honours reports whether the field has an effect on the host.
func (h Host) honours(d *Demand) bool { return h.Has(d.Feature) || d.Instead != "" && !h.Isolated }

// Refuse returns a [BackendError] of the kind ErrUnsupported that names every
// field of the spec that the host cannot honour, why, and what to do. It returns
// nil if there is none.
func (h Host) Refuse(c *ContainerSpec) error {
	info := RunInfo{
		RootFS: c.RootFS, CPUWeight: c.CPUWeight, Privileged: c.Privileged, EgressRules: c.EgressRules,
		Network: &Network{Properties: c.NetworkProperties}, CertificateProperties: c.CertificateProperties,
	}
	a := request{c.Resources, &info, c.ImageUsername != ""}
	var refused []string
	for i := range demands {
		d := &demands[i]
		if !d.asked(&a) || h.honours(d) {
			continue
		}
		why := d.Help
		for _, f := range h.Features {
			if f.Name == d.Feature {
				why = f.Missing
			}
		}
		refused = append(refused, fmt.Sprintf("%s (%s): %s", d.Field, d.Feature, why))
	}
	if len(refused) == 0 {
		return nil
	}
	return &BackendError{Kind: ErrUnsupported, GUID: c.GUID, Detail: strings.Join(refused, "; ")}
}
