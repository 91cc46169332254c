package converge_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/task"
)

func ids(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("cell-%02d", i))
	}
	return list
}

// look is what a Guard is shown, and what it should believe.
type look struct {
	after   time.Duration
	present []string
	want    string
}

// believed says how many of the known cells are missing, and how many are gone
// and doubted. If none is doubted, an unknown cell is missing too. unsettled means
// that no cell is missing at all.
func believed(missing, doubted int) string {
	return fmt.Sprintf("%d missing, %d doubted", missing, doubted)
}

const unsettled = "unsettled"

func TestAGuardBelievesSmallLossesAtOnceAndLargeOnesWhenTheyLast(t *testing.T) {
	all := believed(0, 0)
	settle := []look{{0, ids(10), unsettled}, {time.Minute, ids(10), all}}
	tests := []struct {
		name  string
		guard converge.Guard
		looks []look
	}{
		{"no loss is believed until the cells had time to announce themselves", converge.Guard{}, []look{
			{0, ids(1), unsettled}, {59 * time.Second, ids(9), unsettled}, {time.Second, ids(10), all},
		}},
		{"a small loss in that time is believed at its end", converge.Guard{}, []look{
			{0, ids(10), unsettled}, {50 * time.Second, ids(9), unsettled}, {10 * time.Second, ids(9), believed(1, 0)},
		}},
		{"a large loss in that time is doubted beyond it", converge.Guard{}, []look{
			{0, ids(10), unsettled}, {50 * time.Second, ids(4), believed(0, 6)}, {59 * time.Second, ids(4), believed(0, 6)},
			{time.Second, ids(4), believed(6, 0)},
		}},
		{"half of the cells may vanish at once", converge.Guard{}, append(settle, look{time.Second, ids(5), believed(5, 0)})},
		{"more than half must be gone for a while", converge.Guard{}, append(settle,
			look{time.Second, ids(4), believed(0, 6)}, look{59 * time.Second, ids(4), believed(0, 6)}, look{time.Second, ids(4), believed(6, 0)},
			look{time.Second, ids(2), believed(8, 0)})},
		{"more than half must be gone for a while, even if they go one by one", converge.Guard{}, append(settle,
			look{time.Second, ids(8), believed(2, 0)}, look{10 * time.Second, ids(6), believed(4, 0)},
			look{10 * time.Second, ids(4), believed(0, 6)}, look{10 * time.Second, ids(2), believed(0, 8)},
			look{30 * time.Second, ids(2), believed(2, 6)}, look{10 * time.Second, ids(2), believed(4, 4)},
			look{20 * time.Second, ids(2), believed(8, 0)})},
		{"a loss that was not believed stays unbelieved while others come back", converge.Guard{}, append(settle,
			look{time.Second, ids(1), believed(0, 9)}, look{30 * time.Second, ids(3), believed(0, 7)},
			look{time.Second, ids(9), believed(0, 1)}, look{28 * time.Second, ids(9), believed(0, 1)}, look{time.Second, ids(9), believed(1, 0)})},
		{"cells that came back count among the losses of the last grace", converge.Guard{}, append(settle,
			look{time.Second, ids(10)[3:], believed(3, 0)}, look{10 * time.Second, ids(10), all},
			look{10 * time.Second, ids(10)[:7], believed(0, 3)})},
		{"and not of the grace before", converge.Guard{}, append(settle,
			look{time.Second, ids(10)[3:], believed(3, 0)}, look{10 * time.Second, ids(10), all},
			look{50 * time.Second, ids(10)[:7], believed(3, 0)})},
		{"a slow trickle of losses is believed, each at once", converge.Guard{}, append(settle,
			look{20 * time.Second, ids(9), believed(1, 0)}, look{20 * time.Second, ids(8), believed(2, 0)},
			look{20 * time.Second, ids(7), believed(3, 0)}, look{20 * time.Second, ids(6), believed(4, 0)},
			look{20 * time.Second, ids(5), believed(5, 0)}, look{20 * time.Second, ids(4), believed(6, 0)})},
		{"a cell that was gone for the grace stays missing when too many others follow", converge.Guard{TaskGrace: time.Hour}, append(settle,
			look{time.Second, ids(9), believed(1, 0)}, look{time.Minute, ids(2), believed(1, 7)})},
		{"an empty list is never believed", converge.Guard{}, append(settle,
			look{time.Second, nil, unsettled}, look{time.Hour, nil, unsettled}, look{time.Second, ids(10), all})},
		{"after an empty list the first cells to return are not all there are", converge.Guard{}, append(settle,
			look{time.Second, nil, unsettled}, look{30 * time.Second, ids(1), believed(0, 9)}, look{20 * time.Second, ids(8), believed(0, 2)},
			look{10 * time.Second, ids(8), believed(2, 0)})},
		{"however long the list was empty", converge.Guard{}, append(settle,
			look{time.Second, nil, unsettled}, look{time.Hour, nil, unsettled},
			look{time.Second, ids(1), believed(0, 9)}, look{58 * time.Second, ids(4), believed(0, 6)}, look{time.Second, ids(4), believed(6, 0)})},
		{"a list that begins empty is not settled by waiting", converge.Guard{}, []look{
			{0, nil, unsettled}, {time.Hour, nil, unsettled}, {time.Second, ids(1), unsettled}, {59 * time.Second, ids(10), all}}},
		{"a cell that is listed twice is one cell", converge.Guard{}, append(settle,
			look{time.Second, append(ids(10), "cell-00", "cell-00", "cell-00"), all}, look{time.Second, ids(10)[5:], believed(5, 0)})},
		{"a negative share believes no loss at once", converge.Guard{MaxLoss: -1}, append(settle,
			look{time.Second, ids(10), all}, look{time.Second, ids(9), believed(0, 1)}, look{time.Minute, ids(9), believed(1, 0)})},
		{"the share is a knob", converge.Guard{MaxLoss: 0.1}, append(settle,
			look{time.Second, ids(9), believed(1, 0)}, look{time.Second, ids(8), believed(0, 2)})},
		{"a share of one believes anything but nothing", converge.Guard{MaxLoss: 1}, append(settle,
			look{time.Second, ids(1), believed(9, 0)}, look{time.Second, nil, unsettled})},
		{"the grace is a knob", converge.Guard{Grace: -1}, []look{{0, ids(10), all}, {0, ids(1), believed(9, 0)}, {0, nil, unsettled}}},
		{"new cells are not a loss", converge.Guard{}, append(settle,
			look{time.Second, ids(40), all}, look{time.Minute, ids(20), believed(20, 0)})},
		{"losses are judged against the cells of a grace ago", converge.Guard{}, append(settle,
			look{time.Second, ids(40), all}, look{30 * time.Second, ids(34), believed(0, 6)})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s converge.GuardState
			now := noon
			for i, l := range tt.looks {
				now = now.Add(l.after)
				var cells converge.Cells
				cells, s = tt.guard.Observe(s, l.present, now)
				missing := 0
				for _, k := range s.Known {
					if cells.Missing(k.ID) {
						missing++
					}
					if slices.Contains(l.present, k.ID) != cells.Present(k.ID) || cells.Present(k.ID) == k.Gone {
						t.Errorf("look %d: %+v is present: %t", i, k, cells.Present(k.ID))
					}
				}
				// Cells that are forgotten are missing like any unknown one.
				for _, id := range ids(10) {
					if !slices.ContainsFunc(s.Known, func(k converge.KnownCell) bool { return k.ID == id }) && cells.Missing(id) {
						missing++
					}
				}
				got := believed(missing, len(cells.Doubted()))
				if missing+len(cells.Doubted()) == 0 && !cells.Trusted() || len(l.present) == 0 {
					got = unsettled
				}
				if cells.Missing("cell-99") != cells.Trusted() {
					t.Errorf("look %d: an unknown cell is missing: %t", i, !cells.Trusted())
				}
				if got != l.want {
					t.Errorf("look %d at %d cells after %s: got %s, want %s", i, len(l.present), now.Sub(noon), got, l.want)
				}
				if want := got != unsettled && len(cells.Doubted()) == 0; cells.Trusted() != want {
					t.Errorf("look %d: trusted is %t, want %t", i, cells.Trusted(), want)
				}
			}
		})
	}
}

func TestObservingDoesNotChangeTheStateThatItWasGiven(t *testing.T) {
	_, before := converge.Guard{}.Observe(converge.GuardState{}, ids(10), noon)
	kept := before
	kept.Known = slices.Clone(before.Known)
	for _, present := range [][]string{ids(9), nil, ids(12)} {
		converge.Guard{}.Observe(before, present, noon.Add(time.Minute))
		if diff := cmp.Diff(kept, before); diff != "" {
			t.Fatalf("the state has changed (-before +after):\n%s", diff)
		}
	}
}

// For any order and spacing of presences that end and return: no cell is ever
// missing that belongs to a loss of too many, unless it has been gone for the
// grace; fewer losses are believed at once; and no task of a cell that returns
// within the grace fails.
func TestAGuardJudgesAnyOrderAndSpacingOfLossesByTheLastGrace(t *testing.T) {
	const grace, share, fleet, every = time.Minute, 0.5, 12, time.Second
	believedAtOnce, doubted := 0, 0
	for seed := range seeds(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var s converge.GuardState
		gone := map[string]time.Duration{}     // since when
		returns := map[string]time.Duration{}  // when it is back
		lastLoss := map[string]time.Duration{} // of cells that are back, too
		likely := 1 + random.IntN(300)
		for at := time.Duration(0); at < 10*time.Minute; at += every {
			for _, id := range ids(fleet) {
				if back, is := returns[id]; is && at >= back {
					delete(gone, id)
					delete(returns, id)
				} else if _, is := gone[id]; !is && at > 2*grace && random.IntN(likely) == 0 {
					gone[id], lastLoss[id] = at, at
					// Most return within the grace.
					returns[id] = at + time.Duration(1+random.IntN(80))*every
				}
			}
			var present []string
			for _, id := range ids(fleet) {
				if _, is := gone[id]; !is {
					present = append(present, id)
				}
			}
			var cells converge.Cells
			cells, s = converge.Guard{}.Observe(s, present, noon.Add(at))
			lately := 0
			for _, since := range lastLoss {
				if at-since < grace {
					lately++
				}
			}
			for id, since := range gone {
				long := at-since >= grace
				tooMany := float64(lately) > share*fleet || len(present) == 0
				switch missing := cells.Missing(id); {
				case missing && tooMany && !long:
					t.Fatalf("seed %d, %v: %s is missing since %v, and %d were lost lately", seed, at, id, since, lately)
				case missing && !long:
					believedAtOnce++
				case !missing && len(present) > 0 && !long:
					doubted++
				case !missing && cells.Trusted():
					t.Fatalf("seed %d, %v: %s is neither missing nor doubted, nor is any other", seed, at, id)
				}
				fails := planned(t, cells, id, noon, noon.Add(at))
				if fails && !long {
					t.Fatalf("seed %d, %v: a task fails on %s, gone since %v", seed, at, id, since)
				}
			}
		}
	}
	if (believedAtOnce < 1000 || doubted < 1000) && !testenv.Race {
		t.Errorf("only %d losses were believed at once and %d were doubted", believedAtOnce, doubted)
	}
}

// planned reports whether a task on a cell, begun at that time, would fail.
func planned(t *testing.T, cells converge.Cells, cellID string, begun, now time.Time) bool {
	t.Helper()
	running := task.Task{GUID: "t", State: task.Running, CellID: cellID, UpdatedAt: begun, CreatedAt: begun}
	for a, err := range converge.PlanTasks(values([]task.Task{running}), cells, now, task.Policy{}) {
		if err != nil || a.Reason != converge.CellMissing {
			t.Fatal(a, err)
		}
		return true
	}
	return false
}

func TestTasksOfALostCellWaitOutAGraceOfTheirOwn(t *testing.T) {
	const begun = -time.Hour
	type moment struct {
		after   time.Duration
		present []string
		fails   bool
	}
	tests := []struct {
		name    string
		guard   converge.Guard
		begun   time.Duration // the task, on cell-00
		moments []moment
	}{
		{"however few cells are lost", converge.Guard{}, begun, []moment{
			{0, ids(10)[1:], false}, {59 * time.Second, ids(10)[1:], false}, {time.Second, ids(10)[1:], true}}},
		{"which begins anew when the cell was back", converge.Guard{}, begun, []moment{
			{0, ids(10)[1:], false}, {59 * time.Second, ids(10)[1:], false}, {time.Second, ids(10), false},
			{time.Second, ids(10)[1:], false}, {59 * time.Second, ids(10)[1:], false}, {time.Second, ids(10)[1:], true}}},
		{"which is a knob", converge.Guard{TaskGrace: 5 * time.Minute}, begun, []moment{
			{0, ids(10)[1:], false}, {299 * time.Second, ids(10)[1:], false}, {time.Second, ids(10)[1:], true},
			{time.Hour, ids(10)[1:], true}}},
		{"unless there is none", converge.Guard{TaskGrace: -1}, begun, []moment{{0, ids(10)[1:], true}}},
		{"and are not lost before their cell is", converge.Guard{TaskGrace: -1}, begun, []moment{
			{0, ids(10)[8:], false}, {59 * time.Second, ids(10)[8:], false}, {time.Second, ids(10)[8:], true}}},
		{"which a task that began since has for itself", converge.Guard{}, 90 * time.Second, []moment{
			{100 * time.Second, ids(10)[1:], false}, {50 * time.Second, ids(10)[1:], false}, {10 * time.Second, ids(10)[1:], true}}},
		{"while no cell is there it does not pass", converge.Guard{}, begun, []moment{
			{0, nil, false}, {time.Hour, nil, false}, {time.Second, ids(10)[1:], false}, {59 * time.Second, ids(10)[1:], true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, s := tt.guard.Observe(converge.GuardState{}, ids(10), noon.Add(-time.Hour))
			now := noon
			for i, m := range tt.moments {
				now = now.Add(m.after)
				var cells converge.Cells
				cells, s = tt.guard.Observe(s, m.present, now)
				if got := planned(t, cells, "cell-00", noon.Add(tt.begun), now); got != m.fails {
					t.Errorf("moment %d, after %v: the task fails: %t", i, now.Sub(noon), got)
				}
			}
		})
	}
	t.Run("on a cell that was never seen too", func(t *testing.T) {
		_, s := converge.Guard{}.Observe(converge.GuardState{}, ids(3), noon.Add(-time.Hour))
		cells, _ := converge.Guard{}.Observe(s, ids(3), noon)
		if !cells.Missing("cell-99") || planned(t, cells, "cell-99", noon, noon) || !planned(t, cells, "cell-99", noon.Add(-time.Minute), noon) {
			t.Error("its task should fail a minute after it began, and not before")
		}
	})
}
