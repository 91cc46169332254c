package task

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

var epoch = time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)

func after(d time.Duration) time.Time { return epoch.Add(d) }

// definition is one that is within all limits.
func definition() Definition {
	return Definition{
		Resources: executor.Resources{MemoryMB: 128, DiskMB: 256, MaxPIDs: 64},
		RunInfo: executor.RunInfo{
			RootFS: "preloaded:linux",
			Action: executor.Action{Run: &executor.RunAction{Path: "/bin/work", User: "vcap"}},
		},
		PlacementTags:         []string{"gpu"},
		ResultFile:            "/tmp/result",
		CompletionCallbackURL: "https://consumer.example/done",
		Annotation:            "nightly",
		MetricTags:            map[string]MetricTag{"kind": {Static: "batch"}},
	}
}

func desire() Desire { return Desire{GUID: "task-1", Domain: "jobs", Definition: definition()} }

// follow applies commands one after another at epoch. Each must be accepted.
func follow(t testing.TB, record *Task, commands ...Command) *Task {
	t.Helper()
	for _, c := range commands {
		record = written(record, step1(t, record, c, epoch))
	}
	return record
}

// step1 is Step, for a command that must be accepted.
func step1(t testing.TB, record *Task, c Command, now time.Time) Decision {
	t.Helper()
	d, err := Step(record, c, now, Policy{})
	if err != nil {
		t.Fatalf("%s: %v", c.Name(), err)
	}
	return d
}

// written is the record once d is committed.
func written(record *Task, d Decision) *Task {
	if d.Write.IsZero() {
		return record
	}
	return d.Write.After
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// records has one record for each state, all made by commands.
func records(t testing.TB) map[State]*Task { return recordsOf(t, desire()) }

func recordsOf(t testing.TB, d Desire) map[State]*Task {
	pending := follow(t, nil, d)
	running := follow(t, pending, startAlpha)
	completed := follow(t, running, completeAlpha)
	return map[State]*Task{
		Absent: nil, Pending: pending, Running: running, Completed: completed,
		Resolving: follow(t, completed, Resolve{}),
	}
}

var (
	startAlpha    = Start{CellID: "α", InstanceGUID: "i1"}
	startBeta     = Start{CellID: "β", InstanceGUID: "i2"}
	completeAlpha = Complete{CellID: "α", InstanceGUID: "i1", Result: "42"}
	rejectAlpha   = Reject{CellID: "α", InstanceGUID: "i1", Reason: "failed to create container"}
	rejected      = Reject{Reason: "insufficient resources"}
)

// everyCommand has one valid command of each kind.
var everyCommand = []Command{
	desire(), Cancel{}, Resolve{}, Delete{}, startAlpha, completeAlpha, rejected,
	Fail{Reason: "no"}, RequestAgain{}, ExpirePending{}, CellMissing{CellID: "α"},
	DemoteResolving{}, RequestCallback{}, ExpireCompleted{},
}
