package lrp_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/diegosdk/diego/lrp"
)

// The life of one instance: desired, claimed, started, crashed and restarted.
func ExampleStep() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	deployment := &lrp.Deployment{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1},
		Definitions: map[string]lrp.Definition{"v1": {}}, ActiveDefinitionID: "v1",
	}
	slot := lrp.Slot{ProcessGUID: "web", Index: 0}
	alpha := lrp.InstanceKey{InstanceGUID: "i-1", CellID: "cell-1"}

	for _, command := range []lrp.Command{
		lrp.CreateMissing{},
		lrp.Claim{Instance: alpha},
		lrp.Start{Instance: alpha, NetInfo: lrp.NetInfo{Address: "10.0.0.1"}},
		lrp.Crash{Instance: alpha, Reason: "exit status 137: out of memory"},
	} {
		decision, err := lrp.Step(slot, deployment, command, now, lrp.Policy{})
		if err != nil {
			fmt.Println(err)
			return
		}
		slot = slot.Apply(decision) // a control plane commits it to its store
		if decision.Deployment != nil {
			deployment = decision.Deployment
		}
		record, _ := lrp.Resolve(slot)
		fmt.Println(command.Name(), "→", record.State, "crashes:", record.CrashCount)
		for _, e := range decision.Events {
			fmt.Println("  event ", e.Kind)
		}
		for _, e := range decision.Effects {
			fmt.Println("  effect", e.Kind)
		}
		now = now.Add(time.Minute)
	}
	_, err := lrp.Step(slot, deployment, lrp.Crash{Instance: alpha}, now, lrp.Policy{})
	fmt.Println(err)
	fmt.Println(errors.Is(err, lrp.ErrCannotBeCrashed))
	// Output:
	// CreateMissing → UNCLAIMED crashes: 0
	//   event  actual_lrp_instance_created
	//   event  actual_lrp_created
	//   effect RequestStart
	// Claim → CLAIMED crashes: 0
	//   event  actual_lrp_instance_changed
	//   event  actual_lrp_changed
	// Start → RUNNING crashes: 0
	//   event  actual_lrp_instance_changed
	//   event  actual_lrp_changed
	//   event  lrp_deployment_changed
	// Crash → UNCLAIMED crashes: 1
	//   event  actual_lrp_crashed
	//   event  actual_lrp_instance_removed
	//   event  actual_lrp_instance_created
	//   event  actual_lrp_changed
	//   effect RequestStart
	// Crash web/0: actual LRP cannot be crashed: it is not this instance's record: definition "v1" is UNCLAIMED ORDINARY
	// true
}
