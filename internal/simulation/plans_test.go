package simulation

import "testing"

// A history in which all cells are always in trouble may have no action to compare.
func TestPlansWithActionsAreComparedInTheScenarioOfAllFaults(t *testing.T) {
	plans, actions := 0, 0
	for seed := range uint64(5) {
		w, err := NewWorld(History{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Steps(t.Context(), settled); err != nil {
			t.Fatal(err)
		}
		if err := anything(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		plans, actions = plans+w.Plans, actions+w.Actions
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if plans < 100 || actions < 100 {
		t.Errorf("%d plans with %d actions were compared", plans, actions)
	}
}
