package executor

// Resources are the size of a container: what it takes from its cell from its
// reservation until it is deleted.
type Resources struct {
	// MemoryMB is the memory limit in mebibytes; 0 means no limit.
	MemoryMB int64 `json:"memory_mb"`
	// DiskMB is the disk limit in mebibytes; 0 means no limit.
	DiskMB int64 `json:"disk_mb"`
	// MaxPIDs is the limit of processes and threads; 0 means the cell's default.
	MaxPIDs int64 `json:"max_pids"`
	// Extra is what it takes of further resources, such as "gpu". They are counted
	// and not limited.
	Extra Amounts `json:"extra_resources,omitempty"`
}

// Limits of Resources. They are far above any real container, and low enough
// that neither a size in bytes nor a sum over a fleet overflows an int64.
const (
	// MaxMB is the largest size in mebibytes: 1 EiB.
	MaxMB = 1 << 40
	// MaxPIDLimit is the largest MaxPIDs, the most that Linux can number.
	MaxPIDLimit = 1 << 22
)

// Validate checks that every size is between 0 and its limit, and what is said of
// further resources.
func (r Resources) Validate(v *Validator) {
	v.size("memory_mb", r.MemoryMB, MaxMB)
	v.size("disk_mb", r.DiskMB, MaxMB)
	v.size("max_pids", r.MaxPIDs, MaxPIDLimit)
	r.Extra.Validate(v, "extra_resources")
}
