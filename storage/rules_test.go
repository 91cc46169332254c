package storage_test

import (
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A process of the release before updates a deployment and drops definitions, and
// leaves the rules as they are.
func TestTheStateOfARolloutIsOnlyThatOfItsDefinition(t *testing.T) {
	rolling := func(active string, ids ...string) *lrp.Deployment {
		d := &lrp.Deployment{ActiveDefinitionID: active, Definitions: map[string]lrp.Definition{}}
		for _, id := range ids {
			d.Definitions[id] = lrp.Definition{}
		}
		return d
	}
	wrote := rolling("v2", "v1", "v2")
	wrote.Rollout = &lrp.RolloutPolicy{Canary: 1}
	wrote.RolloutState = lrp.RolloutState{From: "v1", Confirmed: true}
	data, err := storage.EncodeRules(wrote)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why  string
		d    *lrp.Deployment
		kept bool
	}{
		{"nothing has changed", rolling("v2", "v1", "v2"), true},
		{"another definition is active", rolling("v3", "v1", "v2", "v3"), false},
		{"the definition before is gone", rolling("v2", "v2"), false},
	} {
		if err := storage.DecodeRules(data, test.d); err != nil {
			t.Fatal(err)
		}
		if kept := !test.d.RolloutState.IsZero(); kept != test.kept || test.d.Rollout == nil {
			t.Errorf("%s: %+v, %+v", test.why, test.d.RolloutState, test.d.Rollout)
		}
	}
}
