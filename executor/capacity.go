package executor

import (
	"errors"
	"fmt"
	"strings"
)

// Capacity is an amount of what containers take from a cell.
type Capacity struct {
	// MemoryMB and DiskMB are in mebibytes.
	MemoryMB   int64 `json:"memory_mb"`
	DiskMB     int64 `json:"disk_mb"`
	Containers int64 `json:"containers"`
	// PIDs are processes and threads. A total of 0 means that the cell does not
	// count them, and then what remains is not looked at.
	PIDs int64 `json:"pids,omitempty"`
}

// Plus returns the sum of c and d.
func (c Capacity) Plus(d Capacity) Capacity {
	return Capacity{c.MemoryMB + d.MemoryMB, c.DiskMB + d.DiskMB, c.Containers + d.Containers, c.PIDs + d.PIDs}
}

// Minus returns c less d; a field may be negative.
func (c Capacity) Minus(d Capacity) Capacity {
	return Capacity{c.MemoryMB - d.MemoryMB, c.DiskMB - d.DiskMB, c.Containers - d.Containers, c.PIDs - d.PIDs}
}

// Lacks returns how much is missing from c to cover need, with 0 where nothing
// is.
func (c Capacity) Lacks(need Capacity) Capacity {
	d := need.Minus(c)
	return Capacity{max(d.MemoryMB, 0), max(d.DiskMB, 0), max(d.Containers, 0), max(d.PIDs, 0)}
}

// ErrCapacity is what every [CapacityError] wraps.
var ErrCapacity = errors.New("insufficient resources")

// A CapacityError says what a cell lacks for a container. It wraps
// [ErrCapacity].
type CapacityError struct {
	GUID string
	// Lacks is how much more would have to be free of each.
	Lacks Capacity
}

func (e *CapacityError) Error() string {
	var lacks []string
	for _, l := range []struct {
		amount int64
		one    string
		of     string
	}{
		{e.Lacks.MemoryMB, "MiB of memory", "MiB of memory"}, {e.Lacks.DiskMB, "MiB of disk", "MiB of disk"},
		{e.Lacks.Containers, "container", "containers"}, {e.Lacks.PIDs, "process", "processes"},
	} {
		switch {
		case l.amount == 1:
			lacks = append(lacks, "1 "+l.one)
		case l.amount > 0:
			lacks = append(lacks, fmt.Sprintf("%d %s", l.amount, l.of))
		}
	}
	return fmt.Sprintf("%v for container %q: %s more would have to be free", ErrCapacity, e.GUID, strings.Join(lacks, ", "))
}

// Unwrap makes errors.Is(err, ErrCapacity) true.
func (e *CapacityError) Unwrap() error { return ErrCapacity }
