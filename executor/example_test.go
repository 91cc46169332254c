package executor_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
)

// A recipe is a tree: fetch the program, then run it, with a bound on how
// long the fetching may take.
func ExampleAction() {
	recipe := executor.Action{Serial: &executor.SerialAction{Actions: []executor.Action{
		{Timeout: &executor.TimeoutAction{
			TimeoutMs: 60_000,
			Action: executor.Action{Download: &executor.DownloadAction{
				From: "https://blobs.example.com/app.tgz", To: "/home/app", User: "app",
			}},
		}},
		{Run: &executor.RunAction{Path: "/home/app/run", User: "app"}},
	}}}

	var v executor.Validator
	recipe.Validate(&v)
	fmt.Println("error:", v.Err())
	for action := range recipe.All() {
		fmt.Println(action.Kind())
	}
	// Output:
	// error: <nil>
	// serial
	// timeout
	// download
	// run
}

// Decoding refuses what cannot be an action; Validate finds the rest, all of
// it, with the path to each field.
func ExampleAction_Validate() {
	var recipe executor.Action
	err := json.Unmarshal([]byte(`{"try":{"action":{"sleep":{}}}}`), &recipe)
	fmt.Println(err)

	err = json.Unmarshal([]byte(`{"timeout":{"action":{"run":{"path":"/bin/app"}}}}`), &recipe)
	fmt.Println(err)
	var v executor.Validator
	recipe.Validate(v.In("action"))
	fmt.Println(v.Err())
	// Output:
	// invalid input: try.action.sleep: want exactly one of run, download, upload, timeout, try, emit_progress, parallel, serial and codependent
	// <nil>
	// invalid input: action.timeout.timeout_ms: 0: want 1 to 9223372036854 milliseconds; action.timeout.action.run.user: want a text that is not empty
}

// A container goes from reservation to completion; each step returns the next
// container, and a step that is illegal says so.
func ExampleContainer() {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	tags := map[string]string{executor.TagLifecycle: executor.LifecycleTask}
	c, err := executor.Reserve("task-1", executor.Resources{MemoryMB: 64, DiskMB: 128}, tags, now)
	fmt.Println(c.State, err)

	_, err = c.Run(now)
	fmt.Println(err)

	work := executor.RunInfo{
		RootFS: "preloaded:linux",
		Action: executor.Action{Run: &executor.RunAction{Path: "/bin/true", User: "app"}},
	}
	c, err = c.Initialize(work, nil, now.Add(time.Second))
	fmt.Println(c.State, err)
	c, err = c.Create(executor.Addresses{ExternalIP: "10.0.0.5"}, now.Add(2*time.Second))
	fmt.Println(c.State, err)
	c, err = c.Run(now.Add(3 * time.Second))
	fmt.Println(c.State, err)
	c, err = c.Complete(executor.Failed("exit status 1"), now.Add(9*time.Second))
	fmt.Println(c.State, c.RunResult.FailureReason, err)
	// Output:
	// RESERVED <nil>
	// illegal change of container state: container "task-1": RESERVED to RUNNING
	// INITIALIZING <nil>
	// CREATED <nil>
	// RUNNING <nil>
	// COMPLETED exit status 1 <nil>
}

// A reservation that nobody uses ends by itself, so that its resources come
// back and its work can go elsewhere.
func ExampleContainer_Expire() {
	reserved := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	c, _ := executor.Reserve("instance-1", executor.Resources{MemoryMB: 64}, nil, reserved)

	_, expired := c.Expire(executor.DefaultReservationExpiry, reserved.Add(59*time.Second))
	fmt.Println(expired)
	c, expired = c.Expire(executor.DefaultReservationExpiry, reserved.Add(60*time.Second))
	fmt.Println(expired, c.State, c.RunResult.Retryable)
	// Output:
	// false
	// true COMPLETED true
}

func ExampleParseDestinations() {
	ranges, err := executor.ParseDestinations("10.0.0.0/30,192.168.0.7")
	fmt.Println(ranges, err)
	// Output: [10.0.0.0-10.0.0.3 192.168.0.7] <nil>
}
