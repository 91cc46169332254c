package auction_test

import (
	"fmt"
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

func TestTheReasonHasEveryPartThatIsNotZeroOnBothCells(t *testing.T) {
	here := auction.Score{ZoneInstances: 1, Memory: 0.25, Disk: 1.0 / 3, Starting: 0.25}
	there := auction.Score{ZoneInstances: 1, CellInstances: 2, Memory: 0.5, Disk: 1.0 / 3}
	wild := auction.Score{Preference: -1e300, CellTasks: 3, Containers: 1, Extra: 2, BinPack: 0.5}
	for _, c := range []struct {
		p     auction.Placement
		parts string
	}{
		{auction.Placement{Choice: auction.Choice{Score: here}, RunnerUp: auction.Choice{CellID: "cell-2", Score: there}},
			"; parts against cell-2: of its process in the zone 1/1, of its process on the cell 0/2, memory in use 0.25/0.5, disk in use 0.33333/0.33333, containers that start 0.25/0"},
		{auction.Placement{Choice: auction.Choice{Score: here}}, "; parts: of its process in the zone 1, memory in use 0.25, disk in use 0.33333, containers that start 0.25"},
		{auction.Placement{Choice: auction.Choice{Score: wild}}, "; parts: preference -1e+300, tasks on the cell 3, containers in use 1, further resources in use 2, bin packing 0.5"},
		{auction.Placement{RunnerUp: auction.Choice{CellID: "cell-2"}}, ""},
	} {
		reason, short := c.p.Reason(), fmt.Sprintf("score %.4f, %s", c.p.Score.Resources(), c.p.Why())
		if reason != short+c.parts {
			t.Errorf("got  %s\nwant %s", reason, short+c.parts)
		}
		if len(c.parts) > 400+len(c.p.RunnerUp.CellID) {
			t.Errorf("%d bytes: %s", len(c.parts), c.parts)
		}
		if got := auction.WithoutParts(reason); got != short {
			t.Errorf("without the parts: %s", got)
		}
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
