package rep_test

import (
	"errors"
	"fmt"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/task"
)

// An instance's container is RUNNING while its record is CLAIMED by another
// cell: ours was faster, and reports that to the BBS.
func ExampleDecideLRP() {
	me := lrp.InstanceKey{InstanceGUID: "i-1", CellID: "cell-1"}
	slot := lrp.Slot{ProcessGUID: "web", Records: []lrp.ActualLRP{{
		Key:         lrp.Key{ProcessGUID: "web", DefinitionID: "v1", Domain: "apps"},
		InstanceKey: lrp.InstanceKey{InstanceGUID: "i-2", CellID: "cell-2"},
		State:       lrp.Claimed,
	}}}

	container, err := rep.SituateContainer(executor.Running, executor.RunResult{})
	if err != nil {
		fmt.Println(err)
		return
	}
	record := rep.SituateLRP(slot, me, "v1")
	row := rep.DecideLRP(container, record)
	fmt.Printf("%v × %v: %s\n", container, record, row.Action())
	fmt.Printf("%v: %s\n", row.Odds, row.Reason)
	// Output:
	// RUNNING × CLAIMED ω: start LRP
	// conceivable: ours runs before ω's does, so ω's is one too many
}

// The cell shuts down. What is not RUNNING yet moves at once; what is RUNNING
// stays until the BBS says that it has been replaced.
func ExampleDecideEvacuation() {
	for _, c := range []rep.ContainerSituation{rep.ContainerStarting, rep.ContainerRunning} {
		fmt.Printf("%v: %s\n", c, rep.DecideEvacuation(c, rep.LRPRunningAlpha).Action())
	}
	// Output:
	// INITIALIZING/CREATED: evacuate claimed LRP, then delete container
	// RUNNING: evacuate running LRP, then delete container unless kept
}

// A task's container could not be made, so its work never began.
func ExampleDecideTask() {
	record := &task.Task{GUID: "backup", State: task.Running, CellID: "cell-1", InstanceGUID: "i-1"}
	result := executor.RunResult{Failed: true, FailureReason: "no such image", Retryable: true}

	container, err := rep.SituateTaskContainer(executor.Completed, result)
	if err != nil {
		fmt.Println(err)
		return
	}
	row := rep.DecideTask(container, rep.SituateTask(record, "cell-1", "i-1"))
	fmt.Println(row.Action())
	// Output:
	// reject task, then delete container
}

// A cell carries out a row step by step. The BBS may refuse one.
func ExampleStep_DeleteWhenRefused() {
	me := lrp.InstanceKey{InstanceGUID: "i-1", CellID: "cell-1"}
	container := rep.ContainerReserved
	bbs := func(rep.Step) error { // another cell has claimed the instance meanwhile
		return fmt.Errorf("%v: %w", me, lrp.ErrCannotBeClaimed)
	}

	for _, step := range rep.DecideLRP(container, rep.LRPUnclaimed).Steps {
		fmt.Println(step)
		if !step.CallsBBS() {
			continue
		}
		err := bbs(step)
		if errors.Is(err, lrp.ErrCannotBeClaimed) && step.DeleteWhenRefused() {
			fmt.Println("refused:", rep.DeleteContainer)
		}
		if err != nil {
			break
		}
	}
	// Output:
	// claim LRP
	// refused: delete container
}
