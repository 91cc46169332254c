package auction_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/diegosdk/diego/auction"
)

func mustPlace(t testing.TB, cells []auction.CellState, work []auction.Item, p auction.Policy) auction.Result {
	t.Helper()
	r, err := auction.Place(cells, work, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// How many instances find no cell in a fleet that is asked for 97 % of its
// memory is a matter of luck: for twelve seeds of this kind of work it is 28 to
// 85 here and 24 to 80 with the reference's algorithm, which differs in its
// tie rules only. This is one draw, held as it is.
func TestTenThousandInstancesFillAThousandCellsTo97Percent(t *testing.T) {
	const seed = 9
	work := apps(rand.New(rand.NewPCG(seed, 1)), 10_000, even)
	cells := fleetFor(1000, work, 0.97)
	r := mustPlace(t, cells, work, auction.Policy{})
	q := qualityOf(cells, r)
	t.Logf("seed %d: %+v", seed, q)
	if q.unplaced > 36 || q.stddev > 0.044 {
		t.Errorf("%d unplaced, standard deviation %.3f; want at most 36 and 0.044", q.unplaced, q.stddev)
	}
	skewedForWantOfRoomOnly(t, cells, r)
}

// skewedForWantOfRoomOnly replays the placements: an instance is in a zone with
// more instances of its app than another zone has only if no cell there had
// room for it.
func skewedForWantOfRoomOnly(t *testing.T, cells []auction.CellState, r auction.Result) {
	t.Helper()
	states := map[string]*auction.CellState{}
	for i := range cells {
		c := cells[i]
		states[c.ID] = &c
	}
	counts := map[string]map[string]int{}
	for _, p := range r.Placements {
		perZone := counts[p.Item.GUID]
		if perZone == nil {
			perZone = map[string]int{}
			counts[p.Item.GUID] = perZone
		}
		winner := states[p.CellID]
		for _, zone := range []string{"z1", "z2", "z3"} {
			if perZone[zone] >= perZone[winner.Zone] {
				continue
			}
			for _, c := range states {
				if c.Zone == zone && c.Remaining.MemoryMB >= p.Item.MemoryMB && c.Remaining.DiskMB >= p.Item.DiskMB && c.Remaining.Containers > 0 {
					t.Fatalf("%v, but %s has room in %s", p, c.ID, zone)
				}
			}
		}
		perZone[winner.Zone]++
		winner.Remaining.MemoryMB -= p.Item.MemoryMB
		winner.Remaining.DiskMB -= p.Item.DiskMB
		winner.Remaining.Containers--
	}
}

func TestAFullFleetIsFilledAsWellAsTheReferenceFillsIt(t *testing.T) {
	var ours, theirs quality
	for seed := range uint64(12) {
		for _, draw := range []sizes{powers, even} {
			work := apps(rand.New(rand.NewPCG(seed, 1)), 2_000, draw)
			cells := fleetFor(200, work, 0.97)
			ours = ours.plus(qualityOf(cells, mustPlace(t, cells, work, auction.Policy{})))
			theirs = theirs.plus(qualityOf(cells, referencePlace(cells, work)))
		}
	}
	t.Logf("seeds 0 to 11, two draws each, in all: Place %+v, the reference %+v", ours, theirs)
	// Other names for the same apps move either figure by a fifth.
	if float64(ours.unplaced) > 1.1*float64(theirs.unplaced) || ours.stddev > 1.1*theirs.stddev {
		t.Errorf("Place leaves %d unplaced with deviations of %.3f, the reference %d and %.3f",
			ours.unplaced, ours.stddev, theirs.unplaced, theirs.stddev)
	}
}

func (q quality) plus(other quality) quality {
	return quality{q.unplaced + other.unplaced, q.stddev + other.stddev, q.skew + other.skew, q.missing + other.missing}
}

func TestInARoomyFleetEveryAppOfThreeIsInAllThreeZones(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			work := apps(rand.New(rand.NewPCG(seed, 1)), 10_000, powers)
			cells := fleetFor(1000, work, 0.6)
			if q := qualityOf(cells, mustPlace(t, cells, work, auction.Policy{})); q.unplaced > 0 || q.skew > 1 || q.missing > 0 {
				t.Errorf("%+v; want none unplaced, a skew of at most 1 and no app that misses a zone", q)
			}
		})
	}
}
