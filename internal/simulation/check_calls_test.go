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
