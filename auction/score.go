package auction

import (
	"fmt"
	"strings"
)

// A Score says how well a cell suits an item; [Place] takes the cell with the
// smallest one. Its fields are in the order of their precedence: the first that
// differs decides. The last six count as one criterion: see [Score.Resources].
//
// Uses are fractions of the cell's totals with the item on the cell, so 1 is
// full. Place computes with integers 2^40 times as large, so two scores that
// print alike may still differ. In a packed [Result] the winner's Resources may
// be up to a sixth above the runner-up's.
type Score struct {
	// Preference is the result of Policy.Scorer, 0 without one.
	Preference float64 `json:"preference,omitempty"`
	// ZoneInstances and CellInstances count the instances of the item's
	// process in the cell's zone and on the cell; 0 for a task.
	ZoneInstances int `json:"zone_instances"`
	CellInstances int `json:"cell_instances"`
	// CellTasks counts the tasks on the cell; 0 for an instance.
	CellTasks int `json:"cell_tasks"`
	// Memory, Disk and Containers are the uses; 0 where the cell has none.
	Memory     float64 `json:"memory"`
	Disk       float64 `json:"disk"`
	Containers float64 `json:"containers"`
	// Extra is the sum of the uses of the cell's further resources.
	Extra float64 `json:"extra_resources,omitempty"`
	// Starting and BinPack are the cell's counts times the policy's weights.
	Starting float64 `json:"starting"`
	BinPack  float64 `json:"bin_pack,omitempty"`
}

// Resources returns the last criterion: the mean of the three uses, a third of
// the use of each further resource, and what the policy's weights add to it.
func (s Score) Resources() float64 {
	return (s.Memory+s.Disk+s.Containers+s.Extra)/3 + s.Starting + s.BinPack
}

// String names every part that decided.
func (s Score) String() string {
	var b strings.Builder
	if s.Preference != 0 {
		fmt.Fprintf(&b, "preference %g, ", s.Preference)
	}
	if s.CellTasks > 0 {
		fmt.Fprintf(&b, "other tasks on the cell: %d, ", s.CellTasks)
	}
	if s.ZoneInstances > 0 || s.CellInstances > 0 {
		fmt.Fprintf(&b, "%d of its process in the zone and %d on the cell, ", s.ZoneInstances, s.CellInstances)
	}
	fmt.Fprintf(&b, "resources %.3f (memory %.1f%%, disk %.1f%%, containers %.1f%%, ",
		s.Resources(), 100*s.Memory, 100*s.Disk, 100*s.Containers)
	if s.Extra != 0 {
		fmt.Fprintf(&b, "further resources %.1f%%, ", 100*s.Extra)
	}
	fmt.Fprintf(&b, "starting +%.2f", s.Starting)
	if s.BinPack != 0 {
		fmt.Fprintf(&b, ", bin-pack +%.2f", s.BinPack)
	}
	b.WriteString(")")
	return b.String()
}

// A Choice is a cell and how well it suits an item.
type Choice struct {
	CellID string `json:"cell_id"`
	Score  Score  `json:"score"`
}

// A Placement says where an item goes and what decided.
type Placement struct {
	// Item is the work as it was passed to Place.
	Item *Item `json:"item"`
	// Choice is the winner.
	Choice
	// RunnerUp is the cell that would have won without the winner. Its CellID is
	// empty if no other cell could take the item.
	RunnerUp Choice `json:"runner_up"`
}

// String describes the placement in one line, for people. The text may change.
func (p Placement) String() string {
	s := fmt.Sprintf("%v goes to %s: %v", p.Item.Key, p.CellID, p.Score)
	if p.RunnerUp.CellID == "" {
		return s + "; no other cell can take it"
	}
	return fmt.Sprintf("%s; runner-up %s: %v", s, p.RunnerUp.CellID, p.RunnerUp.Score)
}
