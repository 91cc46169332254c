package rep

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// The tests of this file hold the tables against what the BBS really does.
// Slots and tasks are reached through commands only.

var (
	alpha = lrp.InstanceKey{InstanceGUID: "i1", CellID: "cell-1"}
	omega = lrp.InstanceKey{InstanceGUID: "i2", CellID: "cell-2"}

	start    = time.Unix(1_000_000, 0).UTC()
	restarts = lrp.Policy{}                                                  // a first crash restarts at once
	waits    = lrp.Policy{Restart: lrp.RestartPolicy{ImmediateRestarts: -1}} // every crash waits
)

func deployment(instances int, active string) *lrp.Deployment {
	return &lrp.Deployment{
		ProcessGUID: "p", Domain: "domain",
		Settings:           lrp.Settings{Instances: instances},
		Definitions:        map[string]lrp.Definition{"d1": {}, "d2": {}},
		ActiveDefinitionID: active, HealthyDefinitionID: "d1",
	}
}

// decide applies one command and returns the slot as it is then.
func decide(s lrp.Slot, d *lrp.Deployment, c lrp.Command, now time.Time, policy lrp.Policy) (lrp.Slot, lrp.Decision, error) {
	decision, err := lrp.Step(s, d, c, now, policy)
	return s.Apply(decision), decision, err
}

// call is the command that a step sends.
func call(s Step, me lrp.InstanceKey) lrp.Command {
	switch s {
	case ClaimLRP:
		return lrp.Claim{DefinitionID: "d1", Instance: me}
	case StartLRP:
		return lrp.Start{DefinitionID: "d1", Domain: "domain", Instance: me}
	case CrashLRP:
		return lrp.Crash{DefinitionID: "d1", Domain: "domain", Instance: me, Reason: "exit 1"}
	case RemoveLRP:
		return lrp.Remove{DefinitionID: "d1", Instance: me}
	case RemoveEvacuatingLRP:
		return lrp.RemoveEvacuating{DefinitionID: "d1", Instance: me}
	case EvacuateClaimedLRP:
		return lrp.EvacuateClaimed{DefinitionID: "d1", Instance: me}
	case EvacuateRunningLRP:
		return lrp.EvacuateRunning{DefinitionID: "d1", Instance: me}
	case EvacuateStoppedLRP:
		return lrp.EvacuateStopped{DefinitionID: "d1", Instance: me}
	case EvacuateCrashedLRP:
		return lrp.EvacuateCrashed{DefinitionID: "d1", Instance: me, Reason: "exit 1"}
	}
	return nil
}

// reach calls f once for every slot that commands lead to, as far as the
// tables can tell slots apart.
func reach(t *testing.T, f func(s lrp.Slot, how []string)) {
	t.Helper()
	type place struct {
		slot lrp.Slot
		how  []string
	}
	commands := []lrp.Command{
		lrp.CreateMissing{}, lrp.StopExtra{}, lrp.AdvanceRollout{}, lrp.RemoveSuspect{}, lrp.Prune{},
		lrp.Restart{DefinitionID: "d1"},
	}
	for _, me := range []lrp.InstanceKey{alpha, omega} {
		commands = append(commands, lrp.MarkSuspect{CellID: me.CellID}, lrp.Recover{CellID: me.CellID})
		for s := ClaimLRP; s <= EvacuateCrashedLRP; s++ {
			commands = append(commands, call(s, me))
		}
	}
	commands = append(commands, lrp.Claim{DefinitionID: "d2", Instance: omega}, lrp.Start{DefinitionID: "d2", Domain: "domain", Instance: omega})
	shape := func(s lrp.Slot) (text string) {
		for _, r := range s.Records {
			text += fmt.Sprintf("%s %v %v %s;", r.DefinitionID, r.Presence, r.State, r.InstanceGUID)
		}
		return text
	}
	seen := map[string]bool{}
	queue := []place{{slot: lrp.Slot{ProcessGUID: "p"}}}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		f(p.slot, p.how)
		for _, d := range []*lrp.Deployment{deployment(1, "d1"), deployment(1, "d2"), deployment(0, "d1")} {
			for _, c := range commands {
				for _, policy := range []lrp.Policy{restarts, waits} {
					// Each command comes long after the one before it.
					next, _, err := decide(p.slot, d, c, start.Add(time.Duration(len(p.how))*time.Minute), policy)
					if k := shape(next); err == nil && !seen[k] {
						seen[k] = true
						queue = append(queue, place{next, append(slices.Clip(p.how), c.Name())})
					}
				}
			}
		}
	}
	t.Logf("%d slots", len(seen))
}

// replaced reports whether the BBS is right to refuse a step because of
// another instance: one that is RUNNING, which no start overrules, or, while a
// definition is rolled out, one of another definition that is all there is,
// which no crash concerns. The container is deleted then.
func replaced(s lrp.Slot, step Step, err error) bool {
	running := func(r lrp.ActualLRP) bool {
		return r.Presence == lrp.Ordinary && r.State == lrp.Running && r.InstanceKey != alpha
	}
	other := func(r lrp.ActualLRP) bool { return r.Presence == lrp.Ordinary && r.DefinitionID != "d1" }
	switch {
	case errors.Is(err, lrp.ErrCannotBeStarted):
		return step == StartLRP && slices.ContainsFunc(s.Records, running)
	case errors.Is(err, lrp.ErrCannotBeCrashed):
		return step == CrashLRP && slices.ContainsFunc(s.Records, other)
	}
	return false
}

func TestTheBBSAgreesWithTheLRPTables(t *testing.T) {
	met := map[LRPSituation]int{}
	late := start.Add(time.Hour)
	reach(t, func(s lrp.Slot, how []string) {
		l := SituateLRP(s, alpha, "d1")
		met[l]++
		for _, d := range []*lrp.Deployment{deployment(1, "d1"), deployment(1, "d2"), deployment(0, "d1")} {
			for c := range ContainerSituation(ContainerSituations) {
				for _, step := range slices.Concat(DecideLRP(c, l).Steps, DecideEvacuation(c, l).Steps) {
					if !step.CallsBBS() {
						continue
					}
					if _, _, err := decide(s, d, call(step, alpha), late, restarts); err != nil && !(replaced(s, step, err) && step.DeleteWhenRefused()) {
						t.Errorf("%v × %v (%v): %v: %v", c, l, how, step, err)
					}
				}
			}
			if _, _, err := decide(s, d, call(StartLRP, alpha), late, restarts); l == LRPRunningOmega && !errors.Is(err, lrp.ErrCannotBeStarted) {
				t.Errorf("one too many (%v) could start: %v", how, err)
			}
		}
	})
	for l := range LRPSituation(LRPSituations) {
		if met[l] == 0 {
			t.Errorf("no command leads to %v", l)
		}
	}
}

// A cell is alone with its BBS: what it does about a container leads, within a
// few polls, to where nothing changes any more, and there container and record
// agree.
func TestFollowingTheLRPTablesSettles(t *testing.T) {
	modes := map[string]func(ContainerSituation, LRPSituation) Row{"ordinary": DecideLRP, "evacuating": DecideEvacuation}
	reach(t, func(s lrp.Slot, how []string) {
		for mode, table := range modes {
			for _, d := range []*lrp.Deployment{deployment(1, "d1"), deployment(1, "d2"), deployment(0, "d1")} {
				for c := range ContainerSituation(ContainerSituations) {
					slot, container := s, c
					for range 4 {
						slot, container = poll(slot, container, d, table)
					}
					l := SituateLRP(slot, alpha, "d1")
					again, same := poll(slot, container, d, table)
					if same != container || SituateLRP(again, alpha, "d1") != l {
						t.Fatalf("%s: %v (%v): still moving at %v × %v", mode, c, how, container, l)
					}
					if !agree(mode, container, l) {
						t.Errorf("%s: %v (%v): settled at %v × %v", mode, c, how, container, l)
					}
				}
			}
		}
	})
}

// poll carries out one row, as a cell does.
func poll(s lrp.Slot, c ContainerSituation, d *lrp.Deployment, table func(ContainerSituation, LRPSituation) Row) (lrp.Slot, ContainerSituation) {
	keep := false
	for _, step := range table(c, SituateLRP(s, alpha, "d1")).Steps {
		switch {
		case step.CallsBBS():
			next, decision, err := decide(s, d, call(step, alpha), start.Add(time.Hour), waits)
			if err != nil && step.DeleteWhenRefused() {
				return s, NoContainer
			} else if err != nil {
				return s, c
			}
			s, keep = next, decision.KeepContainer
		case step == RunContainer:
			c = ContainerStarting
		case step == DeleteContainer, step == DeleteContainerUnlessKept && !keep:
			c = NoContainer
		}
	}
	return s, c
}

// agree says which pairs may last.
func agree(mode string, c ContainerSituation, l LRPSituation) bool {
	mine := l == LRPClaimedAlpha || l == LRPRunningAlpha || l == LRPSuspectAlpha || l == LRPEvacuatingAlpha
	switch c {
	case NoContainer:
		return !mine
	case ContainerReserved:
		return mode == "ordinary" && l == LRPSuspectAlpha
	case ContainerStarting:
		return mode == "ordinary" && (l == LRPClaimedAlpha || l == LRPSuspectAlpha)
	case ContainerRunning:
		if mode == "evacuating" {
			return l == LRPEvacuatingAlpha || l == LRPUnclaimed // +ε; see the evacuation table
		}
		return l == LRPRunningAlpha || l == LRPSuspectAlpha
	}
	return false
}

func reachTasks(t *testing.T, f func(record *task.Task)) {
	t.Helper()
	var commands []task.Command
	for _, me := range []lrp.InstanceKey{alpha, omega} {
		commands = append(commands,
			task.Start{CellID: me.CellID, InstanceGUID: me.InstanceGUID},
			task.Complete{CellID: me.CellID, InstanceGUID: me.InstanceGUID},
			task.Reject{CellID: me.CellID, InstanceGUID: me.InstanceGUID, Reason: "no image"},
		)
	}
	commands = append(commands,
		task.Desire{GUID: "t", Domain: "domain", Definition: taskDefinition()},
		task.Cancel{}, task.Resolve{}, task.Delete{}, task.Fail{Reason: "failed"}, task.Reject{Reason: "full"},
		task.CellMissing{CellID: alpha.CellID}, task.DemoteResolving{},
	)
	seen := map[string]bool{}
	queue := []*task.Task{nil}
	for len(queue) > 0 {
		record := queue[0]
		queue = queue[1:]
		f(record)
		for _, c := range commands {
			d, err := task.Step(record, c, start.Add(time.Hour), task.Policy{})
			if err != nil || d.Write.After == nil {
				continue
			}
			next := d.Write.After
			k := fmt.Sprint(next.State, next.CellID, next.InstanceGUID, next.RejectionCount)
			if !seen[k] {
				seen[k] = true
				queue = append(queue, next)
			}
		}
	}
	t.Logf("%d tasks", len(seen))
}

// taskCall is the command that a step sends.
func taskCall(s Step, a task.Attempt) task.Command {
	switch s {
	case StartTask:
		return task.Start{CellID: alpha.CellID, InstanceGUID: alpha.InstanceGUID, Attempt: a}
	case CompleteTask:
		return task.Complete{CellID: alpha.CellID, InstanceGUID: alpha.InstanceGUID, Attempt: a}
	case FailTask:
		return task.Complete{CellID: alpha.CellID, InstanceGUID: alpha.InstanceGUID, Attempt: a, Failed: true, FailureReason: "no container"}
	case RejectTask:
		return task.Reject{CellID: alpha.CellID, InstanceGUID: alpha.InstanceGUID, Attempt: a, Reason: "no image"}
	}
	return nil
}

func TestTheBBSAgreesWithTheTaskTable(t *testing.T) {
	met := map[TaskSituation]int{}
	reachTasks(t, func(record *task.Task) {
		situation := SituateTask(record, alpha.CellID, alpha.InstanceGUID)
		met[situation]++
		for c := range TaskContainer(TaskContainers) {
			for _, step := range DecideTask(c, situation).Steps {
				if !step.CallsBBS() {
					continue
				}
				d, err := task.Step(record, taskCall(step, record.Attempt()), start.Add(2*time.Hour), task.Policy{})
				if err != nil {
					t.Errorf("%v × %v: %v: %v", c, situation, step, err)
				} else if d.Write.IsZero() {
					t.Errorf("%v × %v: %v changes nothing", c, situation, step)
				}
				if step == StartTask && !d.ShouldRun {
					t.Errorf("%v × %v: the task is started, but is not to run", c, situation)
				}
				// A container that was reserved for an earlier attempt is of
				// no use to a task that waits for another.
				stale := record.Attempt()
				stale.Rejections--
				_, err = task.Step(record, taskCall(step, stale), start.Add(2*time.Hour), task.Policy{})
				if situation == TaskPending && (!errors.Is(err, task.ErrOtherAttempt) || !step.DeleteWhenRefused()) {
					t.Errorf("%v × %v: %v of an earlier attempt: %v", c, situation, step, err)
				}
			}
		}
	})
	for s := range TaskSituation(TaskSituations) {
		if met[s] == 0 {
			t.Errorf("no command leads to %v", s)
		}
	}
}

// RunContainer comes after a claim or a start, so that is what a failure finds.
func TestTheBBSTakesBackWhatCouldNotRun(t *testing.T) {
	slot := lrp.Slot{ProcessGUID: "p"}
	for _, c := range []lrp.Command{lrp.CreateMissing{}, call(ClaimLRP, alpha), call(LRPRunFailed().Steps[0], alpha)} {
		next, _, err := decide(slot, deployment(1, "d1"), c, start, restarts)
		if err != nil {
			t.Fatal(err)
		}
		slot = next
	}
	if l := SituateLRP(slot, alpha, "d1"); l != LRPUnclaimed {
		t.Errorf("the LRP is %v, want UNCLAIMED", l)
	}
	var record *task.Task
	for _, c := range []task.Command{
		task.Desire{GUID: "t", Domain: "domain", Definition: taskDefinition()},
		taskCall(StartTask, task.Attempt{}), taskCall(TaskRunFailed().Steps[0], task.Attempt{}),
	} {
		d, err := task.Step(record, c, start, task.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		record = d.Write.After
	}
	if record.State != task.Completed || !record.Failed {
		t.Errorf("the task is %v, failed = %v", record.State, record.Failed)
	}
	for _, row := range []Row{LRPRunFailed(), TaskRunFailed()} {
		if row.Reason == "" || len(row.Steps) != 2 || row.Steps[1] != DeleteContainer {
			t.Errorf("%+v does not clean up the reservation last", row)
		}
	}
}

// Work begins where RunContainer is; it begins again only after a rejection,
// which says that it did not begin.
func TestFollowingTheTaskTableRunsATaskAtMostOnce(t *testing.T) {
	for _, ends := range []TaskContainer{TaskContainerCompleted, TaskContainerRetryable} {
		d, err := task.Step(nil, task.Desire{GUID: "t", Domain: "domain", Definition: taskDefinition()}, start, task.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		record, container, runs := d.Write.After, TaskContainerReserved, 0
		attempt := record.Attempt()
		for range 20 {
			situation := SituateTask(record, alpha.CellID, alpha.InstanceGUID)
			for _, step := range DecideTask(container, situation).Steps {
				switch {
				case step.CallsBBS():
					d, err := task.Step(record, taskCall(step, attempt), start.Add(time.Second), task.Policy{})
					if err != nil {
						t.Fatalf("%v × %v: %v: %v", container, situation, step, err)
					}
					record = d.Write.After
				case step == RunContainer:
					container = TaskContainerActive
					runs++
				case step == DeleteContainer:
					container = TaskContainerNone
				}
			}
			switch {
			case container == TaskContainerActive:
				container = ends
			case container == TaskContainerNone && record.State == task.Pending:
				container, attempt = TaskContainerReserved, record.Attempt() // auctioned again
			}
		}
		want := map[TaskContainer]int{TaskContainerCompleted: 1, TaskContainerRetryable: 4}[ends]
		if runs != want || record.State != task.Completed {
			t.Errorf("%v: run %d times, want %d; then %v", ends, runs, want, record.State)
		}
	}
}

func taskDefinition() task.Definition {
	return task.Definition{RunInfo: executor.RunInfo{
		RootFS: "preloaded:test",
		Action: executor.Action{Run: &executor.RunAction{Path: "true", User: "vcap"}},
	}}
}
