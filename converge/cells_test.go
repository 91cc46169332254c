package converge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/diegosdk/diego/converge"
)

func ids(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("cell-%02d", i))
	}
	return list
}

func TestAGuardBelievesSmallLossesAtOnceAndLargeOnesWhenTheyLast(t *testing.T) {
	type look struct {
		after   time.Duration
		present []string
		trusted bool
	}
	settle := []look{{0, ids(10), false}, {time.Minute, ids(10), true}}
	tests := []struct {
		name  string
		guard converge.Guard
		looks []look
	}{
		{"no loss is believed until the cells had time to announce themselves", converge.Guard{}, []look{
			{0, ids(1), false}, {59 * time.Second, ids(9), false}, {time.Second, ids(10), true},
		}},
		{"half of the cells may vanish at once", converge.Guard{}, append(settle, look{time.Second, ids(5), true})},
		{"more than half must be gone for a while", converge.Guard{}, append(settle,
			look{time.Second, ids(4), false}, look{59 * time.Second, ids(4), false}, look{time.Second, ids(4), true},
			look{time.Second, ids(2), true})},
		{"cells that come back in time were never gone", converge.Guard{}, append(settle,
			look{time.Second, ids(1), false}, look{30 * time.Second, ids(3), false}, look{time.Second, ids(9), true},
			look{time.Second, ids(4), false})},
		{"an empty list is never believed", converge.Guard{}, append(settle,
			look{time.Second, nil, false}, look{time.Hour, nil, false}, look{time.Second, ids(10), true})},
		{"after an empty list the first cells to return are not all there are", converge.Guard{}, append(settle,
			look{time.Second, nil, false}, look{30 * time.Second, ids(1), false}, look{20 * time.Second, ids(8), true})},
		{"however long the list was empty", converge.Guard{}, append(settle,
			look{time.Second, nil, false}, look{time.Hour, nil, false},
			look{time.Second, ids(1), false}, look{58 * time.Second, ids(4), false}, look{time.Second, ids(4), true})},
		{"a list that begins empty is not settled by waiting", converge.Guard{}, []look{
			{0, nil, false}, {time.Hour, nil, false}, {time.Second, ids(1), false}, {59 * time.Second, ids(10), true}}},
		{"a cell that is listed twice is one cell", converge.Guard{}, append(settle,
			look{time.Second, append(ids(10), "cell-00", "cell-00", "cell-00"), true}, look{time.Second, ids(10)[5:], true})},
		{"a negative share believes no loss at once", converge.Guard{MaxLoss: -1}, append(settle,
			look{time.Second, ids(10), true}, look{time.Second, ids(9), false})},
		{"the share is a knob", converge.Guard{MaxLoss: 0.1}, append(settle,
			look{time.Second, ids(9), true}, look{time.Second, ids(8), false})},
		{"a share of one believes anything but nothing", converge.Guard{MaxLoss: 1}, append(settle,
			look{time.Second, ids(1), true}, look{time.Second, nil, false})},
		{"the grace is a knob", converge.Guard{Grace: -1}, []look{{0, ids(10), true}, {0, ids(1), true}, {0, nil, false}}},
		{"new cells are no loss", converge.Guard{}, append(settle, look{time.Second, ids(40), true}, look{time.Second, ids(20), true})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s converge.GuardState
			now := noon
			for i, l := range tt.looks {
				now = now.Add(l.after)
				var cells converge.Cells
				cells, s = tt.guard.Observe(s, l.present, now)
				if cells.Trusted() != l.trusted {
					t.Errorf("look %d at %d cells after %s: trusted is %t", i, len(l.present), now.Sub(noon), cells.Trusted())
				}
				if missing := cells.Missing("cell-99"); missing != l.trusted {
					t.Errorf("look %d: an unknown cell is missing: %t", i, missing)
				}
				for _, id := range l.present {
					if !cells.Present(id) || cells.Missing(id) {
						t.Errorf("look %d: %s is not present", i, id)
					}
				}
			}
		})
	}
}
