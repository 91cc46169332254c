package converge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/task"
)

// newTask is a task that the commands have been applied to at noon.
func newTask(t testing.TB, callback string, commands ...task.Command) *task.Task {
	t.Helper()
	definition := task.Definition{CompletionCallbackURL: callback}
	definition.RootFS = "preloaded:linux"
	definition.Action = executor.Action{Run: &executor.RunAction{Path: "/bin/true", User: "vcap"}}
	var rec *task.Task
	for _, c := range append([]task.Command{task.Desire{GUID: "t", Domain: "jobs", Definition: definition}}, commands...) {
		d, err := task.Step(rec, c, noon, task.Policy{})
		if err != nil {
			t.Fatal(c.Name(), err)
		}
		rec = d.Write.After
	}
	return rec
}

func TestEachDutyTowardsTasksIsPlannedWithItsReason(t *testing.T) {
	start := task.Start{CellID: "cell-1", InstanceGUID: "i"}
	complete := task.Complete{CellID: "cell-1", InstanceGUID: "i"}
	const url = "http://127.0.0.1/done"
	tests := []struct {
		name  string
		task  *task.Task
		after time.Duration
		cells []string
		want  string
	}{
		{"a young PENDING task", newTask(t, url), 30*time.Second - 1, ids(3), ""},
		{"a PENDING task whose start is overdue", newTask(t, url), 30 * time.Second, ids(3), "RequestAgain{}: the start is overdue"},
		{"a PENDING task that was never started", newTask(t, url), 30 * time.Minute, ids(3), "ExpirePending{}: not started in time"},
		{"a RUNNING task on a missing cell", newTask(t, url, start), time.Second, ids(3), "CellMissing{CellID:cell-1}: the cell is missing"},
		{"a RUNNING task when no list is believed", newTask(t, url, start), time.Hour, nil, ""},
		{"a RUNNING task on a present cell", newTask(t, url, start), time.Hour, []string{"cell-1"}, ""},
		{"a COMPLETED task", newTask(t, url, start, complete), 30*time.Second - 1, ids(3), ""},
		{"a COMPLETED task that nobody called back about", newTask(t, url, start, complete), 30 * time.Second, ids(3), "RequestCallback{}: the completion callback is overdue"},
		{"a COMPLETED task without a callback", newTask(t, "", start, complete), 30 * time.Second, ids(3), ""},
		{"a COMPLETED task that nobody resolved", newTask(t, "", start, complete), 2 * time.Minute, ids(3), "ExpireCompleted{}: completed and not resolved in time"},
		{"a RESOLVING task", newTask(t, url, start, complete, task.Resolve{}), 30*time.Second - 1, ids(3), ""},
		{"a RESOLVING task that got stuck", newTask(t, url, start, complete, task.Resolve{}), 30 * time.Second, ids(3), "DemoteResolving{}: resolving takes too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			for a, err := range converge.PlanTasks(values([]task.Task{*tt.task}), converge.NewCells(tt.cells), noon.Add(tt.after), task.Policy{}) {
				if err != nil || a.GUID != "t" {
					t.Fatal(a, err)
				}
				got += fmt.Sprintf("%s%+v: %s", a.Command.Name(), a.Command, a.Reason)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestATaskThatCannotBeReadStopsNoOther(t *testing.T) {
	list := []task.Task{*newTask(t, ""), *newTask(t, "")}
	var got []string
	for a, err := range converge.PlanTasks(withErrors(list, 0, 1, 2), converge.NewCells(ids(1)), noon.Add(time.Minute), task.Policy{}) {
		got = append(got, fmt.Sprint(a.Reason, ": ", err))
	}
	want := []string{
		"Reason(0): unreadable", "the start is overdue: <nil>",
		"Reason(0): unreadable", "the start is overdue: <nil>", "Reason(0): unreadable",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for n := 1; n < len(want); n++ {
		seen := 0
		for range converge.PlanTasks(withErrors(list, 0, 1, 2), converge.NewCells(ids(1)), noon.Add(time.Minute), task.Policy{}) {
			if seen++; seen == n {
				break
			}
		}
	}
}
