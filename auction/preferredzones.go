package auction

import "hash/fnv"

// PreferredZones is the older rule for the spread over availability zones: each
// instance has one preferred zone (001 §Managing Availability Zones). The
// instances at index 0 and 1 go elsewhere if that zone is full; those at higher
// indices are placed there or not at all. Tasks go anywhere.
//
// The rule applies only if it is set in a policy. It can leave instances
// unplaced while other zones have room.
//
// The elements are the names of the zones, numbered 0 … N−1 as listed. An empty
// list means no rule.
type PreferredZones []string

// Apply returns p with this rule instead of p's scorer. An empty list returns p
// as it is.
func (z PreferredZones) Apply(p Policy) Policy {
	if len(z) > 0 {
		p.PreferredZones, p.Scorer = z, nil
	}
	return p
}

// Zone returns the preferred zone of an instance: (f(process GUID) + index) mod
// N, where f is the 32-bit FNV-1a hash of the GUID modulo N. The list must not
// be empty and the index not be negative.
func (z PreferredZones) Zone(processGUID string, index int) string {
	return z[z.number(processGUID, index)]
}

func (z PreferredZones) number(processGUID string, index int) uint64 {
	h := fnv.New32a()
	h.Write([]byte(processGUID))
	n := uint64(len(z))
	return (uint64(h.Sum32())%n + uint64(index)%n) % n
}

// OutsidePreferredZone is the reason for which [PreferredZones] passes a cell
// over.
const OutsidePreferredZone CellReason = "outside the preferred zone"

// A home is the zone that an item prefers; the zero value is none.
type home struct {
	// prefers says that there is a preference, and strict that no other zone
	// will do.
	prefers, strict bool
	// zone is none if no cell is in the preferred zone.
	zone int32
}

// home returns the zone that the policy prefers for the item.
func (f *fleet) home(item *Item) home {
	if len(f.preferred) == 0 || item.Kind != LRP {
		return home{}
	}
	return home{true, item.Index > 1, f.preferred[f.preferredZones.number(item.GUID, item.Index)]}
}

// rank is 0 for a zone as good as any, and 1 for one that is not preferred;
// allowed is false if the item may not go there.
func (h home) rank(zone int32) (preference float64, allowed bool) {
	if !h.prefers || zone == h.zone {
		return 0, true
	}
	return 1, !h.strict
}
