package rep

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A stage is a rep between a BBS and an executor that do nothing but note what
// they were asked.
type stage struct {
	*Rep
	t   *testing.T
	bbs *fakeBBS
	exe *fakeExecutor
}

// A journal is what was asked, in order.
type journal struct {
	mu   sync.Mutex
	said []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.said = append(j.said, fmt.Sprintf(format, args...))
}

// take returns what was noted since it was last asked.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	said := j.said
	j.said = nil
	return said
}

func newStage(t *testing.T, change ...func(*Options)) *stage {
	t.Helper()
	j := &journal{}
	s := &stage{
		t: t, bbs: &fakeBBS{journal: j, fail: map[Step]error{}, shouldRun: true, deployment: deployment(1, "d1")},
		exe: &fakeExecutor{journal: j, containers: map[string]executor.Container{}, works: map[string]executor.Work{}},
	}
	s.bbs.deployment.Definitions["d1"] = lrp.Definition{RunInfo: runInfo}
	o := Options{CellID: alpha.CellID, BBS: s.bbs, Executor: s.exe, Concurrency: 1, StopPause: -1}
	for _, c := range change {
		c(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Rep = r
	return s
}

// must checks what was asked since the last call.
func (s *stage) must(want ...string) {
	s.t.Helper()
	if got := s.bbs.journal.take(); !slices.Equal(got, want) {
		s.t.Errorf("the rep asked for %q, want %q", got, want)
	}
}

type fakeExecutor struct {
	*journal
	containers map[string]executor.Container
	works      map[string]executor.Work
	refuse     error // of Initialize
	file       []byte
	fileErr    error
	news       []*fakeSubscription
}

func (e *fakeExecutor) Reserve(list ...executor.Reservation) (refusals []executor.Refusal) {
	for _, r := range list {
		c, err := executor.Reserve(r.GUID, r.Resources, r.Tags, start)
		if err != nil {
			refusals = append(refusals, executor.Refusal{GUID: r.GUID, Err: err})
			continue
		}
		e.containers[r.GUID] = c
	}
	return refusals
}

func (e *fakeExecutor) Initialize(guid string, w executor.Work) error {
	if e.refuse != nil {
		return e.refuse
	}
	c, err := e.containers[guid].Initialize(w.RunInfo, w.Tags, start)
	if err == nil {
		e.containers[guid], e.works[guid] = c, w
		e.note("%v", RunContainer)
	}
	return err
}

func (e *fakeExecutor) Stop(guid string) error {
	c, there := e.containers[guid]
	switch {
	case !there:
		return fmt.Errorf("no container %q", guid)
	case c.State == executor.Reserved:
		return &executor.TransitionError{GUID: guid, Transition: executor.Transition{From: c.State, To: executor.Completed}}
	}
	e.note("stop")
	return nil
}

func (e *fakeExecutor) Delete(guid string) { e.note("%v", DeleteContainer) }

func (e *fakeExecutor) Get(guid string) (executor.Container, bool) {
	c, there := e.containers[guid]
	return c, there
}

func (e *fakeExecutor) List() (list []executor.Container) {
	for _, guid := range slices.Sorted(maps.Keys(e.containers)) {
		list = append(list, e.containers[guid])
	}
	return list
}

func (e *fakeExecutor) Total() executor.Capacity     { return executor.Capacity{} }
func (e *fakeExecutor) Remaining() executor.Capacity { return executor.Capacity{} }

func (e *fakeExecutor) ReadFile(context.Context, string, string) ([]byte, error) {
	return e.file, e.fileErr
}

func (e *fakeExecutor) Subscribe() executor.Subscription {
	s := &fakeSubscription{}
	e.news = append(e.news, s)
	return s
}

type fakeSubscription struct {
	events []executor.Event
	err    error
}

func (s *fakeSubscription) Poll() (executor.Event, bool, error) {
	if len(s.events) == 0 {
		return executor.Event{}, false, s.err
	}
	e := s.events[0]
	s.events = s.events[1:]
	return e, true, nil
}

func (s *fakeSubscription) Next(ctx context.Context) (executor.Event, error) {
	<-ctx.Done()
	return executor.Event{}, ctx.Err()
}

func (s *fakeSubscription) Close() {}

// A fakeBBS has one slot and one task.
type fakeBBS struct {
	*journal
	slot       lrp.Slot
	deployment *lrp.Deployment
	task       *task.Task
	shouldRun  bool
	keep       bool
	fail       map[Step]error
	readErr    error // of Slot, Task and Deployments
	listErr    error // of ActualLRPs, after what it lists
	taskErr    error // of Tasks, after what it lists
	listed     int   // how many bytes the tasks have that Tasks has listed
	hidden     bool  // the lists are empty
	earlier    bool  // all definitions come, as from a BBS of 0.1
	filters    []storage.DeploymentFilter
	start      lrp.Start
	crash      lrp.Crash
	complete   task.Complete
	reject     task.Reject
}

var _ BBS = (*fakeBBS)(nil)

func (b *fakeBBS) ActualLRPs(_ context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return func(yield func(lrp.ActualLRP, error) bool) {
		for _, r := range b.slot.Records {
			if !b.hidden && f.Match(&r) && !yield(r, nil) {
				return
			}
		}
		if b.listErr != nil {
			yield(lrp.ActualLRP{}, b.listErr)
		}
	}
}

func (b *fakeBBS) Slot(context.Context, string, int) (lrp.Slot, error) { return b.slot, b.readErr }

func (b *fakeBBS) Deployments(_ context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	return func(yield func(*lrp.Deployment, error) bool) {
		b.filters = append(b.filters, f)
		d := b.deployment
		switch {
		case b.readErr != nil:
			yield(nil, b.readErr)
		case d == nil:
		case b.earlier:
			yield(d, nil)
		case f.WithoutDefinitions:
			yield(storage.WithoutDefinitions(d), nil)
		default:
			yield(storage.WithDefinitions(d, f.DefinitionIDs...), nil)
		}
	}
}

func (b *fakeBBS) Tasks(_ context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		if b.task != nil && !b.hidden && f.Match(b.task) {
			t := b.task
			if f.Bare {
				t = storage.BareTask(t)
			}
			data, _ := storage.Encode(t)
			if b.listed += len(data); !yield(t, nil) {
				return
			}
		}
		if b.taskErr != nil {
			yield(nil, b.taskErr)
		}
	}
}

func (b *fakeBBS) Task(_ context.Context, guid string) (*task.Task, error) {
	if b.task == nil && b.readErr == nil {
		return nil, &storage.NotFoundError{Key: storage.TaskKey(guid)}
	}
	return b.task, b.readErr
}

func (b *fakeBBS) called(_ context.Context, s Step) error {
	b.note("%v", s)
	return b.fail[s]
}

func (b *fakeBBS) ClaimLRP(ctx context.Context, _ string, _ int, _ lrp.Claim) error {
	return b.called(ctx, ClaimLRP)
}

func (b *fakeBBS) StartLRP(ctx context.Context, _ string, _ int, c lrp.Start) error {
	b.start = c
	return b.called(ctx, StartLRP)
}

func (b *fakeBBS) CrashLRP(ctx context.Context, _ string, _ int, c lrp.Crash) error {
	b.crash = c
	return b.called(ctx, CrashLRP)
}

func (b *fakeBBS) RemoveLRP(ctx context.Context, _ string, _ int, _ lrp.Remove) error {
	return b.called(ctx, RemoveLRP)
}

func (b *fakeBBS) EvacuateClaimedLRP(ctx context.Context, _ string, _ int, _ lrp.EvacuateClaimed) (bool, error) {
	return false, b.called(ctx, EvacuateClaimedLRP)
}

func (b *fakeBBS) EvacuateRunningLRP(ctx context.Context, _ string, _ int, _ lrp.EvacuateRunning) (bool, error) {
	return b.keep, b.called(ctx, EvacuateRunningLRP)
}

func (b *fakeBBS) EvacuateStoppedLRP(ctx context.Context, _ string, _ int, _ lrp.EvacuateStopped) (bool, error) {
	return false, b.called(ctx, EvacuateStoppedLRP)
}

func (b *fakeBBS) EvacuateCrashedLRP(ctx context.Context, _ string, _ int, _ lrp.EvacuateCrashed) (bool, error) {
	return false, b.called(ctx, EvacuateCrashedLRP)
}

func (b *fakeBBS) RemoveEvacuatingLRP(ctx context.Context, _ string, _ int, _ lrp.RemoveEvacuating) error {
	return b.called(ctx, RemoveEvacuatingLRP)
}

func (b *fakeBBS) StartTask(ctx context.Context, _ string, _ task.Start) (bool, error) {
	return b.shouldRun, b.called(ctx, StartTask)
}

func (b *fakeBBS) CompleteTask(ctx context.Context, _ string, c task.Complete) error {
	b.complete = c
	step := CompleteTask
	if c.FailureReason == task.ReasonContainerMissing || c.FailureReason == task.ReasonEvacuationTimedOut {
		step = FailTask
	}
	return b.called(ctx, step)
}

func (b *fakeBBS) RejectStartedTask(ctx context.Context, _ string, c task.Reject) error {
	b.reject = c
	return b.called(ctx, RejectTask)
}

// slotOf reaches a situation by commands.
func slotOf(t *testing.T, l LRPSituation) lrp.Slot {
	t.Helper()
	claim := func(me lrp.InstanceKey) lrp.Command { return call(ClaimLRP, me) }
	run := func(me lrp.InstanceKey) lrp.Command { return call(StartLRP, me) }
	how := map[LRPSituation][]lrp.Command{
		LRPUnclaimed:       {lrp.CreateMissing{}},
		LRPClaimedAlpha:    {lrp.CreateMissing{}, claim(alpha)},
		LRPClaimedOmega:    {lrp.CreateMissing{}, claim(omega)},
		LRPRunningAlpha:    {run(alpha)},
		LRPRunningOmega:    {run(omega)},
		LRPCrashed:         {run(omega), call(CrashLRP, omega)},
		LRPSuspectAlpha:    {run(alpha), lrp.MarkSuspect{CellID: alpha.CellID}},
		LRPEvacuatingAlpha: {run(alpha), call(EvacuateRunningLRP, alpha)},
	}
	s := lrp.Slot{ProcessGUID: "p"}
	for _, c := range how[l] {
		var err error
		if s, _, err = decide(s, deployment(1, "d1"), c, start, waits); err != nil {
			t.Fatal(err)
		}
	}
	if got := SituateLRP(s, alpha, "d1"); got != l {
		t.Fatalf("the commands for %v lead to %v", l, got)
	}
	return s
}

// taskOf reaches a situation by commands.
func taskOf(t *testing.T, situation TaskSituation) *task.Task {
	t.Helper()
	how := map[TaskSituation][]task.Command{}
	desire := task.Desire{GUID: "t", Domain: "domain", Definition: taskDefinition()}
	for i, me := range []lrp.InstanceKey{alpha, omega} {
		run := task.Start{CellID: me.CellID, InstanceGUID: me.InstanceGUID}
		end := task.Complete{CellID: me.CellID, InstanceGUID: me.InstanceGUID}
		how[TaskRunningAlpha+TaskSituation(i)] = []task.Command{run}
		how[TaskCompletedAlpha+TaskSituation(i)] = []task.Command{run, end}
		how[TaskResolvingAlpha+TaskSituation(i)] = []task.Command{run, end, task.Resolve{}}
	}
	if situation == TaskNone {
		return nil
	}
	var record *task.Task
	for _, c := range append([]task.Command{desire}, how[situation]...) {
		d, err := task.Step(record, c, start, task.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		record = d.Write.After
	}
	if got := SituateTask(record, alpha.CellID, alpha.InstanceGUID); got != situation {
		t.Fatalf("the commands for %v lead to %v", situation, got)
	}
	return record
}

var runInfo = executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "app"}}}

// containerOf makes a container of a state by transitions.
func containerOf(t *testing.T, item auction.Item, s executor.State, result executor.RunResult) executor.Container {
	t.Helper()
	r := NewReservation(alpha.InstanceGUID, &item)
	c, err := executor.Reserve(r.GUID, r.Resources, r.Tags, start)
	ok := func(next executor.Container, e error) {
		t.Helper()
		if c, err = next, e; err != nil {
			t.Fatal(err)
		}
	}
	ok(c, err)
	if result.Expired {
		c, _ = c.Expire(0, start.Add(executor.DefaultReservationExpiry))
		return c
	}
	if s > executor.Reserved {
		ok(c.Initialize(runInfo, nil, start))
	}
	if s > executor.Initializing && !result.Retryable {
		ok(c.Create(executor.Addresses{ExternalIP: "10.0.0.1", Ports: []executor.PortMapping{{ContainerPort: 8080, HostPort: 61001}}}, start))
	}
	if s == executor.Running {
		ok(c.Run(start))
	}
	if s == executor.Completed {
		ok(c.Complete(result, start))
	}
	return c
}

var lrpItem = auction.Item{Key: auction.Key{Kind: auction.LRP, GUID: "p", Domain: "domain", DefinitionID: "d1"}, RootFS: "preloaded:linux"}

func taskItem() auction.Item {
	return auction.Item{Key: auction.Key{Kind: auction.Task, GUID: "t", Domain: "domain"}, RootFS: "preloaded:linux", Attempt: task.Attempt{Epoch: start.UnixNano()}}
}

// lrpContainers are the containers of each situation.
func lrpContainers(t *testing.T) map[ContainerSituation][]executor.Container {
	of := func(s executor.State, r executor.RunResult) executor.Container { return containerOf(t, lrpItem, s, r) }
	return map[ContainerSituation][]executor.Container{
		NoContainer:       {{}},
		ContainerReserved: {of(executor.Reserved, executor.RunResult{})},
		ContainerStarting: {of(executor.Initializing, executor.RunResult{}), of(executor.Created, executor.RunResult{})},
		ContainerRunning:  {of(executor.Running, executor.RunResult{})},
		ContainerCrashed:  {of(executor.Completed, executor.Failed("exit 1")), of(executor.Completed, executor.Succeeded()), of(executor.Completed, executor.NeverBegan("no image"))},
		ContainerShutdown: {of(executor.Completed, executor.Stopped()), of(executor.Completed, executor.Expired())},
	}
}

func taskContainers(t *testing.T) map[TaskContainer][]executor.Container {
	of := func(s executor.State, r executor.RunResult) executor.Container {
		return containerOf(t, taskItem(), s, r)
	}
	return map[TaskContainer][]executor.Container{
		TaskContainerNone:      {{}},
		TaskContainerReserved:  {of(executor.Reserved, executor.RunResult{})},
		TaskContainerActive:    {of(executor.Initializing, executor.RunResult{}), of(executor.Created, executor.RunResult{}), of(executor.Running, executor.RunResult{})},
		TaskContainerRetryable: {of(executor.Completed, executor.NeverBegan("no image")), of(executor.Completed, executor.Expired())},
		TaskContainerCompleted: {of(executor.Completed, executor.Failed("exit 1")), of(executor.Completed, executor.Succeeded()), of(executor.Completed, executor.Stopped())},
	}
}

// A fakeAnnouncer fails as it is told.
type fakeAnnouncer struct {
	err         error
	ticks, left int
}

var errHeld = fmt.Errorf("the lease: %w", storage.ErrHeld)

func (a *fakeAnnouncer) Tick(context.Context) error  { a.ticks++; return a.err }
func (a *fakeAnnouncer) Leave(context.Context) error { a.left++; return nil }

// brokenDeployments fails to read deployments.
type brokenDeployments struct {
	*fakeBBS
	err error
}

func (b brokenDeployments) Deployments(context.Context, storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	return func(yield func(*lrp.Deployment, error) bool) { yield(nil, b.err) }
}

// A counter remembers the names of figures.
type counter struct {
	auction.NoMetrics
	names []string
}

func (c *counter) Count(name string, _ int64, _ ...auction.Label) { c.names = append(c.names, name) }

// stopsWhileClaiming does something in the middle of a claim.
type stopsWhileClaiming struct {
	*fakeBBS
	then func()
}

func (b *stopsWhileClaiming) ClaimLRP(ctx context.Context, guid string, index int, c lrp.Claim) error {
	defer b.then()
	return b.fakeBBS.ClaimLRP(ctx, guid, index, c)
}

// A fullExecutor has no room.
type fullExecutor struct{ *fakeExecutor }

func (fullExecutor) Reserve(list ...executor.Reservation) []executor.Refusal {
	return []executor.Refusal{{GUID: list[0].GUID, Err: &executor.CapacityError{GUID: list[0].GUID}}}
}

// A brokenExecutor refuses everything.
type brokenExecutor struct{ *fakeExecutor }

func (brokenExecutor) Reserve(list ...executor.Reservation) []executor.Refusal {
	return []executor.Refusal{{GUID: list[0].GUID, Err: storage.ErrHeld}}
}

// startsLate does something once a task has been started.
type startsLate struct {
	*fakeBBS
	then func()
}

func (b *startsLate) StartTask(ctx context.Context, guid string, c task.Start) (bool, error) {
	defer b.then()
	return b.fakeBBS.StartTask(ctx, guid, c)
}

// stopsWhileRunning does something just before a container is run.
type stopsWhileRunning struct {
	*fakeExecutor
	then func()
}

func (e *stopsWhileRunning) Initialize(guid string, w executor.Work) error {
	e.then()
	return e.fakeExecutor.Initialize(guid, w)
}

// replacedLate does something while the BBS decides on an evacuation.
type replacedLate struct {
	*fakeBBS
	then func()
}

func (b *replacedLate) EvacuateRunningLRP(ctx context.Context, guid string, index int, c lrp.EvacuateRunning) (bool, error) {
	defer b.then()
	return b.fakeBBS.EvacuateRunningLRP(ctx, guid, index, c)
}
