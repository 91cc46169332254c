package auction

import (
	"hash/fnv"
	"slices"
)

// PreferredZones is the older rule for the spread over availability zones: each
// instance has one zone of its own (001 §Managing Availability Zones). The
// instances at index 0 and 1 prefer it and go elsewhere if it is full; those at
// higher indices are placed there or not at all. Tasks go anywhere.
//
// It is not in force unless it is applied to a policy, and it can leave
// instances unplaced while other zones have room.
//
// The elements are the names of the zones, numbered 0 … N−1 as listed. An empty
// list is no rule.
type PreferredZones []string

// Apply returns p with the rule added to it, as another filter and as the
// scorer in place of the one that p had.
func (z PreferredZones) Apply(p Policy) Policy {
	if len(z) > 0 {
		p.Filters = append(slices.Clip(p.Filters), z.filter)
		p.Scorer = z.score
	}
	return p
}

// Zone is the preferred zone of an instance: (f(process GUID) + index) mod N,
// where f is the 32-bit FNV-1a hash of the GUID modulo N. The list must not be
// empty and the index not be negative.
func (z PreferredZones) Zone(processGUID string, index int) string {
	h := fnv.New32a()
	h.Write([]byte(processGUID))
	n := uint64(len(z))
	return z[(uint64(h.Sum32())%n+uint64(index)%n)%n]
}

func (z PreferredZones) filter(item *Item, cell *CellState) CellReason {
	if item.Index > 1 && cell.Zone != z.Zone(item.GUID, item.Index) {
		return "outside the preferred zone"
	}
	return ""
}

func (z PreferredZones) score(item *Item, cell *CellState, _ Score) float64 {
	if item.Kind == LRP && cell.Zone != z.Zone(item.GUID, item.Index) {
		return 1
	}
	return 0
}
