package rep

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A scene is one container and one record, and the row that is about them.
type scene struct {
	name      string
	container executor.Container // without a GUID: none
	slot      lrp.Slot
	task      *task.Task
	isTask    bool
	evacuates bool
	row       Row
}

// scenes are all pairs of all tables, each with every container that has the
// situation.
func scenes(t *testing.T) (list []scene) {
	t.Helper()
	for l := range LRPSituation(LRPSituations) {
		slot := slotOf(t, l)
		for c, containers := range lrpContainers(t) {
			for _, container := range containers {
				name := fmt.Sprintf("%v × %v, %v", c, l, container.RunResult)
				list = append(list, scene{name: name, container: container, slot: slot, row: DecideLRP(c, l)},
					scene{name: name + ", evacuating", container: container, slot: slot, evacuates: true, row: DecideEvacuation(c, l)})
			}
		}
	}
	for s := range TaskSituation(TaskSituations) {
		record := taskOf(t, s)
		for c, containers := range taskContainers(t) {
			for _, container := range containers {
				name := fmt.Sprintf("%v × %v, %v", c, s, container.RunResult)
				list = append(list, scene{name: name, container: container, task: record, isTask: true, row: DecideTask(c, s)},
					scene{name: name + ", evacuating", container: container, task: record, isTask: true, evacuates: true, row: DecideTask(c, s)})
			}
		}
	}
	return list
}

// play puts a scene on a stage.
func (s *stage) play(c scene) {
	s.bbs.slot, s.bbs.task = c.slot, c.task
	if c.container.GUID != "" {
		s.exe.containers[c.container.GUID] = c.container
	}
	if c.evacuates {
		s.Evacuate(s.t.Context())
	}
}

func names(steps []Step) (list []string) {
	for _, s := range steps {
		if s == DeleteContainerUnlessKept {
			s = DeleteContainer
		}
		list = append(list, s.String())
	}
	return list
}

// agree gives a record of a RUNNING container the container's addresses, as
// the table looks at situations only.
func (c *scene) agree() {
	for i := range c.slot.Records {
		r := &c.slot.Records[i]
		r.NetInfo, r.Routable = netInfo(c.container, lrp.PreferNone), c.container.Routable
	}
}

func TestEveryRowIsCarriedOutStepByStep(t *testing.T) {
	for _, c := range scenes(t) {
		t.Run(c.name, func(t *testing.T) {
			c.agree()
			s := newStage(t)
			s.play(c)
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.must(names(c.row.Steps)...)
		})
	}
}

func TestAnEventLeadsToWhatASyncDoes(t *testing.T) {
	for _, c := range scenes(t) {
		if c.container.GUID == "" {
			continue // there are no events about what is not there
		}
		t.Run(c.name, func(t *testing.T) {
			c.agree()
			s := newStage(t)
			s.play(c)
			s.bbs.hidden = true // no list helps
			s.exe.news[0].events = []executor.Event{{Container: c.container}}
			s.hear()
			if err := s.settleAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.must(names(c.row.Steps)...)
		})
	}
}

func TestARowStopsAtTheFirstStepThatFails(t *testing.T) {
	lost := errors.New("no answer")
	for _, c := range scenes(t) {
		for i, step := range c.row.Steps {
			if !step.CallsBBS() {
				continue
			}
			t.Run(fmt.Sprintf("%s: %v", c.name, step), func(t *testing.T) {
				s := newStage(t)
				s.play(c)
				s.bbs.fail[step] = lost
				if err := s.Sync(t.Context()); !errors.Is(err, lost) {
					t.Errorf("the error is %v", err)
				}
				s.must(names(c.row.Steps[:i+1])...)
			})
		}
	}
}

func TestARefusalDeletesTheContainerWhereTheTableSaysSo(t *testing.T) {
	for _, c := range scenes(t) {
		for i, step := range c.row.Steps {
			if !step.CallsBBS() {
				continue
			}
			t.Run(fmt.Sprintf("%s: %v", c.name, step), func(t *testing.T) {
				s := newStage(t)
				s.play(c)
				s.bbs.fail[step] = fmt.Errorf("on the wire: %w", &lrp.TransitionError{Err: lrp.ErrCannotBeStarted})
				if c.isTask {
					s.bbs.fail[step] = &task.TransitionError{Err: task.ErrRunningElsewhere}
				}
				if err := s.Sync(t.Context()); err != nil {
					t.Errorf("the refusal is an error: %v", err)
				}
				want := names(c.row.Steps[:i+1])
				if step.DeleteWhenRefused() && c.container.GUID != "" {
					want = append(want, DeleteContainer.String())
				}
				s.must(want...)
			})
		}
	}
}

func TestNothingIsDoneWhenTheRecordCannotBeRead(t *testing.T) {
	for _, c := range scenes(t) {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.play(c)
			s.bbs.readErr = errors.New("no answer")
			err := s.Sync(t.Context())
			if len(c.row.Steps) > 0 && !errors.Is(err, s.bbs.readErr) {
				t.Errorf("the error is %v", err)
			}
			s.must()
		})
	}
}

func TestAListThatFailedProvesNothing(t *testing.T) {
	for _, c := range scenes(t) {
		t.Run(c.name, func(t *testing.T) {
			c.agree()
			s := newStage(t)
			s.play(c)
			s.bbs.hidden = true // as if nothing were recorded
			s.bbs.listErr, s.bbs.taskErr = errors.New("no LRPs"), errors.New("no tasks")
			if err := s.Sync(t.Context()); !errors.Is(err, s.bbs.listErr) || !errors.Is(err, s.bbs.taskErr) {
				t.Errorf("the error is %v", err)
			}
			s.must()
		})
	}
}

func TestOneListIsOfUseWithoutTheOther(t *testing.T) {
	s := newStage(t)
	s.bbs.slot, s.bbs.task = slotOf(t, LRPRunningAlpha), taskOf(t, TaskRunningAlpha)
	s.bbs.task.InstanceGUID = "i3"
	s.bbs.taskErr, s.bbs.hidden = errors.New("no tasks"), false
	if err := s.Sync(t.Context()); !errors.Is(err, s.bbs.taskErr) {
		t.Errorf("the error is %v", err)
	}
	// What was listed before the error is true: neither has a container.
	s.must(RemoveLRP.String(), FailTask.String())
}

func TestRecordsAreReadAgainBeforeAnythingIsDone(t *testing.T) {
	s := newStage(t)
	s.play(scene{container: containerOf(t, lrpItem, executor.Running, executor.RunResult{}), slot: slotOf(t, LRPRunningAlpha)})
	s.bbs.hidden = true // the list is stale, and seems to say that another instance or none is recorded
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must(StartLRP.String()) // only as it tells the addresses, which the record does not have
	s.bbs.slot.Records[0].NetInfo, s.bbs.slot.Records[0].Routable = netInfo(s.exe.List()[0], lrp.PreferNone), true
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must()
}

func TestARunningRecordFollowsItsContainersReadiness(t *testing.T) {
	s := newStage(t, func(o *Options) { o.Zone = "z1" })
	c := containerOf(t, lrpItem, executor.Running, executor.RunResult{})
	s.play(scene{container: c, slot: slotOf(t, LRPRunningAlpha)})
	r := &s.bbs.slot.Records[0]
	r.NetInfo, r.Routable, r.Zone = netInfo(c, lrp.PreferNone), true, "z1"
	for _, change := range []func(){
		func() { r.Routable = false }, func() { r.Zone = "z2" }, func() { r.Address = "10.0.0.9" },
		func() { r.Ports = nil }, func() { r.InstanceAddress = "10.1.1.1" },
	} {
		before := *r
		change()
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.must(StartLRP.String())
		if s.bbs.start.Unready || s.bbs.start.Zone != "z1" || s.bbs.start.NetInfo.Address != "10.0.0.1" || len(s.bbs.start.NetInfo.Ports) != 1 {
			t.Errorf("the rep told %+v", s.bbs.start)
		}
		*r = before
	}
	s.exe.containers[c.GUID], _ = c.SetRoutable(false)
	if err := s.Sync(t.Context()); err != nil || !s.bbs.start.Unready {
		t.Errorf("an unready instance was told as %+v, %v", s.bbs.start, err)
	}
}

func TestACellReportsThePreferredAddressOfItsInstances(t *testing.T) {
	for _, test := range []struct {
		preferred lrp.PreferredAddress
		own       string
		want      lrp.PreferredAddress
	}{
		{lrp.PreferNone, "10.1.1.1", lrp.PreferNone},
		{lrp.PreferHost, "10.1.1.1", lrp.PreferHost},
		{lrp.PreferInstance, "10.1.1.1", lrp.PreferInstance},
		{lrp.PreferInstance, "", lrp.PreferHost},
	} {
		s := newStage(t, func(o *Options) { o.PreferredAddress = test.preferred })
		c := containerOf(t, lrpItem, executor.Running, executor.RunResult{})
		c.InternalIP = test.own
		s.play(scene{container: c, slot: slotOf(t, LRPRunningAlpha)})
		r := &s.bbs.slot.Records[0]
		r.NetInfo, r.Routable = netInfo(c, test.want), true
		r.PreferredAddress = (test.want + 1) % 3 // as before the operator changed it
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.must(StartLRP.String())
		if got := s.bbs.start.NetInfo.PreferredAddress; got != test.want {
			t.Errorf("%v with the address %q: the cell reports %v, want %v", test.preferred, test.own, got, test.want)
		}
	}
}

func TestWhatCannotRunIsGivenBack(t *testing.T) {
	refused := &executor.ValidationError{}
	for _, c := range []struct {
		name string
		set  func(*stage)
		want []string
	}{
		{"the executor refuses an instance", func(s *stage) { s.exe.refuse = refused; s.bbs.slot = slotOf(s.t, LRPUnclaimed) },
			names([]Step{ClaimLRP, RemoveLRP, DeleteContainer})},
		{"the deployment is gone", func(s *stage) { s.bbs.deployment = nil; s.bbs.slot = slotOf(s.t, LRPUnclaimed) },
			names([]Step{ClaimLRP, RemoveLRP, DeleteContainer})},
		{"the definition is gone", func(s *stage) { delete(s.bbs.deployment.Definitions, "d1"); s.bbs.slot = slotOf(s.t, LRPUnclaimed) },
			names([]Step{ClaimLRP, RemoveLRP, DeleteContainer})},
		{"it cannot be given back either", func(s *stage) {
			s.exe.refuse, s.bbs.fail[RemoveLRP] = refused, errors.New("no answer")
			s.bbs.slot = slotOf(s.t, LRPUnclaimed)
		}, names([]Step{ClaimLRP, RemoveLRP})},
		{"the executor refuses a task", func(s *stage) { s.exe.refuse = refused; s.bbs.task = taskOf(s.t, TaskPending) },
			names([]Step{StartTask, CompleteTask, DeleteContainer})}, // it completes as failed
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			item := lrpItem
			if c.set(s); s.bbs.task != nil {
				item = taskItem()
			}
			container := containerOf(t, item, executor.Reserved, executor.RunResult{})
			s.exe.containers[container.GUID] = container
			_ = s.Sync(t.Context())
			s.must(c.want...)
			if s.bbs.task != nil && s.exe.refuse != nil && (!s.bbs.complete.Failed || !strings.Contains(s.bbs.complete.FailureReason, "failed to run the container")) {
				t.Errorf("the task ended with %+v", s.bbs.complete)
			}
		})
	}
}

func TestAReservationThatExpiresWhileItsTaskIsStartedIsTriedElsewhere(t *testing.T) {
	s := newStage(t)
	s.play(scene{container: containerOf(t, taskItem(), executor.Reserved, executor.RunResult{}), task: taskOf(t, TaskPending)})
	s.exe.refuse = &executor.TransitionError{}
	s.o.BBS = &startsLate{s.bbs, func() {
		s.bbs.task = taskOf(t, TaskRunningAlpha)
		s.exe.containers[alpha.InstanceGUID] = containerOf(t, taskItem(), executor.Completed, executor.Expired())
	}}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must(StartTask.String(), RejectTask.String(), DeleteContainer.String())
}

func TestADeploymentThatCannotBeReadLeavesTheReservationForTheNextSync(t *testing.T) {
	s := newStage(t)
	s.play(scene{container: containerOf(t, lrpItem, executor.Reserved, executor.RunResult{}), slot: slotOf(t, LRPClaimedAlpha)})
	broken := errors.New("no answer")
	s.o.BBS = brokenDeployments{s.bbs, broken}
	if err := s.Sync(t.Context()); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	s.must()
}

// A deployment may have tens of MiB of definitions, and hundreds of its containers
// may start.
func TestAContainerStartsWithTheOnlyDefinitionThatWasReadForIt(t *testing.T) {
	for name, earlier := range map[string]bool{"the BBS sends one": false, "all come from a BBS of 0.1": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.bbs.earlier = earlier
			other := runInfo
			other.LogGUID = "of the other definition"
			s.bbs.deployment.Definitions["d2"] = lrp.Definition{RunInfo: other}
			s.bbs.deployment.ActiveDefinitionID = "d2"
			s.play(scene{container: containerOf(t, lrpItem, executor.Reserved, executor.RunResult{}), slot: slotOf(t, LRPClaimedAlpha)})
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.must(RunContainer.String())
			if got := s.exe.containers[alpha.InstanceGUID].RunInfo.LogGUID; got != runInfo.LogGUID {
				t.Errorf("it runs what is %q", got)
			}
			want := []storage.DeploymentFilter{{ProcessGUIDs: []string{lrpItem.GUID}, DefinitionIDs: []string{"d1"}}}
			if !reflect.DeepEqual(s.bbs.filters, want) {
				t.Errorf("it asked for %+v, want %+v", s.bbs.filters, want)
			}
		})
	}
}

// Hundreds of containers may wait to be made, each with a MiB of files.
func TestLargeFilesAreReadWhenTheContainerIsMade(t *testing.T) {
	large := []executor.File{{Path: "/conf/a", Content: strings.Repeat("a", mostFiles)}}
	for name, play := range map[string]func(*stage) string{
		"an instance": func(s *stage) string {
			d := s.bbs.deployment.Definitions["d1"]
			d.VolumeMountedFiles = large
			s.bbs.deployment.Definitions["d1"] = d
			s.play(scene{container: containerOf(s.t, lrpItem, executor.Reserved, executor.RunResult{}), slot: slotOf(s.t, LRPClaimedAlpha)})
			return alpha.InstanceGUID
		},
		"a task": func(s *stage) string {
			record := *taskOf(s.t, TaskRunningAlpha)
			record.VolumeMountedFiles = large
			s.play(scene{container: containerOf(s.t, taskItem(), executor.Reserved, executor.RunResult{}), task: &record})
			s.setNote(alpha.InstanceGUID, func(n *note) { n.asked = true })
			return alpha.InstanceGUID
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, func(o *Options) { o.RetryInterval = time.Millisecond })
			guid := play(s)
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			w := s.exe.works[guid]
			if w.VolumeMountedFiles != nil || w.Files == nil {
				t.Fatalf("the executor gets %d files at once", len(w.VolumeMountedFiles))
			}
			if files, err := w.Files(t.Context()); err != nil || !slices.Equal(files, large) {
				t.Errorf("later it gets %d files, %v", len(files), err)
			}
			away := errors.New("the BBS is away")
			s.bbs.readErr = away
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := w.Files(ctx); !errors.Is(err, away) {
				t.Errorf("while the BBS is away: %v", err)
			}
			s.bbs.readErr, s.bbs.deployment, s.bbs.task = nil, nil, nil
			if _, err := w.Files(t.Context()); err == nil || !strings.Contains(err.Error(), "gone") {
				t.Errorf("without a record: %v", err)
			}
		})
	}
}

// Whichever way the answer to StartTask gets lost, the reservation is used at the
// next look: the record tells what the answer would have.
func TestALostAnswerToStartTaskCostsOneLook(t *testing.T) {
	lost := errors.New("the answer is lost")
	for _, c := range []struct {
		name string
		// first is what becomes of the call, and record of the task by then.
		first     error
		record    TaskSituation
		shouldRun bool // the answer to a second call
		want      []Step
	}{
		{"it was carried out", lost, TaskRunningAlpha, true, []Step{RunContainer}},
		{"it was carried out, and a second call would be told no", lost, TaskRunningAlpha, false, []Step{RunContainer}},
		{"it was not carried out", lost, TaskPending, true, []Step{StartTask, RunContainer}},
		{"it is carried out before the second", lost, TaskPending, false, []Step{StartTask, RunContainer}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.play(scene{container: containerOf(t, taskItem(), executor.Reserved, executor.RunResult{}), task: taskOf(t, TaskPending)})
			s.bbs.fail[StartTask] = c.first
			if err := s.Sync(t.Context()); !errors.Is(err, lost) {
				t.Errorf("the error is %v", err)
			}
			s.must(StartTask.String())
			s.bbs.task, s.bbs.shouldRun = taskOf(t, c.record), c.shouldRun
			delete(s.bbs.fail, StartTask)
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.must(names(c.want)...)
			s.bbs.task = taskOf(t, TaskRunningAlpha)
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.must() // the container is being made
		})
	}
}

// A standby that knows the task but not the call answers a repetition with no.
func TestATaskRunsThoughARepeatedStartIsToldNo(t *testing.T) {
	s := newStage(t)
	s.play(scene{container: containerOf(t, taskItem(), executor.Reserved, executor.RunResult{}), task: taskOf(t, TaskPending)})
	s.bbs.shouldRun = false
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must(StartTask.String(), RunContainer.String())
}

func TestATaskThatOnlyTheBBSCallsStartedIsNotRun(t *testing.T) {
	s := newStage(t)
	s.play(scene{container: containerOf(t, taskItem(), executor.Reserved, executor.RunResult{}), task: taskOf(t, TaskRunningAlpha)})
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must() // this rep has not asked: its reservation expires, and the task is rejected
}

// fullBBS is a RemoteBBS for a BBS of 0.1, which knows no bare tasks.
type fullBBS struct{ *fakeBBS }

func (b fullBBS) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	f.Bare = false
	return b.fakeBBS.Tasks(ctx, f)
}

func TestASyncListsTasksWithoutTheirDefinitions(t *testing.T) {
	const size = 1 << 20
	for name, test := range map[string]struct {
		bbs     func(*Options)
		atLeast int
		atMost  int
	}{
		"a BBS of this release":     {func(*Options) {}, 1, 1024},
		"a BBS that sends them all": {func(o *Options) { o.BBS = fullBBS{o.BBS.(*fakeBBS)} }, size, 2 * size},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, test.bbs)
			running := *taskOf(t, TaskRunningAlpha)
			running.VolumeMountedFiles = []executor.File{{Path: "f", Content: strings.Repeat("x", size)}}
			s.play(scene{task: &running})
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.bbs.listed < test.atLeast || s.bbs.listed > test.atMost {
				t.Errorf("the tasks that it lists have %d bytes, want %d to %d", s.bbs.listed, test.atLeast, test.atMost)
			}
			s.must(FailTask.String())
		})
	}
}

func TestATasksEndIsToldWithItsResult(t *testing.T) {
	withFile := containerOf(t, taskItem(), executor.Reserved, executor.RunResult{})
	withFile, err := withFile.Initialize(runInfo, map[string]string{executor.TagResultFile: "/result"}, start)
	if err != nil {
		t.Fatal(err)
	}
	withFile, _ = withFile.Create(executor.Addresses{}, start)
	for _, c := range []struct {
		name    string
		result  executor.RunResult
		file    string
		fileErr error
		want    task.Complete
	}{
		{"it succeeded", executor.Succeeded(), "42", nil, task.Complete{Result: "42"}},
		{"it failed", executor.Failed("exit 1"), "42", nil, task.Complete{Failed: true, FailureReason: "exit 1"}},
		{"it was stopped", executor.Stopped(), "42", nil, task.Complete{Failed: true, FailureReason: "the container was stopped"}},
		{"there is no file", executor.Succeeded(), "", executor.ErrNoFile, task.Complete{Failed: true, FailureReason: "failed to fetch the result: no such file"}},
		{"the file is too long", executor.Succeeded(), strings.Repeat("x", task.MaxResultBytes+1), nil,
			task.Complete{Failed: true, FailureReason: "failed to fetch the result: it has 51201 bytes and may have 51200"}},
		{"the file is not text", executor.Succeeded(), "\xff", nil, task.Complete{Failed: true, FailureReason: "failed to fetch the result: it is not text in UTF-8"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			container, err := withFile.Complete(c.result, start)
			if err != nil {
				t.Fatal(err)
			}
			s.play(scene{container: container, task: taskOf(t, TaskRunningAlpha)})
			s.exe.file, s.exe.fileErr = []byte(c.file), c.fileErr
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.want.CellID, c.want.InstanceGUID, c.want.Attempt = alpha.CellID, alpha.InstanceGUID, taskItem().Attempt
			if s.bbs.complete != c.want {
				t.Errorf("the BBS was told %+v, want %+v", s.bbs.complete, c.want)
			}
		})
	}
}

func TestACrashIsToldWithItsReason(t *testing.T) {
	for _, c := range []struct {
		result executor.RunResult
		want   string
	}{{executor.Failed("exit 1"), "exit 1"}, {executor.Succeeded(), "ended without being told to"}} {
		s := newStage(t)
		s.play(scene{container: containerOf(t, lrpItem, executor.Completed, c.result), slot: slotOf(t, LRPRunningAlpha)})
		if err := s.Sync(t.Context()); err != nil || s.bbs.crash.Reason != c.want || s.bbs.crash.Instance != alpha {
			t.Errorf("the BBS was told %+v, %v", s.bbs.crash, err)
		}
	}
}

func TestAContainerOnItsWayOutIsLeftAlone(t *testing.T) {
	s := newStage(t)
	running := containerOf(t, lrpItem, executor.Running, executor.RunResult{})
	s.play(scene{container: running, slot: slotOf(t, LRPRunningOmega)})
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must(DeleteContainer.String())
	// The other instance crashes while this one has its grace period: that
	// must not bring it back.
	s.bbs.slot = slotOf(t, LRPCrashed)
	for _, c := range []executor.Container{running, containerOf(t, lrpItem, executor.Completed, executor.Stopped())} {
		s.exe.containers[c.GUID] = c
		s.exe.news[0].events = []executor.Event{{Container: c}}
		s.Tick(t.Context())
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.must()
	}
	delete(s.exe.containers, running.GUID)
	if err := s.Sync(t.Context()); err != nil || len(s.notes) != 0 {
		t.Errorf("%d notes are left, %v", len(s.notes), err)
	}
}

func TestContainersOfOthersAreLeftAlone(t *testing.T) {
	for name, tags := range map[string]map[string]string{
		"no tags":                  nil,
		"a lifecycle of their own": {executor.TagLifecycle: "backup"},
		"an instance of nothing":   {executor.TagLifecycle: executor.LifecycleLRP},
		"a task of nothing":        {executor.TagLifecycle: executor.LifecycleTask},
		"an index that is none":    {executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "p", executor.TagProcessIndex: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.exe.Reserve(executor.Reservation{GUID: "other", Tags: tags})
			s.exe.news[0].events = []executor.Event{{Container: s.exe.containers["other"]}}
			s.Tick(t.Context())
			s.must()
			state, _ := s.State(t.Context())
			if len(state.LRPs)+len(state.Tasks)+state.StartingContainers != 0 {
				t.Errorf("the cell says it has %+v", state)
			}
		})
	}
}

func TestAnUnpresentCellDoesNotAnswerForRecordsWithoutContainer(t *testing.T) {
	announcer := &fakeAnnouncer{err: errors.New("not reached")}
	s := newStage(t, func(o *Options) { o.Announcer = announcer })
	s.bbs.slot = slotOf(t, LRPRunningAlpha)
	now := start
	s.o.Now = func() time.Time { return now }
	tick := func() { now = now.Add(time.Minute); s.Tick(t.Context()) }
	tick()
	s.must() // perhaps another run of the cell has the container
	announcer.err = nil
	tick()
	s.must(RemoveLRP.String())
	announcer.err = errHeld
	tick()
	s.must()
	announcer.err = errors.New("not reached") // says nothing about who is present
	tick()
	s.must()
}

func TestACellThatWasLongNotHeardOfDoesNotAnswerForRecordsWithoutContainer(t *testing.T) {
	announcer := &fakeAnnouncer{}
	now := start
	s := newStage(t, func(o *Options) { o.Announcer, o.Now = announcer, func() time.Time { return now } })
	s.Tick(t.Context())
	s.bbs.slot = slotOf(t, LRPRunningAlpha)
	announcer.err = errors.New("not reached")
	sync := func(d time.Duration) {
		now = now.Add(d)
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sync(2 * DefaultAnnounceInterval)
	s.must(RemoveLRP.String())
	sync(DefaultAnnounceInterval) // another run of the cell may be present by now
	s.must()
	announcer.err = nil
	s.Tick(t.Context())
	s.must(RemoveLRP.String())
}

func TestACellThatHasLostItsPresenceLeavesWhatWaits(t *testing.T) {
	announcer := &fakeAnnouncer{}
	now := start
	s := newStage(t, func(o *Options) { o.Announcer, o.Now = announcer, func() time.Time { return now } })
	s.Tick(t.Context())
	s.bbs.slot = slotOf(t, LRPRunningAlpha)
	if _, err := s.survey(t.Context()); err != nil {
		t.Fatal(err)
	}
	announcer.err, now = errHeld, now.Add(DefaultAnnounceInterval)
	s.Tick(t.Context())
	s.must()
}

func TestNewsThatWereMissedAreFoundBySync(t *testing.T) {
	s := newStage(t)
	s.Tick(t.Context())
	c := containerOf(t, lrpItem, executor.Completed, executor.Failed("exit 1"))
	s.play(scene{container: c, slot: slotOf(t, LRPRunningAlpha)})
	s.exe.news[0].err = executor.ErrBehind
	s.Tick(t.Context())
	s.must(CrashLRP.String(), DeleteContainer.String())
	if len(s.exe.news) != 2 {
		t.Errorf("there were %d subscriptions", len(s.exe.news))
	}
}

func TestTheInconceivableIsCounted(t *testing.T) {
	figures := &counter{}
	s := newStage(t, func(o *Options) { o.Metrics = figures })
	s.play(scene{container: containerOf(t, lrpItem, executor.Created, executor.RunResult{}), slot: slotOf(t, LRPRunningAlpha)})
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.must(ClaimLRP.String())
	if !slices.Contains(figures.names, "rep_inconceivable_total") {
		t.Errorf("counted was %q", figures.names)
	}
}
