package simulation

import (
	"context"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A cell that evacuates first says that it gives the instance up, and may only delete
// its container after an answer.
func TestACellKeepsAnUnwantedContainerOnlyForAsLongAsItGetsNoAnswer(t *testing.T) {
	for name, x := range map[string]struct {
		answer  error
		objects bool
	}{
		"it was answered":     {nil, true},
		"it was refused":      {&lrp.TransitionError{Err: lrp.ErrCannotBeRemoved}, true},
		"the answer was lost": {errLost, false},
		"it was not awaited":  {context.DeadlineExceeded, false},
	} {
		w, err := NewWorld(History{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		starts, nothing := executor.Container{GUID: "instance", State: executor.Created}, lrp.Slot{ProcessGUID: "process"}
		if err := w.finds(w.cells[0], &starts, nothing); err != nil {
			t.Fatalf("%s: at the first look: %v", name, err)
		}
		w.excuses(lrp.InstanceKey{InstanceGUID: "instance", CellID: w.cells[0].presence().CellID}, x.answer)
		w.random.next()
		if err := w.finds(w.cells[0], &starts, nothing); (err != nil) != x.objects {
			t.Errorf("%s: at the second look the checker says %v", name, err)
		}
		w.random.next()
		if err := w.finds(w.cells[0], &starts, nothing); err == nil {
			t.Errorf("%s: nobody objects at a third look without a call between", name)
		}
	}
}

// During a rollout a cell can have two containers at an index, and reads the index for
// one of them.
func TestACellThatReadsAnIndexForAnotherContainerHasNotFoundAnUnwantedOne(t *testing.T) {
	for name, x := range map[string]struct {
		before, after string // of which process another container comes before the first look, or after it
		objects       bool
	}{
		"it has two at the index":          {"process", "none", false},
		"it has another elsewhere":         {"none", "none", true},
		"the other came after it had seen": {"none", "process", true},
	} {
		w, err := NewWorld(History{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		m := w.cells[0]
		take := func(process, definition string) {
			work := auction.Work{CellID: m.presence().CellID, Items: []auction.Item{{Key: auction.Key{Kind: auction.LRP, GUID: process, DefinitionID: definition}}}}
			if rejected, err := m.Perform(t.Context(), work); err != nil || len(rejected) > 0 {
				t.Fatalf("%s: the cell rejects %+v: %v", name, rejected, err)
			}
		}
		take("process", "d1")
		starts := m.holds()[0]
		starts.State = executor.Created
		take(x.before, "d2")
		if err := w.finds(m, &starts, lrp.Slot{ProcessGUID: "process"}); err != nil {
			t.Fatalf("%s: at the first look: %v", name, err)
		}
		take(x.after, "d2")
		w.random.next()
		if err := w.finds(m, &starts, lrp.Slot{ProcessGUID: "process"}); (err != nil) != x.objects {
			t.Errorf("%s: at the second look the checker says %v", name, err)
		}
	}
}

func TestACellThatIsDrainedOrCordonedIsGivenNothingAndTakesNothing(t *testing.T) {
	room := auction.Capacity{MemoryMB: 64, DiskMB: 64, Containers: 1}
	for name, x := range map[string]struct {
		evacuates, cordoned bool
		objects             bool
	}{
		"it takes work":  {false, false, false},
		"it is drained":  {true, false, true},
		"it is cordoned": {false, true, true},
		"it is both":     {true, true, true},
	} {
		said := auction.CellState{Remaining: room, Evacuating: x.evacuates, Cordoned: x.cordoned}
		if err := handed(said, auction.Work{Items: make([]auction.Item, 1)}); (err != nil) != x.objects {
			t.Errorf("%s: it is given work, and the checker says %v", name, err)
		}
		if err := taken("cell", x.evacuates, x.cordoned, 1); (err != nil) != x.objects {
			t.Errorf("%s: it takes work, and the checker says %v", name, err)
		}
		if err := taken("cell", x.evacuates, x.cordoned, 0); err != nil {
			t.Errorf("%s: it takes nothing, and the checker says %v", name, err)
		}
	}
}
