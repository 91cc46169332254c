package auction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/diegosdk/diego/lrp"
)

// A CellReason says why a cell was passed over, in a few words. Filters add
// their own.
type CellReason string

// The reasons of this package, in the order in which they are checked.
const (
	Silent             CellReason = "not answering"
	Failing            CellReason = "left out after failures"
	Invalid            CellReason = "invalid"
	Evacuating         CellReason = "evacuating"
	Cordoned           CellReason = "cordoned"
	Unhealthy          CellReason = "unhealthy"
	Settling           CellReason = "reporting what an earlier run has left"
	OtherRootFS        CellReason = "without the root file system"
	NoVolumeDriver     CellReason = "without the volume drivers"
	OtherPlacementTags CellReason = "with other placement tags"
	RefusesField       CellReason = "refusing fields of the definition"
	LacksMemory        CellReason = "short of memory"
	LacksDisk          CellReason = "short of disk"
	LacksContainers    CellReason = "short of containers"
	LacksPIDs          CellReason = "short of PIDs"
)

// Lacks is the reason of a cell that has too little of a further resource, such as
// "short of gpu".
func Lacks(resource string) CellReason { return shortOf + CellReason(resource) }

const shortOf = "short of "

// stages orders the reasons. Those of filters come between the last two rows, and
// those of further resources last.
var stages = [...][]CellReason{
	{Silent, Failing, Invalid, Evacuating, Cordoned, Unhealthy, Settling},
	{OtherRootFS, NoVolumeDriver, OtherPlacementTags, RefusesField},
	{LacksMemory, LacksDisk, LacksContainers, LacksPIDs},
}

func (r CellReason) stage() int {
	n := 0
	for i, row := range stages {
		if i == len(stages)-1 {
			n++ // a filter's reason
		}
		for _, known := range row {
			if r == known {
				return n
			}
			n++
		}
	}
	if strings.HasPrefix(string(r), shortOf) {
		return n
	}
	return len(stages[0]) + len(stages[1])
}

// A Refusal says that no cell takes an item, and why.
type Refusal struct {
	// Item is the work as it was passed to Place.
	Item *Item `json:"item"`
	// Error is what to report. Its reason is NoCompatibleCells,
	// InsufficientResources, CellsUnreachable or TooManyStarting.
	Error lrp.PlacementError `json:"error"`
	// Invalid is set if the item itself is wrong, so that every fleet would refuse
	// it. It is an [*executor.ValidationError].
	Invalid error `json:"-"`
	// Explanation describes the cells, or is nil if they are not the cause.
	// Refusals share it, so nobody may change it.
	Explanation *Explanation `json:"explanation,omitempty"`
}

// String describes the refusal in one line, for people. The text may change.
func (r Refusal) String() string { return fmt.Sprintf("%v: %v", r.Item.Key, r.Error) }

// An Explanation says for each reason how many cells were passed over for it.
// It describes the fleet with all placements of the batch or, under a policy
// with filters or a scorer, at the time of the refusal.
type Explanation struct {
	// Cells is the number of cells in the fleet. A [Runner] includes those that it
	// left out, as Silent or Failing.
	Cells int `json:"cells"`
	// Reasons are in the order in which they are checked. A cell counts under the
	// first that applies, and under each resource that it lacks.
	Reasons []ReasonCount `json:"reasons"`
	// Nearest is the cell that lacks least of what the item needs, relative to the
	// need; nil if even an empty cell would not do.
	Nearest *NearMiss `json:"nearest,omitempty"`
}

// ReasonCount is the number of cells with a reason.
type ReasonCount struct {
	Reason CellReason `json:"reason"`
	Cells  int        `json:"cells"`
}

type reasonCounts []ReasonCount

func (n *reasonCounts) add(r CellReason) {
	for i := range *n {
		if (*n)[i].Reason == r {
			(*n)[i].Cells++
			return
		}
	}
	*n = append(*n, ReasonCount{r, 1})
}

// sorted puts n in the order in which the reasons are checked.
func (n reasonCounts) sorted() []ReasonCount {
	slices.SortFunc(n, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(a.Reason.stage(), b.Reason.stage()), strings.Compare(string(a.Reason), string(b.Reason)))
	})
	return n
}

func (n reasonCounts) of(r CellReason) int {
	for _, c := range n {
		if c.Reason == r {
			return c.Cells
		}
	}
	return 0
}

// A NearMiss says what a cell lacks to take an item.
type NearMiss struct {
	CellID string   `json:"cell_id"`
	Lacks  Capacity `json:"lacks"`
}

// String is, for example, "of 12 cells 2 evacuating, 10 short of memory; the
// nearest, cell-4, lacks 12 MiB of memory". lrp.PlacementError.Nearest reads the
// end.
func (e *Explanation) String() string {
	parts := make([]string, len(e.Reasons))
	for i, r := range e.Reasons {
		parts[i] = fmt.Sprintf("%d %s", r.Cells, r.Reason)
	}
	of := "cells"
	if e.Cells == 1 {
		of = "cell"
	}
	s := fmt.Sprintf("of %d %s %s", e.Cells, of, strings.Join(parts, ", "))
	if e.Nearest != nil {
		s += "; the nearest, " + e.Nearest.String()
	}
	return s
}

// String is text such as "cell-4, lacks 12 MiB of memory".
func (m *NearMiss) String() string { return lrp.Shortage(*m).String() }

// beyond is what n needs beyond what is left.
func (n need) beyond(left space) Capacity {
	return Capacity{
		MemoryMB:   max(0, n.memoryMB-left.memoryMB),
		DiskMB:     max(0, n.diskMB-left.diskMB),
		Containers: max(0, 1-left.containers),
		PIDs:       max(0, n.pids-left.pids),
	}
}

// lacks is what the cell has too little of for d.
func (c *cell) lacks(d demand) Capacity {
	lacks := d.beyond(c.space)
	lacks.Extra = d.extra.lacks(c.left)
	return lacks
}

// distance measures a lack in parts of the need, in millionths or so. Further
// resources are not in it; see bundle.distance.
func distance(lack Capacity, n need) int64 {
	part := func(lack, need int64) int64 {
		if lack == 0 {
			return 0
		}
		return lack << 20 / need
	}
	return part(lack.MemoryMB, n.memoryMB) + part(lack.DiskMB, n.diskMB) + part(lack.Containers, 1) + part(lack.PIDs, n.pids)
}

// why looks at every cell and says why none takes the item, whose demand is d.
// It also applies the policy's filters.
func (f *fleet) why(item *Item, d demand, o *offer, p *Policy) *Explanation {
	f.looked += int64(len(f.cells))
	e := &Explanation{Cells: len(f.cells)}
	reasons := slices.Clone(f.leftOut)
	for _, r := range reasons {
		e.Cells += r.Cells
	}
	home := f.home(item)
	var nearest int64
	for i := range f.cells {
		c := &f.cells[i]
		reason := c.out
		if reason == "" {
			reason = o.misses[c.offering]
		}
		if reason == "" {
			reason = p.filter(item, c.state)
		}
		if _, allowed := home.rank(c.zone); reason == "" && !allowed {
			reason = OutsidePreferredZone
		}
		if reason != "" {
			reasons.add(reason)
			continue
		}
		lack := c.lacks(d)
		for _, l := range [...]struct {
			amount int64
			reason CellReason
		}{{lack.MemoryMB, LacksMemory}, {lack.DiskMB, LacksDisk}, {lack.Containers, LacksContainers}, {lack.PIDs, LacksPIDs}} {
			if l.amount > 0 {
				reasons.add(l.reason)
			}
		}
		for _, name := range lack.Extra.Names() {
			reasons.add(Lacks(name))
		}
		if far := distance(lack, d.need) + d.extra.distance(c.left); e.Nearest == nil || far < nearest {
			e.Nearest, nearest = &NearMiss{c.id, lack}, far
		}
	}
	e.Reasons = reasons.sorted()
	return e
}

// placementError turns the explanation, of which text is the String, into what
// is recorded: if no cell is compatible, with what the last of them lack.
func (e *Explanation) placementError(w *wants, text string) lrp.PlacementError {
	if e.Nearest != nil {
		return lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: text}
	}
	if last := e.Reasons[len(e.Reasons)-1].Reason; slices.Contains(stages[1], last) {
		text = fmt.Sprintf("%v wanted: %v", w.text(last), text)
	}
	return lrp.PlacementError{Reason: lrp.NoCompatibleCells, Detail: text}
}
