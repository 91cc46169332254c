package auction

import (
	"fmt"
	"math"
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

// The order of cells for an item, strongest criterion first: the tier, then the
// rank, of which the score is a part. What further resources add to a score is
// in extra.go.

// A pick is a cell that was found for an item, with all that ranks it.
type pick struct {
	tier
	rank
}

// before orders picks of any tiers.
func (p pick) before(other pick) bool {
	if p.tier != other.tier {
		return p.tier.before(other.tier)
	}
	return p.rank.before(other.rank)
}

// A tier is a set of zones that the item prefers equally and that have equally
// many instances of its process. Cells of one tier compete with each other.
type tier struct {
	preference float64
	inZone     int32
}

func (t tier) before(other tier) bool {
	if t.preference != other.preference {
		return t.preference < other.preference
	}
	return t.inZone < other.inZone
}

// A rank orders cells that offer what an item asks for. The criterion of the
// zone precedes it: cells that differ in that are never compared by rank.
type rank struct {
	score int64
	// level is the number of instances of the process on the cell, or the
	// number of tasks.
	level int32
	cell  int32
}

var last = rank{math.MaxInt64, math.MaxInt32, math.MaxInt32}

func (r rank) before(other rank) bool {
	if r.level != other.level {
		return r.level < other.level
	}
	if r.score != other.score {
		return r.score < other.score
	}
	return r.cell < other.cell
}

// A weight is what one unit of a resource adds to the score of a cell; three
// full resources are 3 << scoreBits. A resource that the cell does not have
// adds nothing.
type weight struct{ memory, disk, container int64 }

// scoreBits leaves room in 64 bits for the largest possible score: weights are
// at most 10, counts at most 2^17 (starting) and 2^16 (bin-pack).
const scoreBits = 40

func weigh(total Capacity) weight {
	of := func(n int64) int64 {
		if n == 0 {
			return 0
		}
		return 1 << scoreBits / n
	}
	return weight{of(total.MemoryMB), of(total.DiskMB), of(total.Containers)}
}

// adds is what an item adds to the score of a cell.
func (w weight) adds(n need) int64 {
	return n.memoryMB*w.memory + n.diskMB*w.disk + w.container
}

// least is the smallest of each weight.
func (w weight) least(other weight) weight {
	return weight{min(w.memory, other.memory), min(w.disk, other.disk), min(w.container, other.container)}
}

// packStep is half of one resource, a sixth of the mean of three. It is a power
// of two, so reversing bits reverses the order within every step.
const packStep = 1 << scoreBits / 2

// score is the cell's present resource score, for an item that adds nothing.
func (f *fleet) score(c *cell, k Kind) int64 {
	s := c.use ^ f.reversed + int64(c.starting)*f.starting
	if k == LRP {
		s += int64(c.rank) * f.binPack
	}
	return s
}

// with is the score with an item on the cell.
func (f *fleet) with(c *cell, k Kind, d demand) int64 {
	return f.score(c, k) + c.weight.adds(d.need) + d.extra.adds(c)
}

// choose fills an empty choice with a cell and its score with the item on it.
func (f *fleet) choose(choice *Choice, k Kind, d demand, p pick) {
	c, s := &f.cells[p.cell], &choice.Score
	choice.CellID = c.id
	s.Preference = p.preference
	s.ZoneInstances = int(p.inZone)
	s.Memory = use(c.total.MemoryMB, c.space.memoryMB-d.memoryMB)
	s.Disk = use(c.total.DiskMB, c.space.diskMB-d.diskMB)
	s.Containers = use(c.total.Containers, c.space.containers-1)
	s.Extra = d.extra.use(c)
	s.Starting = float64(c.starting) * f.startingF
	if k == Task {
		s.CellTasks = int(p.level)
	} else {
		s.CellInstances = int(p.level)
		s.BinPack = float64(c.rank) * f.binPackF
	}
}

func use(total, remaining int64) float64 {
	if total == 0 {
		return 0
	}
	return float64(total-remaining) / float64(total)
}
