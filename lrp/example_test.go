package lrp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
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

// During an evacuation the old instance is what a consumer sees until its
// replacement runs.
func ExampleResolve() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	deployment := &lrp.Deployment{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1},
		Definitions: map[string]lrp.Definition{"v1": {}}, ActiveDefinitionID: "v1", HealthyDefinitionID: "v1",
	}
	slot := lrp.Slot{ProcessGUID: "web", Index: 0}
	alpha := lrp.InstanceKey{InstanceGUID: "i-1", CellID: "cell-1"}
	beta := lrp.InstanceKey{InstanceGUID: "i-2", CellID: "cell-2"}
	for _, command := range []lrp.Command{
		lrp.Start{Domain: "apps", Instance: alpha},
		lrp.EvacuateRunning{Instance: alpha},
		lrp.Claim{Instance: beta},
		lrp.Start{Instance: beta},
	} {
		decision, err := lrp.Step(slot, deployment, command, now, lrp.Policy{})
		if err != nil {
			fmt.Println(err)
			return
		}
		slot = slot.Apply(decision)
		seen, _ := lrp.Resolve(slot)
		fmt.Println(len(slot.Records), "records; seen:", seen.State, seen.Presence, "on", seen.CellID)
	}
	// Output:
	// 1 records; seen: RUNNING ORDINARY on cell-1
	// 2 records; seen: RUNNING EVACUATING on cell-1
	// 2 records; seen: RUNNING EVACUATING on cell-1
	// 1 records; seen: RUNNING ORDINARY on cell-2
}

// Three instances are wanted; as many are there, and yet one is missing.
func ExampleDelta() {
	missing, extra := lrp.Delta(3, []int{0, 2, 4})
	fmt.Println("missing", missing, "extra", extra)
	// Output:
	// missing [1] extra [4]
}

// How long a crashed instance waits.
func ExampleRestartPolicy() {
	crashed := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var policy lrp.RestartPolicy
	for _, count := range []int{4, 6, 8, 200, 201} {
		next := policy.Next(count, crashed)
		if next.Never {
			fmt.Println(count, "crashes: never")
			continue
		}
		fmt.Println(count, "crashes: after", next.At.Sub(crashed))
	}
	// Output:
	// 4 crashes: after 1m0s
	// 6 crashes: after 4m0s
	// 8 crashes: after 16m0s
	// 200 crashes: after 16m0s
	// 201 crashes: never
}

// A look at two indices of which the first has been rolled already.
func ExampleRollout() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	deployment := &lrp.Deployment{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 2},
		Definitions:        map[string]lrp.Definition{"v1": {}, "v2": {}},
		ActiveDefinitionID: "v2", HealthyDefinitionID: "v2",
	}
	slots := []lrp.Slot{{ProcessGUID: "web", Index: 0}, {ProcessGUID: "web", Index: 1}}
	for index, definition := range []string{"v2", "v1"} {
		start := lrp.Start{DefinitionID: definition, Instance: lrp.InstanceKey{InstanceGUID: "i-" + definition, CellID: "cell-1"}}
		decision, err := lrp.Step(slots[index], deployment, start, now, lrp.Policy{})
		if err != nil {
			fmt.Println(err)
			return
		}
		slots[index] = slots[index].Apply(decision)
	}

	rollout := lrp.NewRollout(deployment, now, lrp.Policy{})
	for _, slot := range slots {
		if command := rollout.Visit(slot); command != nil {
			fmt.Println("index", slot.Index, "needs", command.Name())
		}
	}
	s := rollout.Status()
	fmt.Printf("%d done, %d pending, waits for %v at %d, complete: %v\n", s.Done, s.Pending, s.WaitsFor, s.HeldBy, s.Complete())
	// Output:
	// index 1 needs AdvanceRollout
	// 1 done, 1 pending, waits for START at 1, complete: false
}

// A new definition becomes the active one; what cannot be changed is refused.
func ExampleDeployment_Update() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	definition := lrp.Definition{
		Resources: executor.Resources{MemoryMB: 256, DiskMB: 512},
		RunInfo: executor.RunInfo{
			RootFS: "preloaded:linux",
			Action: executor.Action{Run: &executor.RunAction{Path: "/app/server", User: "vcap"}},
		},
	}
	change, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 3},
		DefinitionID: "v1", Definition: definition,
	}, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	deployment := change.After // a control plane commits the change to its store

	id := "v2"
	change, err = deployment.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(change.Events[0].Explain())
	fmt.Printf("active %s of %q\n", change.After.ActiveDefinitionID, change.After.DefinitionIDs())

	_, err = change.After.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
	fmt.Println(err)
	var update lrp.Update
	fmt.Println(json.Unmarshal([]byte(`{"instances": 5, "memory_mb": 64}`), &update))
	// Output:
	// rollout from definition v1 to v2
	// active v2 of ["v1" "v2"]
	// web: deployment change refused: definition id "v2" is taken; activate it, or choose another id
	// invalid input: memory_mb: want a member that can be updated; anything else needs a new definition
}

// What an operator reads about one instance.
func ExampleEvent_Explain() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	deployment := &lrp.Deployment{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1},
		Definitions: map[string]lrp.Definition{"v1": {}}, ActiveDefinitionID: "v1", HealthyDefinitionID: "v1",
	}
	slot := lrp.Slot{ProcessGUID: "web", Index: 0}
	alpha := lrp.InstanceKey{InstanceGUID: "i-1", CellID: "z1-3"}
	beta := lrp.InstanceKey{InstanceGUID: "i-2", CellID: "z2-1"}
	for _, command := range []lrp.Command{
		lrp.CreateMissing{},
		lrp.Fail{Error: lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: "4 cells lack 64 MiB or more"}},
		lrp.Claim{Instance: alpha, Reason: "score 0.2500, least load: 0.2500 against 0.3125 on z2-1"},
		lrp.Start{Instance: alpha},
		lrp.MarkSuspect{CellID: "z1-3"},
		lrp.Start{Instance: beta},
		lrp.Crash{Instance: beta, Reason: "exit status 137: out of memory"},
	} {
		decision, err := lrp.Step(slot, deployment, command, now, lrp.Policy{})
		if err != nil {
			fmt.Println(err)
			return
		}
		slot = slot.Apply(decision)
		fmt.Println(decision.Events[0].Explain())
	}
	// Output:
	// waits for a cell
	// could not be placed: insufficient resources: 4 cells lack 64 MiB or more
	// placed on z1-3: score 0.2500, least load: 0.2500 against 0.3125 on z2-1
	// runs on z1-3
	// cell z1-3 is missing: a replacement is on its way
	// runs on z2-1
	// crashed: exit status 137: out of memory (crash 1, restarts at once)
}
