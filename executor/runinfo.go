package executor

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a RunInfo.
const (
	// MaxRootFSBytes is the longest RootFS.
	MaxRootFSBytes = 1024
	// MaxCPUWeight is the whole share, and what 0 stands for.
	MaxCPUWeight = 100
)

// RunInfo is everything that a container needs besides its size. It is a value
// that goroutines may share: nothing changes what it points to.
//
// Definitions embed it, so it has no JSON methods of its own.
type RunInfo struct {
	// RootFS is a URL with a scheme, such as "preloaded:linux",
	// "oci:///images/app" or "host:", of at most MaxRootFSBytes. "preloaded+layer:"
	// puts a downloaded layer on a preloaded one: see SplitRootFS. The section Root
	// file systems of docs/cells.md has the schemes of this module's backends.
	RootFS string `json:"root_fs"`
	// Env is set for every process of the container.
	Env []EnvVar `json:"env,omitempty"`
	// Setup is carried out before Action and must succeed.
	Setup *Action `json:"setup,omitempty"`
	// Action is the work itself.
	Action Action `json:"action"`
	// Monitor says by its success that the container is healthy. Without
	// Monitor and Check the container is healthy as long as Action runs.
	Monitor *Action `json:"monitor,omitempty"`
	// Check is the declarative form of Monitor.
	Check *CheckDefinition `json:"check,omitempty"`
	// StartTimeoutMs bounds the time from creation to healthy in
	// milliseconds; 0 means no bound.
	StartTimeoutMs int64 `json:"start_timeout_ms,omitempty"`
	// Sidecars run beside Action and end with it.
	Sidecars []Sidecar `json:"sidecars,omitempty"`
	// CPUWeight is the relative share of the CPU, 1 to MaxCPUWeight; 0 means
	// MaxCPUWeight.
	CPUWeight uint32 `json:"cpu_weight,omitempty"`
	// Privileged asks for a container with more rights than the default.
	Privileged bool `json:"privileged,omitempty"`
	// Ports are the container ports to be reachable from outside.
	Ports []uint16 `json:"ports,omitempty"`
	// EgressRules limit outgoing traffic; none means no limit.
	EgressRules []EgressRule `json:"egress_rules,omitempty"`
	// CachedDependencies are downloaded once per cell and mounted read-only. See
	// docs/cells.md, "Downloads and uploads".
	CachedDependencies []CachedDependency `json:"cached_dependencies,omitempty"`
	// LegacyDownloadUser is the user for downloads that name none.
	LegacyDownloadUser string `json:"legacy_download_user,omitempty"`
	// TrustedSystemCertificatesPath is where the authorities appear that containers
	// of the cell trust. See docs/cells.md, "Trusted authorities".
	TrustedSystemCertificatesPath string `json:"trusted_system_certificates_path,omitempty"`
	// VolumeMounts are directories that outlive the container. See docs/cells.md,
	// "Volumes".
	VolumeMounts       []VolumeMount `json:"volume_mounts,omitempty"`
	VolumeMountedFiles []File        `json:"volume_mounted_files,omitempty"`
	ImageLayers        []ImageLayer  `json:"image_layers,omitempty"`
	// Network is for cells of other modules: a cell of this one refuses work that
	// has properties. See Demands.
	Network *Network `json:"network,omitempty"`
	// CertificateProperties are what the certificate of the container says beside
	// its instance guid and its address. Each container of a cell with an authority
	// has one, renewed before it ends; CF_INSTANCE_CERT and CF_INSTANCE_KEY name
	// the files. A cell without an authority refuses work that has this field. See
	// docs/cells.md, "The identity of an instance".
	CertificateProperties *CertificateConfig `json:"certificate_properties,omitempty"`
	// LogRateLimit bounds the output of the container; nil means no limit. See
	// docs/cells.md, "Logs".
	LogRateLimit *LogRateLimit `json:"log_rate_limit,omitempty"`
	// LogSource is the source of output whose action and check name none.
	// LogGUID says whose output it is. Both are in rep.LogLabels; docs/logs.md says
	// where collectors find them.
	LogSource string `json:"log_source,omitempty"`
	LogGUID   string `json:"log_guid,omitempty"`
	// MetricsGUID is the metric tag source_id; see ResolveMetricTags.
	MetricsGUID string `json:"metrics_guid,omitempty"`
}

// Validate checks every part. A fault in one part does not hide the faults of
// another.
func (r RunInfo) Validate(v *Validator) {
	u, err := url.Parse(r.RootFS)
	v.Check(err == nil && u.Scheme != "", "root_fs", r.RootFS, "a URL with a scheme")
	v.Check(len(r.RootFS) <= MaxRootFSBytes, "root_fs", fmt.Sprintf("%d bytes", len(r.RootFS)),
		fmt.Sprintf("at most %d bytes", MaxRootFSBytes))
	validateEnv(v, "env", r.Env)
	if r.Setup != nil {
		r.Setup.Validate(v.In("setup"))
	}
	r.Action.Validate(v.In("action"))
	if r.Monitor != nil {
		r.Monitor.Validate(v.In("monitor"))
		v.Check(few(MaxChecks, *r.Monitor), "monitor", "", fmt.Sprintf("at most %d actions", MaxChecks))
	}
	if r.Check != nil {
		r.Check.Validate(v.In("check"))
	}
	v.milliseconds("start_timeout_ms", r.StartTimeoutMs, 0)
	if v.lengthAtMost("sidecars", len(r.Sidecars), MaxSidecars) {
		all := make([]Action, len(r.Sidecars))
		for i, s := range r.Sidecars {
			s.Validate(v.At("sidecars", i))
			all[i] = s.Action
		}
		v.Check(few(MaxActionNodes, all...), "sidecars", "", fmt.Sprintf("at most %d actions in all of them together", MaxActionNodes))
	}
	v.Check(r.CPUWeight <= MaxCPUWeight, "cpu_weight", r.CPUWeight, fmt.Sprintf("at most %d", MaxCPUWeight))
	if v.lengthAtMost("ports", len(r.Ports), MaxPorts) {
		for i, port := range r.Ports {
			v.port(fmt.Sprintf("ports[%d]", i), port)
		}
	}
	if v.listLength("egress_rules", len(r.EgressRules)) {
		for i, rule := range r.EgressRules {
			rule.Validate(v.At("egress_rules", i))
		}
		matches := egressMatches(r.EgressRules)
		v.Check(matches <= MaxEgressMatches, "egress_rules", matches, fmt.Sprintf(
			"at most %d ranges of addresses, counted once for each port of a rule (a port_range counts once)", MaxEgressMatches))
	}
	if v.lengthAtMost("cached_dependencies", len(r.CachedDependencies), MaxMounts) {
		for i, d := range r.CachedDependencies {
			d.Validate(v.At("cached_dependencies", i))
		}
	}
	if v.lengthAtMost("volume_mounts", len(r.VolumeMounts), MaxMounts) {
		for i, m := range r.VolumeMounts {
			m.Validate(v.At("volume_mounts", i))
		}
	}
	validateFiles(v, "volume_mounted_files", r.VolumeMountedFiles)
	if v.lengthAtMost("image_layers", len(r.ImageLayers), MaxMounts) {
		for i, l := range r.ImageLayers {
			l.Validate(v.At("image_layers", i))
			v.Check(l.LayerType != LayerExclusive || r.LegacyDownloadUser != "", "legacy_download_user", "",
				"a user for EXCLUSIVE image layers")
		}
	}
	if r.Network != nil {
		v.In("network").listLength("properties", len(r.Network.Properties))
	}
	if r.CertificateProperties != nil {
		r.CertificateProperties.Validate(v.In("certificate_properties"))
	}
	if r.LogRateLimit != nil {
		r.LogRateLimit.Validate(v.In("log_rate_limit"))
	}
}

// few reports whether there are at most so many actions in all trees together.
func few(most int, trees ...Action) bool {
	count := 0
	for _, tree := range trees {
		for range tree.All() {
			if count++; count > most {
				return false
			}
		}
	}
	return true
}

// StartTimeout returns StartTimeoutMs as a duration; 0 means no bound.
func (r RunInfo) StartTimeout() time.Duration { return milliseconds(r.StartTimeoutMs) }

// HasReadinessChecks reports whether the container, once it is running, waits
// for a check before it receives traffic.
func (r RunInfo) HasReadinessChecks() bool { return r.Check != nil && len(r.Check.ReadinessChecks) > 0 }

// VolumeDrivers returns the drivers that a cell must have, sorted, each once.
func (r RunInfo) VolumeDrivers() []string {
	var drivers []string
	for _, m := range r.VolumeMounts {
		drivers = append(drivers, m.Driver)
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}

// A Sidecar is an action that runs beside the main one. Its sizes state what it
// is meant to use; only the limit of the whole container is enforced.
type Sidecar struct {
	Action   Action `json:"action"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
	DiskMB   int64  `json:"disk_mb,omitempty"`
}

// Validate checks the action and the sizes.
func (s Sidecar) Validate(v *Validator) {
	s.Action.Validate(v.In("action"))
	v.size("memory_mb", s.MemoryMB, MaxMB)
	v.size("disk_mb", s.DiskMB, MaxMB)
}

// A CachedDependency is an archive that is downloaded once per cell and
// mounted read-only into the container.
type CachedDependency struct {
	Name      string   `json:"name,omitempty"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	CacheKey  string   `json:"cache_key,omitempty"`
	LogSource string   `json:"log_source,omitempty"`
	Checksum  Checksum `json:"checksum,omitzero"`
}

// Validate checks source, target and checksum.
func (d CachedDependency) Validate(v *Validator) {
	v.required("from", d.From)
	v.required("to", d.To)
	d.Checksum.Validate(v.In("checksum"))
}

// A Network holds properties for the cell's network plug-in. A cell whose
// backend has none refuses work with properties.
type Network struct {
	Properties map[string]string `json:"properties,omitempty"`
}

// A CertificateConfig shapes the container's identity certificate. A cell that
// issues none refuses work that has it.
type CertificateConfig struct {
	// OrganizationalUnit are the organizational units of the certificate's subject,
	// such as "app:GUID" and "space:GUID".
	OrganizationalUnit []string `json:"organizational_unit,omitempty"`
}

// Validate checks that a certificate may have the units.
func (c CertificateConfig) Validate(v *Validator) {
	if !v.listLength("organizational_unit", len(c.OrganizationalUnit)) {
		return
	}
	for i, unit := range c.OrganizationalUnit {
		v.Check(IsTenantUnit(unit), fmt.Sprintf("organizational_unit[%d]", i), unit,
			"UTF-8 that does not begin with diego-, as the roles of the fleet do")
	}
}

// IsTenantUnit reports whether the certificate of a container may have an
// organizational unit. Those that begin with "diego-", in any case, are the roles
// of a fleet's own processes (see httpapi.Role), which no definition may give
// away.
func IsTenantUnit(unit string) bool {
	return utf8.ValidString(unit) && !strings.HasPrefix(strings.ToLower(unit), "diego-")
}

// A LogRateLimit bounds how much of a container's output is kept and passed on.
// What is above it is dropped, and a line in the log says how much.
type LogRateLimit struct {
	// BytesPerSecond bounds stdout and stderr together, and separately the output
	// of health checks. -1 means no bound, 0 that nothing is kept.
	BytesPerSecond int64 `json:"bytes_per_second"`
}

// Validate checks that the bound is -1 or more.
func (l LogRateLimit) Validate(v *Validator) {
	v.Check(l.BytesPerSecond >= -1, "bytes_per_second", l.BytesPerSecond, "at least -1, which means no limit")
}
