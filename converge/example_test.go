package converge_test

import (
	"fmt"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// One pass over a process that should have two instances and has one, on a
// cell that is gone.
func ExamplePlanLRPs() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	deployments := []lrp.Deployment{{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 2},
		Definitions: map[string]lrp.Definition{"v1": {}}, ActiveDefinitionID: "v1",
	}}
	slot := lrp.Slot{ProcessGUID: "web", Index: 0}
	me := lrp.InstanceKey{InstanceGUID: "i-0", CellID: "cell-1"}
	for _, c := range []lrp.Command{lrp.CreateMissing{}, lrp.Claim{Instance: me}, lrp.Start{Instance: me}} {
		decision, err := lrp.Step(slot, &deployments[0], c, now, lrp.Policy{})
		if err != nil {
			fmt.Println(err)
			return
		}
		slot = slot.Apply(decision)
		if decision.Deployment != nil {
			deployments[0] = *decision.Deployment
		}
	}

	plan := converge.PlanLRPs(converge.LRPs{
		Deployments: values(deployments), // a real pass streams both from its store
		ActualLRPs:  records(slot.Records),
		Domains:     []lrp.Domain{{Name: "apps"}},
		Cells:       converge.NewCells([]string{"cell-2", "cell-3"}),
	}, now, lrp.Policy{})
	for action, err := range plan {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s/%d: %s: %s\n", action.ProcessGUID, action.Index, action.Command.Name(), action.Reason)
	}
	// Output:
	// web/0: MarkSuspect: the cell is missing
	// web/1: CreateMissing: no instance at a desired index
}

// A task that has been PENDING for a minute is requested again.
func ExamplePlanTasks() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pending := []task.Task{{GUID: "job", Domain: "jobs", State: task.Pending, CreatedAt: now, UpdatedAt: now}}
	for action, err := range converge.PlanTasks(values(pending), converge.NewCells(nil), now.Add(time.Minute), task.Policy{}) {
		fmt.Println(action.GUID, action.Command.Name(), action.Reason, err)
	}
	// Output:
	// job RequestAgain the start is overdue <nil>
}

// Most of the cells vanish, one after the other. The first loss is believed at
// once; when too many follow, none is until it has lasted for a minute.
func ExampleGuard() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var state converge.GuardState
	look := func(after time.Duration, present ...string) {
		var cells converge.Cells
		cells, state = converge.Guard{}.Observe(state, present, now.Add(after))
		fmt.Printf("%-5s %d present, cell-1 missing: %t\n", after, len(present), cells.Missing("cell-1"))
	}
	look(0, "cell-1", "cell-2", "cell-3", "cell-4")
	look(1*time.Minute, "cell-1", "cell-2", "cell-3", "cell-4")
	look(2*time.Minute, "cell-2", "cell-3", "cell-4")
	look(2*time.Minute+10*time.Second, "cell-4")
	look(3*time.Minute+10*time.Second, "cell-4")
	// Output:
	// 0s    4 present, cell-1 missing: false
	// 1m0s  4 present, cell-1 missing: false
	// 2m0s  3 present, cell-1 missing: true
	// 2m10s 1 present, cell-1 missing: false
	// 3m10s 1 present, cell-1 missing: true
}
