package executor

// Resources is the size of a container: what it takes from its cell from the
// moment it is reserved until it is deleted.
type Resources struct {
	// MemoryMB is the memory limit in mebibytes; 0 means no limit.
	MemoryMB int64 `json:"memory_mb"`
	// DiskMB is the disk limit in mebibytes; 0 means no limit.
	DiskMB int64 `json:"disk_mb"`
	// MaxPIDs is the limit of processes and threads; 0 means the cell's default.
	MaxPIDs int64 `json:"max_pids"`
}

// Validate checks that no size is negative.
func (r Resources) Validate(v *Validator) {
	v.Check(r.MemoryMB >= 0, "memory_mb", r.MemoryMB, "at least 0")
	v.Check(r.DiskMB >= 0, "disk_mb", r.DiskMB, "at least 0")
	v.Check(r.MaxPIDs >= 0, "max_pids", r.MaxPIDs, "at least 0")
}
