package rep

import (
	"errors"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

func TestContainersAreSituatedByStateAndResult(t *testing.T) {
	for _, c := range []struct {
		name   string
		state  executor.State
		result executor.RunResult
		lrp    ContainerSituation
		task   TaskContainer
	}{
		{"reserved", executor.Reserved, executor.RunResult{}, ContainerReserved, TaskContainerReserved},
		{"initializing", executor.Initializing, executor.RunResult{}, ContainerStarting, TaskContainerActive},
		{"created", executor.Created, executor.RunResult{}, ContainerStarting, TaskContainerActive},
		{"running", executor.Running, executor.RunResult{}, ContainerRunning, TaskContainerActive},
		{"ended well, which an LRP should not", executor.Completed, executor.RunResult{}, ContainerCrashed, TaskContainerCompleted},
		{"failed", executor.Completed, executor.RunResult{Failed: true}, ContainerCrashed, TaskContainerCompleted},
		{"failed before the work began", executor.Completed, executor.RunResult{Failed: true, Retryable: true}, ContainerCrashed, TaskContainerRetryable},
		{"told to stop", executor.Completed, executor.RunResult{Stopped: true}, ContainerShutdown, TaskContainerCompleted},
		{"a reservation that expired", executor.Completed, executor.RunResult{Failed: true, Retryable: true, Expired: true}, ContainerShutdown, TaskContainerRetryable},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := SituateContainer(c.state, c.result); err != nil || got != c.lrp {
				t.Errorf("as an LRP: %v, %v, want %v", got, err, c.lrp)
			}
			if got, err := SituateTaskContainer(c.state, c.result); err != nil || got != c.task {
				t.Errorf("as a task: %v, %v, want %v", got, err, c.task)
			}
		})
	}
	for _, s := range []executor.State{0, executor.Completed + 1} {
		if _, err := SituateContainer(s, executor.RunResult{}); !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("state %d of an LRP: %v", s, err)
		}
		if _, err := SituateTaskContainer(s, executor.RunResult{}); !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("state %d of a task: %v", s, err)
		}
	}
}

func TestTheRecordThatSaysMostAboutAnInstanceCounts(t *testing.T) {
	me := lrp.InstanceKey{InstanceGUID: "i1", CellID: "a"}
	other := lrp.InstanceKey{InstanceGUID: "i2", CellID: "b"}
	none := lrp.InstanceKey{}
	record := func(definition string, s lrp.State, p lrp.Presence, k lrp.InstanceKey) lrp.ActualLRP {
		return lrp.ActualLRP{Key: lrp.Key{ProcessGUID: "p", DefinitionID: definition}, InstanceKey: k, State: s, Presence: p}
	}
	for _, c := range []struct {
		name    string
		records []lrp.ActualLRP
		want    LRPSituation
	}{
		{"an empty slot", nil, LRPNone},
		{"unclaimed", []lrp.ActualLRP{record("d1", lrp.Unclaimed, lrp.Ordinary, none)}, LRPUnclaimed},
		{"crashed", []lrp.ActualLRP{record("d1", lrp.Crashed, lrp.Ordinary, none)}, LRPCrashed},
		{"claimed by us", []lrp.ActualLRP{record("d1", lrp.Claimed, lrp.Ordinary, me)}, LRPClaimedAlpha},
		{"running as ours", []lrp.ActualLRP{record("d1", lrp.Running, lrp.Ordinary, me)}, LRPRunningAlpha},
		{"claimed by another", []lrp.ActualLRP{record("d1", lrp.Claimed, lrp.Ordinary, other)}, LRPClaimedOmega},
		{"running as another's", []lrp.ActualLRP{record("d1", lrp.Running, lrp.Ordinary, other)}, LRPRunningOmega},
		{"our instance on another cell is another's", []lrp.ActualLRP{record("d1", lrp.Running, lrp.Ordinary, lrp.InstanceKey{InstanceGUID: "i1", CellID: "b"})}, LRPRunningOmega},
		{"another instance on our cell is another's", []lrp.ActualLRP{record("d1", lrp.Claimed, lrp.Ordinary, lrp.InstanceKey{InstanceGUID: "i2", CellID: "a"})}, LRPClaimedOmega},
		{"our suspect record, claimed", []lrp.ActualLRP{record("d1", lrp.Claimed, lrp.Suspect, me)}, LRPSuspectAlpha},
		{"our suspect record before its replacement's", []lrp.ActualLRP{record("d1", lrp.Running, lrp.Ordinary, other), record("d1", lrp.Running, lrp.Suspect, me)}, LRPSuspectAlpha},
		{"our evacuating record before its replacement's", []lrp.ActualLRP{record("d1", lrp.Claimed, lrp.Ordinary, other), record("d1", lrp.Running, lrp.Evacuating, me)}, LRPEvacuatingAlpha},
		{"our ordinary record before all others of ours", []lrp.ActualLRP{record("d1", lrp.Claimed, lrp.Ordinary, me), record("d1", lrp.Running, lrp.Evacuating, me), record("d1", lrp.Running, lrp.Suspect, me)}, LRPClaimedAlpha},
		{"our suspect record before our evacuating one", []lrp.ActualLRP{record("d1", lrp.Running, lrp.Evacuating, me), record("d1", lrp.Running, lrp.Suspect, me)}, LRPSuspectAlpha},
		{"suspect and evacuating records of others say nothing", []lrp.ActualLRP{record("d1", lrp.Running, lrp.Evacuating, other), record("d1", lrp.Running, lrp.Suspect, other)}, LRPNone},
		{"our definition before another that runs", []lrp.ActualLRP{record("d1", lrp.Unclaimed, lrp.Ordinary, none), record("d2", lrp.Running, lrp.Ordinary, other)}, LRPUnclaimed},
		{"another definition that runs has taken our place", []lrp.ActualLRP{record("d2", lrp.Running, lrp.Ordinary, other)}, LRPRunningOmega},
		{"another definition that is starting has not", []lrp.ActualLRP{record("d2", lrp.Claimed, lrp.Ordinary, other)}, LRPNone},
		{"another definition that waits has not", []lrp.ActualLRP{record("d2", lrp.Unclaimed, lrp.Ordinary, none), record("d3", lrp.Crashed, lrp.Ordinary, none)}, LRPNone},
		{"a record of ours counts under any definition", []lrp.ActualLRP{record("d2", lrp.Running, lrp.Ordinary, me)}, LRPRunningAlpha},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := SituateLRP(lrp.Slot{ProcessGUID: "p", Records: c.records}, me, "d1"); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestATaskIsOursIfThisContainerOnThisCellHasIt(t *testing.T) {
	if got := SituateTask(nil, "a", "i1"); got != TaskNone {
		t.Errorf("no task: %v", got)
	}
	if got := SituateTask(&task.Task{State: task.Pending}, "a", "i1"); got != TaskPending {
		t.Errorf("a waiting task: %v", got)
	}
	if got := SituateTask(&task.Task{}, "a", "i1"); got != TaskNone {
		t.Errorf("a task without a state: %v", got)
	}
	for state, want := range map[task.State][2]TaskSituation{
		task.Running:   {TaskRunningAlpha, TaskRunningOmega},
		task.Completed: {TaskCompletedAlpha, TaskCompletedOmega},
		task.Resolving: {TaskResolvingAlpha, TaskResolvingOmega},
	} {
		for _, holder := range []struct {
			cell, instance string
			want           TaskSituation
		}{{"a", "i1", want[0]}, {"b", "i1", want[1]}, {"a", "i2", want[1]}, {"", "", want[1]}} {
			record := task.Task{State: state, CellID: holder.cell, InstanceGUID: holder.instance}
			if got := SituateTask(&record, "a", "i1"); got != holder.want {
				t.Errorf("%v held by %q on %q: %v, want %v", state, holder.instance, holder.cell, got, holder.want)
			}
		}
	}
}
