package auction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A Kind distinguishes the two kinds of work.
type Kind uint8

const (
	// LRP is an instance of a long-running process.
	LRP Kind = iota
	// Task is a task.
	Task
)

var kinds = enum.Names[Kind]{LRP: "lrp", Task: "task"}

// String is "lrp" or "task".
func (k Kind) String() string { return kinds.Of(k) }

// MarshalText fails on a value that is not a kind.
func (k Kind) MarshalText() ([]byte, error) { return kinds.Marshal("kind", k) }

// UnmarshalText accepts only "lrp" and "task".
func (k *Kind) UnmarshalText(text []byte) error { return kinds.Unmarshal("kind", k, text) }

// A Key identifies a piece of work. Items with equal keys are the same work.
type Key struct {
	Kind Kind `json:"kind"`
	// GUID is that of the process or the task.
	GUID   string `json:"guid"`
	Domain string `json:"domain"`
	// Index and DefinitionID are those of an instance; a task has none.
	Index        int    `json:"index"`
	DefinitionID string `json:"definition_id,omitempty"`
}

// String is, for example, "lrp web.3 (definition d1)", without a definition
// "lrp web.3", or "task t1".
func (k Key) String() string {
	switch {
	case k.Kind != LRP:
		return fmt.Sprintf("%v %s", k.Kind, k.GUID)
	case k.DefinitionID == "":
		return fmt.Sprintf("%v %s.%d", k.Kind, k.GUID, k.Index)
	}
	return fmt.Sprintf("%v %s.%d (definition %s)", k.Kind, k.GUID, k.Index, k.DefinitionID)
}

// LRP is the key of the instance's record, for keys of kind LRP.
func (k Key) LRP() lrp.Key {
	return lrp.Key{ProcessGUID: k.GUID, DefinitionID: k.DefinitionID, Index: k.Index, Domain: k.Domain}
}

// An Item is one instance or one task that needs a cell.
type Item struct {
	Key
	// Resources is what the item takes from the cell, besides one container. A
	// size of 0 takes nothing.
	executor.Resources
	// The cell must offer RootFS, VolumeDrivers and PlacementTags. An empty RootFS
	// asks for none, for work that is not a container.
	RootFS        string   `json:"rootfs,omitempty"`
	VolumeDrivers []string `json:"volume_drivers,omitempty"`
	PlacementTags []string `json:"placement_tags,omitempty"`
	// Fields are fields of the definition that some cells cannot honour; see
	// executor.DemandedFields. The cell must not refuse any of them. They are for
	// placement alone, so a Runner leaves them out of what it hands to the cell.
	Fields []string `json:"fields,omitempty"`
	// Attempt is a task's attempt, for the cell that gets it. Of two items for one
	// task the later attempt counts.
	Attempt task.Attempt `json:"attempt,omitzero"`
	// QueuedAt is when the work first requested a cell. It decides nothing.
	QueuedAt time.Time `json:"queued_at"`
}

// NewLRP makes the item for the instance with the given key. It fails with a
// [*executor.ValidationError] if the deployment has no such definition.
func NewLRP(d *lrp.Deployment, key lrp.Key, queuedAt time.Time) (Item, error) {
	definition, ok := d.Definitions[key.DefinitionID]
	if !ok {
		var v executor.Validator
		v.Check(false, "definition_id", key.DefinitionID, "a definition of deployment "+d.ProcessGUID)
		return Item{}, v.Err()
	}
	return Item{
		Key: Key{
			Kind: LRP, GUID: key.ProcessGUID, Domain: key.Domain,
			Index: key.Index, DefinitionID: key.DefinitionID,
		},
		Resources:     definition.Resources,
		RootFS:        definition.RootFS,
		VolumeDrivers: definition.VolumeDrivers(),
		PlacementTags: definition.PlacementTags,
		Fields:        executor.DemandedFields(&definition.RunInfo, d.ImageUsername != ""),
		QueuedAt:      queuedAt,
	}, nil
}

// NewTask makes the item for the current attempt to run a task.
func NewTask(t *task.Task, queuedAt time.Time) Item {
	return Item{
		Key:           Key{Kind: Task, GUID: t.GUID, Domain: t.Domain},
		Resources:     t.Resources,
		RootFS:        t.RootFS,
		VolumeDrivers: t.VolumeDrivers(),
		PlacementTags: t.PlacementTags,
		Fields:        executor.DemandedFields(&t.RunInfo, t.ImageUsername != ""),
		Attempt:       t.Attempt(),
		QueuedAt:      queuedAt,
	}
}

// Validate checks what placement needs: a GUID, a root file system with a scheme
// if there is one, and sizes and an index within their limits.
func (i *Item) Validate(v *executor.Validator) {
	if i.Kind > Task {
		v.Check(false, "kind", i.Kind, "LRP or Task")
	}
	if i.Kind == Task && i.Index != 0 {
		v.Check(false, "index", i.Index, "0 for a task")
	}
	if i.Kind == Task && i.DefinitionID != "" {
		v.Check(false, "definition_id", i.DefinitionID, "empty for a task")
	}
	if i.GUID == "" {
		v.Check(false, "guid", "", "not empty")
	}
	checkSize(v, "index", int64(i.Index), MaxSize, "at most 1099511627776")
	checkSize(v, "memory_mb", i.MemoryMB, MaxSize, "at most 1099511627776")
	checkSize(v, "disk_mb", i.DiskMB, MaxSize, "at most 1099511627776")
	checkSize(v, "max_pids", i.MaxPIDs, MaxSize, "at most 1099511627776")
	i.Extra.Validate(v, "extra_resources")
	if i.RootFS != "" && strings.IndexByte(i.RootFS, ':') <= 0 {
		v.Check(false, "rootfs", i.RootFS, "a URL with a scheme")
	}
}

func (i *Item) invalid() error {
	var v executor.Validator
	i.Validate(&v)
	return v.Err()
}

// compareWithinOwner orders the items of one GUID by index, definition and
// domain. It orders items with equal keys by their content, so the order in the
// list does not matter. Valid items precede invalid ones.
func compareWithinOwner(a, b *Item) int {
	c := cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Index, b.Index),
		strings.Compare(a.DefinitionID, b.DefinitionID),
		strings.Compare(a.Domain, b.Domain),
	)
	if c != 0 {
		return c
	}
	switch aInvalid, bInvalid := a.invalid() != nil, b.invalid() != nil; {
	case bInvalid && !aInvalid:
		return -1
	case aInvalid && !bInvalid:
		return 1
	}
	return cmp.Or(
		cmp.Compare(b.Attempt.Epoch, a.Attempt.Epoch),
		cmp.Compare(b.Attempt.Rejections, a.Attempt.Rejections),
		cmp.Compare(b.MemoryMB, a.MemoryMB),
		cmp.Compare(b.DiskMB, a.DiskMB),
		cmp.Compare(b.MaxPIDs, a.MaxPIDs),
		compareAmounts(a.Extra, b.Extra),
		strings.Compare(a.RootFS, b.RootFS),
		slices.Compare(a.VolumeDrivers, b.VolumeDrivers),
		slices.Compare(a.PlacementTags, b.PlacementTags),
		slices.Compare(a.Fields, b.Fields),
		a.QueuedAt.Compare(b.QueuedAt),
	)
}

// compareAmounts puts the larger amount of the first name first in which they
// differ. An amount of 0 comes after a missing one.
func compareAmounts(a, b executor.Amounts) int {
	for _, name := range a.Plus(b).Names() {
		if c := cmp.Compare(b[name], a[name]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}
