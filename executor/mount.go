package executor

// The modes of a VolumeMount.
const (
	MountReadOnly  = "r"
	MountReadWrite = "rw"
)

// A VolumeMount makes a volume of a driver appear in the container. The section
// Volumes of docs/cells.md says which drivers there are and how to write one.
type VolumeMount struct {
	// Driver is the volume driver's name; only cells that have it are
	// considered.
	Driver string `json:"driver"`
	// ContainerDir is where the volume appears. Cells with real containers refuse
	// "/" and what lies in /dev, /proc and /sys.
	ContainerDir string `json:"container_dir"`
	// Mode is "r" or "rw".
	Mode string `json:"mode"`
	// Exactly one of Shared and Dedicated is set.
	Shared    *SharedDevice    `json:"shared,omitempty"`
	Dedicated *DedicatedDevice `json:"dedicated,omitempty"`
}

// A SharedDevice is a volume that many containers may mount at once.
type SharedDevice struct {
	// VolumeID names the volume for the driver.
	VolumeID string `json:"volume_id"`
	// MountConfig is for the driver, which says what may be in it.
	MountConfig string `json:"mount_config,omitempty"`
}

// A DedicatedDevice is a volume that one container of a cell has at a time.
type DedicatedDevice struct {
	// MounterID names the volume for the driver, as SharedDevice.VolumeID does.
	MounterID string `json:"mounter_id"`
	// MountConfig is for the driver, which says what may be in it.
	MountConfig string `json:"mount_config,omitempty"`
}

// Validate checks driver, mode and device. The cell decides what ContainerDir
// may be.
func (m VolumeMount) Validate(v *Validator) {
	v.required("driver", m.Driver)
	v.Check(m.Mode == MountReadOnly || m.Mode == MountReadWrite, "mode", m.Mode, "r or rw")
	if (m.Shared == nil) == (m.Dedicated == nil) {
		v.Check(false, "", "", "exactly one of shared and dedicated")
	}
	if m.Shared != nil {
		v.In("shared").required("volume_id", m.Shared.VolumeID)
	}
	if m.Dedicated != nil {
		v.In("dedicated").required("mounter_id", m.Dedicated.MounterID)
	}
}
