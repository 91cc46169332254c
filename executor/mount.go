package executor

// A VolumeMount makes a volume of a driver appear in the container.
type VolumeMount struct {
	Driver       string `json:"driver"`
	ContainerDir string `json:"container_dir"`
	// Mode is "r" or "rw".
	Mode string `json:"mode"`
	// Exactly one of Shared and Dedicated is set.
	Shared    *SharedDevice    `json:"shared,omitempty"`
	Dedicated *DedicatedDevice `json:"dedicated,omitempty"`
}

// SharedDevice is a volume that many containers may mount at once.
type SharedDevice struct {
	VolumeID    string `json:"volume_id"`
	MountConfig string `json:"mount_config,omitempty"`
}

// DedicatedDevice is a volume of this container alone.
type DedicatedDevice struct {
	MounterID   string `json:"mounter_id"`
	MountConfig string `json:"mount_config,omitempty"`
}

// An ImageLayer is an archive that is put on top of the root file system.
type ImageLayer struct {
	Name            string `json:"name,omitempty"`
	URL             string `json:"url"`
	DestinationPath string `json:"destination_path"`
	// MediaType is TGZ, TAR or ZIP.
	MediaType string `json:"media_type"`
	// LayerType is SHARED (cached per cell, read-only) or EXCLUSIVE.
	LayerType string `json:"layer_type"`
	// DigestAlgorithm is SHA256 or SHA512; required for EXCLUSIVE.
	DigestAlgorithm string `json:"digest_algorithm,omitempty"`
	DigestValue     string `json:"digest_value,omitempty"`
}
