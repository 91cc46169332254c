package auction

import (
	"math"

	"github.com/diegosdk/diego/executor"
)

// Policy holds the knobs of [Place]. The zero value means the documented
// defaults.
type Policy struct {
	// StartingContainerWeight is what each container that is still starting adds
	// to the resource score of its cell; a full cell scores 1. It keeps a batch
	// from starting on few cells at once (default 0.25; negative means nothing is
	// added; at most 10).
	StartingContainerWeight float64
	// BinPackWeight is what each place in the zone's order of cells (by
	// CellState.Index, then by id, from 0) adds to the resource score of an
	// instance. Large enough, it fills one cell after the other (default 0; not
	// negative; at most 10). Cells after the 65,536th of a zone count alike.
	BinPackWeight float64
	// MaxStarting is how many containers may be starting in the fleet, including
	// those placed in this batch. Further work is refused with
	// lrp.TooManyStarting. Cells that take no work are not counted (default
	// 0: no limit; not negative).
	MaxStarting int

	// PreferredZones is the older rule for the spread over zones (default none).
	PreferredZones PreferredZones

	// Filters further restrict which cells may take an item. Scorer precedes the
	// built-in objective and replaces the preference for a zone. With either of
	// them every item is compared with every cell.
	Filters []Filter
	Scorer  Scorer
}

// A Filter says why a cell may not take an item, in a few words that the
// [Explanation] counts, or "" if it may. It sees only cells that offer what the
// item asks for, with what was placed on them so far in this batch. It decides
// from its arguments alone and does not change them. One call of [Place] calls
// it many times in its own goroutine; several calls of Place that share a
// policy call it at the same time.
type Filter func(item *Item, cell *CellState) CellReason

// A Scorer ranks a cell with room for the item: less is better, NaN is worst.
// The built-in objective, which score has, decides between equal ranks. Like a
// Filter it decides from its arguments alone, does not change them, and may be
// called at the same time by several calls of [Place].
type Scorer func(item *Item, cell *CellState, score Score) float64

const maxWeight = 10

// Validate checks that the weights and MaxStarting are within their limits, and
// that no filter is nil.
func (p *Policy) Validate(v *executor.Validator) {
	v.Check(p.StartingContainerWeight <= maxWeight, "starting_container_weight", p.StartingContainerWeight, "at most 10")
	v.Check(p.BinPackWeight >= 0 && p.BinPackWeight <= maxWeight, "bin_pack_weight", p.BinPackWeight, "0 to 10")
	v.Check(p.MaxStarting >= 0, "max_starting", p.MaxStarting, "at least 0")
	for i, f := range p.Filters {
		v.At("filters", i).Check(f != nil, "", "", "a function")
	}
}

// own reports whether the policy has rules that only a scan can apply.
func (p *Policy) own() bool { return len(p.Filters) > 0 || p.Scorer != nil }

func (p *Policy) startingContainerWeight() float64 {
	if p.StartingContainerWeight == 0 {
		return 0.25
	}
	return math.Max(p.StartingContainerWeight, 0)
}
