package auction

import (
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A CellState is a cell's report about itself for placement.
type CellState struct {
	// ID is unique in the fleet and not empty.
	ID string `json:"cell_id"`
	// Zone is the availability zone. Cells without a zone share one.
	Zone string `json:"zone,omitempty"`
	// Total is the size of the cell, and Remaining the part that is not reserved.
	Total     Capacity `json:"total"`
	Remaining Capacity `json:"remaining"`
	// RootFSProviders are the root file systems that the cell can make: a scheme
	// and a name, for example "preloaded:linux", or a scheme alone, for example
	// "docker", for everything with that scheme.
	RootFSProviders []string `json:"rootfs_providers,omitempty"`
	VolumeDrivers   []string `json:"volume_drivers,omitempty"`
	// Work that runs here must ask for all PlacementTags and may ask for
	// OptionalPlacementTags.
	PlacementTags         []string `json:"placement_tags,omitempty"`
	OptionalPlacementTags []string `json:"optional_placement_tags,omitempty"`
	// RefusedFields are fields of definitions that the cell cannot honour, such
	// as "egress_rules"; see executor.Demand. It gets no work that has them.
	RefusedFields []string `json:"refused_fields,omitempty"`
	// LRPs and Tasks are the work on the cell, from its reservation on: instances
	// by their keys, tasks by their GUIDs.
	LRPs  []lrp.Key `json:"lrps,omitempty"`
	Tasks []string  `json:"tasks,omitempty"`
	// StartingContainers is the number of containers that are not RUNNING or
	// COMPLETED yet.
	StartingContainers int `json:"starting_containers"`
	// Index orders the cells of a zone for Policy.BinPackWeight.
	Index int `json:"index"`
	// Evacuating, Cordoned, Unhealthy and Settling cells get no work. Instances on
	// an evacuating cell are about to leave it and do not count for the spread over
	// zones; instances on the others still run there and do count.
	Evacuating bool `json:"evacuating,omitempty"`
	// Cordoned is true while an operator keeps work away from the cell.
	Cordoned  bool `json:"cordoned,omitempty"`
	Unhealthy bool `json:"unhealthy,omitempty"`
	// Settling is true until the cell has reported what an earlier run of it has
	// left behind.
	Settling bool `json:"settling,omitempty"`
	// TakesReasons is true if the cell takes Work.Reasons. Cells of 0.1 refuse
	// work that has them.
	TakesReasons bool `json:"takes_reasons,omitempty"`
}

// Capacity is an amount of the resources that containers take from a cell.
type Capacity = executor.Capacity

// Sizes above these are refused. The limits also keep every score within 64
// bits.
const (
	// MaxSize limits memory and disk in mebibytes, PIDs and indices.
	MaxSize = 1 << 40
	// MaxContainers limits the containers of a cell.
	MaxContainers = 1<<16 - 1
)

// Validate checks that the cell has an id, that no size is negative or above the
// limits of this package, that no more remains than there is in all, and the names
// of further resources.
func (c *CellState) Validate(v *executor.Validator) {
	v.Check(c.ID != "", "cell_id", "", "not empty")
	total, remaining := v.In("total"), v.In("remaining")
	checkSize(total, "memory_mb", c.Total.MemoryMB, MaxSize, "at most 1099511627776")
	checkSize(total, "disk_mb", c.Total.DiskMB, MaxSize, "at most 1099511627776")
	checkSize(total, "containers", c.Total.Containers, MaxContainers, "at most 65535")
	checkSize(total, "pids", c.Total.PIDs, MaxSize, "at most 1099511627776")
	checkSize(remaining, "memory_mb", c.Remaining.MemoryMB, c.Total.MemoryMB, "at most the total")
	checkSize(remaining, "disk_mb", c.Remaining.DiskMB, c.Total.DiskMB, "at most the total")
	if c.Total.Containers != 0 {
		checkSize(remaining, "containers", c.Remaining.Containers, c.Total.Containers, "at most the total")
	}
	if c.Total.PIDs != 0 {
		checkSize(remaining, "pids", c.Remaining.PIDs, c.Total.PIDs, "at most the total")
	}
	if len(c.Total.Extra)+len(c.Remaining.Extra) > 0 {
		c.validateExtra(v)
	}
	checkSize(v, "starting_containers", int64(c.StartingContainers), MaxContainers, "at most 65535")
}

func (c *CellState) validateExtra(v *executor.Validator) {
	c.Total.Extra.Validate(v.In("total"), "extra_resources")
	remaining := v.In("remaining").In("extra_resources")
	for _, name := range c.Remaining.Extra.Names() {
		checkSize(remaining, name, c.Remaining.Extra[name], c.Total.Extra[name], "at most the total")
	}
}

// checkSize costs nothing if n is within 0 … max.
func checkSize(v *executor.Validator, field string, n, max int64, limit string) {
	switch {
	case n < 0:
		v.Check(false, field, n, "at least 0")
	case n > max:
		v.Check(false, field, n, limit)
	}
}

// offers returns why the cell cannot take an item that asks for w, or "". It
// tries the four stages in this order and names the first that fails.
func (c *CellState) offers(w *wants) CellReason {
	switch {
	case !c.providesRootFS(w.rootFS):
		return OtherRootFS
	case !containsAll(c.VolumeDrivers, w.drivers):
		return NoVolumeDriver
	case !c.acceptsTags(w.tags):
		return OtherPlacementTags
	case slices.ContainsFunc(w.fields, func(f string) bool { return slices.Contains(c.RefusedFields, f) }):
		return RefusesField
	}
	return ""
}

func (c *CellState) providesRootFS(rootFS string) bool {
	if rootFS == "" {
		return true
	}
	scheme, name := splitRootFS(rootFS)
	for _, p := range c.RootFSProviders {
		offeredScheme, offeredName := splitRootFS(p)
		if offeredScheme == scheme && (offeredName == "" || offeredName == name) {
			return true
		}
	}
	return false
}

// splitRootFS splits "preloaded+layer:linux?layer=x" into its scheme and name.
// The query says how the root file system is completed, not which one it is.
func splitRootFS(rootFS string) (scheme, name string) {
	scheme, name, _ = strings.Cut(rootFS, ":")
	name, _, _ = strings.Cut(name, "?")
	return strings.ToLower(scheme), name
}

// acceptsTags reports whether required ⊆ desired ⊆ required ∪ optional.
func (c *CellState) acceptsTags(desired []string) bool {
	for _, tag := range desired {
		if !slices.Contains(c.PlacementTags, tag) && !slices.Contains(c.OptionalPlacementTags, tag) {
			return false
		}
	}
	return containsAll(desired, c.PlacementTags)
}

func containsAll(have, wanted []string) bool {
	for _, w := range wanted {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}
