package httpapi

import (
	"slices"
	"testing"

	"github.com/diegosdk/diego/internal/wire"
)

func TestEveryListThatEndsSharesTheBoundOfItsCaller(t *testing.T) {
	lists := 0
	for _, info := range slices.Concat(infosOf(bbsCalls), infosOf(cellCalls), infosOf(auctioneerCalls), infosOf(lockCalls), infosOf(convergenceCalls)) {
		each, shares := maxLists, "lists"
		if info.Long {
			each, shares = 0, ""
		}
		lists++
		if info.Each != each || info.Shares != shares {
			t.Errorf("%s: %d at a time, shared with %q; want %d and %q", info.Name, info.Each, info.Shares, each, shares)
		}
	}
	if lists < 8 {
		t.Errorf("only %d lists were seen", lists)
	}
}

// infosOf are those of the lists of a table.
func infosOf[A any](table []wire.Endpoint[A]) (list []*wire.Info) {
	for i, c := range describe("", table) {
		if c.Many && !c.Feed {
			list = append(list, table[i].About())
		}
	}
	return list
}
