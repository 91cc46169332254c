package task_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/task"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func backup() task.Definition {
	return task.Definition{
		Resources: executor.Resources{MemoryMB: 64, DiskMB: 512},
		RunInfo: executor.RunInfo{
			RootFS: "preloaded:linux",
			Action: executor.Action{Run: &executor.RunAction{Path: "/bin/backup", User: "vcap"}},
		},
		ResultFile:            "/tmp/summary",
		CompletionCallbackURL: "https://consumer.example/backups",
	}
}

// A task runs, its consumer is called back, and the record goes away.
func Example() {
	var record *task.Task // there is none yet
	var policy task.Policy
	for i, command := range []task.Command{
		task.Desire{GUID: "backup-7", Domain: "backups", Definition: backup()},
		task.Start{CellID: "cell-1", InstanceGUID: "instance-a"},
		task.Complete{CellID: "cell-1", InstanceGUID: "instance-a", Result: "3 GB saved"},
		task.Resolve{},
		task.Delete{},
	} {
		decision, err := task.Step(record, command, noon.Add(time.Duration(i)*time.Second), policy)
		if err != nil {
			fmt.Println(err)
			return
		}
		record = decision.Write.After // a store would commit decision.Write and decision.Events here
		for _, event := range decision.Events {
			fmt.Print(event.Cause.Command, ": ", event.Kind)
			if event.After != nil {
				fmt.Print(", ", event.After.State)
			}
		}
		for _, effect := range decision.Effects {
			fmt.Print("; ", effect.Kind)
		}
		fmt.Println()
	}
	// Output:
	// Desire: created, PENDING; request start
	// Start: changed, RUNNING
	// Complete: changed, COMPLETED; call back
	// Resolve: changed, RESOLVING
	// Delete: removed
}

// A second container cannot have a task, and the container that has it runs it
// once.
func ExampleStep_start() {
	desired, _ := task.Step(nil, task.Desire{GUID: "backup-7", Domain: "backups", Definition: backup()}, noon, task.Policy{})
	pending := desired.Write.After

	start := task.Start{CellID: "cell-1", InstanceGUID: "instance-a", Attempt: pending.Attempt()}
	first, _ := task.Step(pending, start, noon, task.Policy{})
	fmt.Println("first:", first.ShouldRun)

	running := first.Write.After
	again, err := task.Step(running, start, noon, task.Policy{})
	fmt.Println("again:", again.ShouldRun, err)

	other := task.Start{CellID: "cell-2", InstanceGUID: "instance-b", Attempt: pending.Attempt()}
	_, err = task.Step(running, other, noon, task.Policy{})
	fmt.Println("other:", errors.Is(err, task.ErrRunningElsewhere))
	// Output:
	// first: true
	// again: false <nil>
	// other: true
}

// Convergence asks what time alone calls for.
func ExampleOverdue() {
	desired, _ := task.Step(nil, task.Desire{GUID: "backup-7", Domain: "backups", Definition: backup()}, noon, task.Policy{})
	for _, wait := range []time.Duration{time.Second, time.Minute, time.Hour} {
		command := task.Overdue(desired.Write.After, noon.Add(wait), task.Policy{})
		if command == nil {
			fmt.Println(wait, "nothing")
			continue
		}
		fmt.Println(wait, command.Name())
	}
	// Output:
	// 1s nothing
	// 1m0s RequestAgain
	// 1h0m0s ExpirePending
}

// A callback is repeated while that may help, and a refusal leaves the task
// where its consumer can find it.
func ExampleCallbackPolicy_Next() {
	policy := task.CallbackPolicy{MaxAttempts: 3, MinBackoff: time.Second}
	for _, status := range []int{503, 0, 200, 403} {
		verdict := policy.Next(task.CallbackOutcome{Status: status}, 2)
		fmt.Println(status, verdict.Action, verdict.Wait, verdict.Reason)
	}
	// Output:
	// 503 try again 2s the consumer is in trouble
	// 0 try again 2s no answer
	// 200 delivered 0s the consumer has the result
	// 403 leave it 0s the consumer refuses the request as it is, so it is not repeated at once
}

// The rules are data.
func ExampleTable() {
	for _, row := range task.Table() {
		if row.State == task.Completed && row.Err == nil && row.Next != row.State {
			fmt.Println(row.State, row.Command, "→", row.Next)
			fmt.Println("\t" + row.Reason)
		}
	}
	// Output:
	// COMPLETED Resolve → RESOLVING
	// 	the first to resolve it deals with it
	// COMPLETED ExpireCompleted → no record
	// 	nobody has resolved it in time
}
