package executor

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Capacity is an amount of what containers take from a cell.
type Capacity struct {
	// MemoryMB and DiskMB are in mebibytes.
	MemoryMB int64 `json:"memory_mb"`
	DiskMB   int64 `json:"disk_mb"`
	// Containers and PIDs, which are processes and threads, may be uncounted: a
	// total of 0 means that the cell does not count them, and what remains is
	// ignored.
	Containers int64 `json:"containers"`
	PIDs       int64 `json:"pids,omitempty"`
	// Extra is an amount of further resources, such as "gpu". A cell has none of
	// those that its total does not name.
	Extra Amounts `json:"extra_resources,omitempty"`
}

// Plus returns the sum of c and d.
func (c Capacity) Plus(d Capacity) Capacity {
	return Capacity{c.MemoryMB + d.MemoryMB, c.DiskMB + d.DiskMB, c.Containers + d.Containers, c.PIDs + d.PIDs, c.Extra.Plus(d.Extra)}
}

// Minus returns c less d; a field may be negative.
func (c Capacity) Minus(d Capacity) Capacity {
	return Capacity{c.MemoryMB - d.MemoryMB, c.DiskMB - d.DiskMB, c.Containers - d.Containers, c.PIDs - d.PIDs, c.Extra.Minus(d.Extra)}
}

// Lacks returns how much is missing from c to cover need, with 0 where nothing
// is.
func (c Capacity) Lacks(need Capacity) Capacity {
	return Capacity{
		max(need.MemoryMB-c.MemoryMB, 0), max(need.DiskMB-c.DiskMB, 0), max(need.Containers-c.Containers, 0),
		max(need.PIDs-c.PIDs, 0), c.Extra.Lacks(need.Extra),
	}
}

// Equal reports whether c and d are the same amounts.
func (c Capacity) Equal(d Capacity) bool { return c.Minus(d).IsZero() }

// IsZero reports whether every amount of c is 0.
func (c Capacity) IsZero() bool {
	return c.MemoryMB == 0 && c.DiskMB == 0 && c.Containers == 0 && c.PIDs == 0 && c.Extra.IsZero()
}

// String names what c has more than 0 of, such as "512 MiB of memory, 1
// container, 2 gpu".
func (c Capacity) String() string {
	var parts []string
	for i, amount := range c.own() {
		switch {
		case *amount == 1:
			parts = append(parts, "1 "+capacityUnits[i][0])
		case *amount > 0:
			parts = append(parts, fmt.Sprintf("%d %s", *amount, capacityUnits[i][1]))
		}
	}
	if extra := c.Extra.String(); extra != "" {
		parts = append(parts, extra)
	}
	return strings.Join(parts, ", ")
}

// own are the amounts besides Extra.
func (c *Capacity) own() [4]*int64 {
	return [4]*int64{&c.MemoryMB, &c.DiskMB, &c.Containers, &c.PIDs}
}

// capacityUnits are what String calls one of each amount, and several.
var capacityUnits = [4][2]string{
	{"MiB of memory", "MiB of memory"}, {"MiB of disk", "MiB of disk"}, {"container", "containers"}, {"process", "processes"},
}

// ParseCapacity reads what String writes. It fails on any other text.
func ParseCapacity(text string) (c Capacity, err error) {
	for part := range strings.SplitSeq(text, ", ") {
		digits, unit, _ := strings.Cut(part, " ")
		amount, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || amount <= 0 {
			return Capacity{}, fmt.Errorf("capacity %q: want numbers from 1", text)
		}
		of := slices.IndexFunc(capacityUnits[:], func(u [2]string) bool { return slices.Contains(u[:], unit) })
		if of >= 0 {
			*c.own()[of] = amount
		} else {
			c.Extra = c.Extra.Plus(Amounts{unit: amount})
		}
	}
	if c.String() != text {
		return Capacity{}, fmt.Errorf("capacity %q: want amounts such as %q", text, Capacity{MemoryMB: 512, Containers: 1})
	}
	return c, nil
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
	return fmt.Sprintf("%v for container %q: %v more would have to be free", ErrCapacity, e.GUID, e.Lacks)
}

// Unwrap makes errors.Is(err, ErrCapacity) true.
func (e *CapacityError) Unwrap() error { return ErrCapacity }
