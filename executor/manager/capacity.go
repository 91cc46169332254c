package manager

import (
	"errors"
	"fmt"
	"strings"

	"github.com/diegosdk/diego/executor"
)

// Capacity is an amount of what containers take from a cell.
type Capacity struct {
	// MemoryMB and DiskMB are in mebibytes.
	MemoryMB   int64 `json:"memory_mb"`
	DiskMB     int64 `json:"disk_mb"`
	Containers int64 `json:"containers"`
	// PIDs are processes and threads; as a total, 0 means that they are not
	// counted.
	PIDs int64 `json:"pids,omitempty"`
}

func (c Capacity) plus(d Capacity) Capacity {
	return Capacity{c.MemoryMB + d.MemoryMB, c.DiskMB + d.DiskMB, c.Containers + d.Containers, c.PIDs + d.PIDs}
}

func (c Capacity) minus(d Capacity) Capacity {
	return Capacity{c.MemoryMB - d.MemoryMB, c.DiskMB - d.DiskMB, c.Containers - d.Containers, c.PIDs - d.PIDs}
}

// lacks is how much more c would have to be for need.
func (c Capacity) lacks(need Capacity) Capacity {
	d := need.minus(c)
	return Capacity{max(d.MemoryMB, 0), max(d.DiskMB, 0), max(d.Containers, 0), max(d.PIDs, 0)}
}

// What refuses a container.
var (
	// ErrCapacity: the cell has not enough left.
	ErrCapacity = errors.New("insufficient resources")
	// ErrExists: the guid is in use, or its last container is still being
	// removed from the host.
	ErrExists = errors.New("the guid is in use")
	// ErrNotFound: there is no container with that guid.
	ErrNotFound = errors.New("no such container")
)

// A CapacityError says what a cell lacks for a container. It wraps
// ErrCapacity.
type CapacityError struct {
	GUID string
	// Lacks is how much more would have to be free of each.
	Lacks Capacity
}

func (e *CapacityError) Error() string {
	var lacks []string
	for _, l := range []struct {
		amount int64
		of     string
	}{{e.Lacks.MemoryMB, "MB of memory"}, {e.Lacks.DiskMB, "MB of disk"}, {e.Lacks.Containers, "containers"}, {e.Lacks.PIDs, "processes"}} {
		if l.amount > 0 {
			lacks = append(lacks, fmt.Sprintf("%d %s", l.amount, l.of))
		}
	}
	return fmt.Sprintf("%v for container %q: %s more would have to be free", ErrCapacity, e.GUID, strings.Join(lacks, ", "))
}

// Unwrap makes errors.Is(err, ErrCapacity) true.
func (e *CapacityError) Unwrap() error { return ErrCapacity }

// A GUIDError says that a guid cannot be used as it was. It wraps ErrExists or
// ErrNotFound.
type GUIDError struct {
	GUID string
	Err  error
}

func (e *GUIDError) Error() string { return fmt.Sprintf("container %q: %v", e.GUID, e.Err) }

// Unwrap is ErrExists or ErrNotFound.
func (e *GUIDError) Unwrap() error { return e.Err }

// share is what a container takes, from its reservation to its end.
func (m *Manager) share(r executor.Resources) Capacity {
	pids := r.MaxPIDs
	if pids == 0 {
		pids = m.options.DefaultMaxPIDs
	}
	if m.options.Capacity.PIDs == 0 {
		pids = 0
	}
	return Capacity{MemoryMB: r.MemoryMB, DiskMB: r.DiskMB, Containers: 1, PIDs: pids}
}
