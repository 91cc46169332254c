package executor

// RunInfo is everything a container needs besides its size.
type RunInfo struct {
	// RootFS is a URL with a scheme, such as "preloaded:linux",
	// "oci:///images/app" or "host:".
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
	// CPUWeight is the relative share of the CPU, 1 to 100; 0 means 100.
	CPUWeight uint32 `json:"cpu_weight,omitempty"`
	// Privileged asks for a container with more rights than the default.
	Privileged bool `json:"privileged,omitempty"`
	// Ports are the container ports to be reachable from outside.
	Ports []uint16 `json:"ports,omitempty"`
	// EgressRules limit outgoing traffic; none means no limit.
	EgressRules []EgressRule `json:"egress_rules,omitempty"`
	// CachedDependencies are downloaded once per cell and mounted read-only.
	CachedDependencies []CachedDependency `json:"cached_dependencies,omitempty"`
	// LegacyDownloadUser is the user for downloads that name none.
	LegacyDownloadUser string `json:"legacy_download_user,omitempty"`
	// TrustedSystemCertificatesPath is where the cell's trusted CAs appear.
	TrustedSystemCertificatesPath string             `json:"trusted_system_certificates_path,omitempty"`
	VolumeMounts                  []VolumeMount      `json:"volume_mounts,omitempty"`
	VolumeMountedFiles            []File             `json:"volume_mounted_files,omitempty"`
	ImageLayers                   []ImageLayer       `json:"image_layers,omitempty"`
	Network                       *Network           `json:"network,omitempty"`
	CertificateProperties         *CertificateConfig `json:"certificate_properties,omitempty"`
	LogRateLimit                  *LogRateLimit      `json:"log_rate_limit,omitempty"`
	LogSource                     string             `json:"log_source,omitempty"`
	LogGUID                       string             `json:"log_guid,omitempty"`
	MetricsGUID                   string             `json:"metrics_guid,omitempty"`
}

// A Sidecar is an action that runs beside the main one with its own share of
// the container's resources.
type Sidecar struct {
	Action   Action `json:"action"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
	DiskMB   int64  `json:"disk_mb,omitempty"`
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

// A File is written into the container before anything runs in it.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// Network holds properties for the cell's network plug-in.
type Network struct {
	Properties map[string]string `json:"properties,omitempty"`
}

// CertificateConfig shapes the container's identity certificate.
type CertificateConfig struct {
	OrganizationalUnit []string `json:"organizational_unit,omitempty"`
}

// LogRateLimit bounds the output that is kept of a container.
type LogRateLimit struct {
	// BytesPerSecond is the bound; -1 means none.
	BytesPerSecond int64 `json:"bytes_per_second"`
}
