package auction_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/diegosdk/diego/auction"
)

// referencePlace is how the reference implementation's auctioneer places
// instances on an empty fleet, as far as it matters for the quality: floating
// point, every cell for every item, the first of equals. It goes zone by zone,
// and zones that are equal come in the order of a Go map, which is drawn anew for
// every item.
func referencePlace(cells []auction.CellState, work []auction.Item) auction.Result {
	type refCell struct {
		id               string
		total, remaining auction.Capacity
		starting         int
		instances        map[string]int
	}
	type refZone struct {
		cells     []*refCell
		instances map[string]int
	}
	zones, byName := []*refZone{}, map[string]*refZone{}
	for _, c := range cells {
		z := byName[c.Zone]
		if z == nil {
			z = &refZone{instances: map[string]int{}}
			zones, byName[c.Zone] = append(zones, z), z
		}
		z.cells = append(z.cells, &refCell{id: c.ID, total: c.Total, remaining: c.Remaining, instances: map[string]int{}})
	}
	work = slices.Clone(work)
	slices.SortStableFunc(work, func(a, b auction.Item) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(b.MemoryMB, a.MemoryMB))
	})
	random := rand.New(rand.NewPCG(1, uint64(len(work))))
	var result auction.Result
	for i := range work {
		item := &work[i]
		random.Shuffle(len(zones), func(i, j int) { zones[i], zones[j] = zones[j], zones[i] })
		slices.SortStableFunc(zones, func(a, b *refZone) int {
			return cmp.Compare(a.instances[item.GUID], b.instances[item.GUID])
		})
		var winner *refCell
		var in *refZone
		least := math.Inf(1)
		for i, z := range zones {
			for _, c := range z.cells {
				r := &c.remaining
				if item.MemoryMB > r.MemoryMB || item.DiskMB > r.DiskMB || r.Containers < 1 {
					continue
				}
				used := 1 - float64(r.MemoryMB-item.MemoryMB)/float64(c.total.MemoryMB) +
					1 - float64(r.DiskMB-item.DiskMB)/float64(c.total.DiskMB) +
					1 - float64(r.Containers-1)/float64(c.total.Containers)
				score := used/3 + float64(c.starting)*0.25
				if score >= least { // saves the look into the map
					continue
				}
				if score += 1000 * float64(c.instances[item.GUID]); score < least {
					least, winner, in = score, c, z
				}
			}
			if winner != nil && i+1 < len(zones) && zones[i+1].instances[item.GUID] > z.instances[item.GUID] {
				break
			}
		}
		if winner == nil {
			result.Refusals = append(result.Refusals, auction.Refusal{Item: item})
			continue
		}
		winner.remaining.MemoryMB -= item.MemoryMB
		winner.remaining.DiskMB -= item.DiskMB
		winner.remaining.Containers--
		winner.starting++
		winner.instances[item.GUID]++
		in.instances[item.GUID]++
		result.Placements = append(result.Placements, auction.Placement{Item: item, Choice: auction.Choice{CellID: winner.id}})
	}
	return result
}
