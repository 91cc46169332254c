package auction_test

import (
	"testing"

	"github.com/diegosdk/diego/auction"
)

func TestWhyNamesTheFirstCriterionThatDiffers(t *testing.T) {
	for _, c := range []struct {
		won, lost auction.Score
		want      string
	}{
		{auction.Score{Preference: -1, CellInstances: 9}, auction.Score{}, "preferred: -1 against 0 on cell-2"},
		{auction.Score{CellInstances: 9}, auction.Score{ZoneInstances: 1}, "fewest of its process in the zone: 0 against 1 with cell-2"},
		{auction.Score{ZoneInstances: 1, Memory: 1}, auction.Score{ZoneInstances: 1, CellInstances: 2}, "fewest of its process: 0 against 2 on cell-2"},
		{auction.Score{CellTasks: 1, Memory: 1}, auction.Score{CellTasks: 2}, "fewest tasks: 1 against 2 on cell-2"},
		{auction.Score{Memory: 0.03}, auction.Score{Disk: 0.06}, "least load: 0.0100 against 0.0200 on cell-2"},
		{auction.Score{Memory: 0.06}, auction.Score{Memory: 0.03}, "fullest of equally loaded cells: 0.0200 against 0.0100 on cell-2"},
		{auction.Score{Memory: 0.03}, auction.Score{Memory: 0.03}, "as good as cell-2"},
	} {
		p := auction.Placement{
			Choice:   auction.Choice{CellID: "cell-1", Score: c.won},
			RunnerUp: auction.Choice{CellID: "cell-2", Score: c.lost},
		}
		if got := p.Why(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := (auction.Placement{}).Why(); got != "no other cell can take it" {
		t.Errorf("without a runner-up: %q", got)
	}
}

func TestPlacementsAreToldBeforeTheCellsAre(t *testing.T) {
	var h *auctionHouse
	var told auction.Result
	h = newHouse(t, auction.RunnerOptions{Placed: func(r auction.Result) {
		told = r
		for _, c := range h.cells {
			if len(c.got) > 0 {
				t.Errorf("%s was told first", c.id)
			}
		}
	}}, "cell-1", "cell-2")
	h.Request(exampleWork(2)...)
	performed := h.round(t).Performed
	if len(told.Placements) != 2 || len(performed) != 2 || told.Placements[0].CellID == told.Placements[1].CellID {
		t.Errorf("told of %v, performed %v", told.Placements, performed)
	}
	told = auction.Result{}
	if h.round(t); told.Placements != nil {
		t.Error("told of a round without work")
	}
}
