package memcell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A Cell is a [rep.API], a [rep.Cordoner] and an [auction.InventoryClient]. Its
// other methods play the part of the world: they let time pass and containers
// fail.
//
// Presence, BBS and Now are required; zero values of the others mean the
// defaults. Methods may be called at the same time; fields change only while
// none runs.
type Cell struct {
	// Presence is what the cell says of itself when it announces itself. Its
	// Capacity is the room for containers.
	Presence bbs.CellPresence
	// BBS takes the cell's reports. A *bbs.BBS is one.
	BBS rep.BBS
	// Now is the clock.
	Now func() time.Time
	// NewGUID makes the guid of a container (default: the cell's id and a number). A
	// Cell that follows another of the same id needs one, so that no guid and no
	// request id comes twice.
	NewGUID func() string
	// StartsIn is how long an instance takes until it is healthy, TaskTakes how
	// long a task runs (default: both are done in the Step that begins them).
	StartsIn, TaskTakes time.Duration
	// ReservationExpiry is how long a reservation waits for its work to begin
	// (default [executor.DefaultReservationExpiry]).
	ReservationExpiry time.Duration
	// Silent makes the cell delete a container that ends without reporting it,
	// as if the report were lost.
	Silent bool

	mu         sync.Mutex
	containers map[string]*container // by guid
	held       map[job]*container    // the newest for each job
	dirty      map[string]bool
	begun      map[string]int // by guid of the container
	tasks      map[string]int // how often the work of a task has begun
	next       int
	calls      int
	caller     string    // begins the request ids of its calls
	evacuating time.Time // since when; zero if it does not evacuate
	cordoned   bool
}

var (
	_ rep.API                 = (*Cell)(nil)
	_ auction.InventoryClient = (*Cell)(nil)
	_ rep.Cordoner            = (*Cell)(nil)
)

// A container is an [executor.Container] with what the model needs to know besides.
type container struct {
	executor.Container
	job
	number int // counts the cell's containers
	// asked says that the BBS was asked to start the task; the answer may be lost.
	asked bool
	// ready is when a reservation expires, an instance becomes healthy or a
	// task ends.
	ready time.Time
}

// A job is what a container is for: lrp is set for an instance, task and attempt
// for a task.
type job struct {
	lrp     lrp.Key
	task    string
	attempt task.Attempt
}

func jobOf(item *auction.Item) job {
	if item.Kind == auction.Task {
		return job{task: item.GUID, attempt: item.Attempt}
	}
	return job{lrp: item.Key.LRP()}
}

// State implements [auction.CellClient].
func (c *Cell) State(context.Context) (auction.CellState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := auction.CellState{
		ID: c.Presence.CellID, Zone: c.Presence.Zone, Total: c.Presence.Capacity, Remaining: c.remaining(),
		RootFSProviders: c.Presence.RootFSProviders, PlacementTags: c.Presence.PlacementTags,
		OptionalPlacementTags: c.Presence.OptionalPlacementTags, Evacuating: c.evacuates(), Cordoned: c.cordoned,
	}
	for _, k := range c.list() {
		if k.task != "" {
			s.Tasks = append(s.Tasks, k.task)
		} else {
			s.LRPs = append(s.LRPs, k.lrp)
		}
		if k.State < executor.Running {
			s.StartingContainers++
		}
	}
	return s, nil
}

func (c *Cell) remaining() auction.Capacity {
	left := c.Presence.Capacity
	for _, k := range c.containers {
		left = left.Minus(share(k.Resources))
	}
	return left
}

// share is what a container takes of the cell.
func share(r executor.Resources) auction.Capacity {
	return auction.Capacity{MemoryMB: r.MemoryMB, DiskMB: r.DiskMB, Containers: 1, Extra: r.Extra}
}

// list is the containers in the order in which they came.
func (c *Cell) list() []*container {
	return slices.SortedFunc(maps.Values(c.containers), func(a, b *container) int { return cmp.Compare(a.number, b.number) })
}

// evacuates reports whether the cell evacuates. It is called with the lock.
func (c *Cell) evacuates() bool { return !c.evacuating.IsZero() }

// Perform implements [auction.CellClient]. It makes a reservation for each item
// that there is room for; work that is on the cell already is not taken twice.
func (c *Cell) Perform(_ context.Context, w auction.Work) (out []auction.Rejection, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.remaining()
	for i := range w.Items {
		item := &w.Items[i]
		j := jobOf(item)
		need := share(item.Resources)
		reason := ""
		switch lacks := left.Lacks(need); {
		case w.CellID != c.Presence.CellID:
			reason = fmt.Sprintf("this is cell %q, and the work is for cell %q", c.Presence.CellID, w.CellID)
		case c.evacuates():
			reason = string(auction.Evacuating)
		case c.cordoned:
			reason = string(auction.Cordoned)
		case c.held[j] != nil && c.held[j].State != executor.Completed:
			c.touch(c.held[j])
			continue
		case !lacks.IsZero():
			reason = (&executor.CapacityError{GUID: item.GUID, Lacks: lacks}).Error()
		}
		if reason != "" {
			out = append(out, auction.Rejection{Key: item.Key, Reason: reason})
			continue
		}
		left = left.Minus(need)
		k := c.reserve(item)
		if c.containers == nil {
			c.containers, c.held = map[string]*container{}, map[job]*container{}
		}
		c.containers[k.GUID], c.held[j] = k, k
		c.touch(k)
	}
	return out, nil
}

// reserve makes the container for an item.
func (c *Cell) reserve(item *auction.Item) *container {
	c.next++
	guid := ""
	if c.NewGUID != nil {
		guid = c.NewGUID()
	} else {
		guid = fmt.Sprintf("%s-%d", c.Presence.CellID, c.next)
	}
	now := c.Now()
	r := rep.NewReservation(guid, item)
	return &container{
		Container: executor.Container{GUID: r.GUID, Tags: r.Tags, Resources: r.Resources, State: executor.Reserved, AllocatedAt: now, Since: now},
		job:       jobOf(item), number: c.next, ready: now.Add(cmp.Or(c.ReservationExpiry, executor.DefaultReservationExpiry)),
	}
}

// touch has a container looked at in the next Step.
func (c *Cell) touch(k *container) {
	if c.dirty == nil {
		c.dirty = map[string]bool{}
	}
	c.dirty[k.GUID] = true
}

// StopLRP implements [auction.CellClient].
func (c *Cell) StopLRP(_ context.Context, key lrp.Key, instance lrp.InstanceKey) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.containers[instance.InstanceGUID]
	if k != nil && k.task == "" && instance.CellID == c.Presence.CellID && k.lrp.ProcessGUID == key.ProcessGUID && k.lrp.Index == key.Index {
		c.end(k, executor.Stopped())
	}
	return nil
}

// CancelTask implements [auction.CellClient].
func (c *Cell) CancelTask(_ context.Context, taskGUID, instanceGUID string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.containers[instanceGUID]; k != nil && k.task == taskGUID {
		c.drop(k)
	}
	return nil
}

// Inventory implements [auction.InventoryClient].
func (c *Cell) Inventory(context.Context) (auction.Inventory, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := auction.Inventory{CellID: c.Presence.CellID, Containers: slices.AppendSeq([]string{}, maps.Keys(c.containers))}
	slices.Sort(i.Containers)
	return i, nil
}

// Evacuate implements [rep.API]. The next Poll hands over what the cell has.
func (c *Cell) Evacuate(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.evacuates() {
		c.evacuating = c.Now()
	}
	return nil
}

// Evacuation implements [rep.API]. The evacuation has no deadline, and the cell
// does not say what it waits for.
func (c *Cell) Evacuation(context.Context) (rep.EvacuationStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.containers)
	return rep.EvacuationStatus{Evacuating: c.evacuates(), BeganAt: c.evacuating, Containers: n, Done: c.evacuates() && n == 0}, nil
}

// CancelEvacuation implements [rep.Cordoner]. It never comes too late: an empty
// cell takes work again.
func (c *Cell) CancelEvacuation(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evacuating = time.Time{}
	return nil
}

// Cordon implements [rep.Cordoner].
func (c *Cell) Cordon(_ context.Context, cordoned bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cordoned = cordoned
	return nil
}

// Containers implements [rep.API].
func (c *Cell) Containers(context.Context) ([]executor.Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, guids := make([]executor.Container, 0, len(c.containers)), make([]string, 0, len(c.containers))
	for guid := range c.containers {
		guids = append(guids, guid)
	}
	slices.Sort(guids)
	for _, guid := range guids {
		list = append(list, c.containers[guid].Container)
	}
	return list, nil
}

// Logs implements [rep.API]: the containers write nothing.
func (c *Cell) Logs(_ context.Context, r rep.LogRequest) iter.Seq2[rep.LogChunk, error] {
	return func(yield func(rep.LogChunk, error) bool) {
		yield(rep.LogChunk{}, fmt.Errorf("container %s of a model cell writes no logs: %w", r.ContainerGUID, storage.ErrNotFound))
	}
}

// Crash makes the RUNNING instance at an index fail. It reports whether the cell
// has one.
func (c *Cell) Crash(processGUID string, index int, reason string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.list() {
		if k.lrp.ProcessGUID == processGUID && k.lrp.Index == index && k.State == executor.Running {
			return c.end(k, executor.Failed(reason))
		}
	}
	return false
}

// End ends a container with a result; the next Step reports it. It reports
// whether the cell has such a container that had not ended.
func (c *Cell) End(instanceGUID string, r executor.RunResult) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.containers[instanceGUID]
	return k != nil && c.end(k, r)
}

func (c *Cell) end(k *container, r executor.RunResult) bool {
	if k.State == executor.Completed {
		return false
	}
	c.enter(k, executor.Completed)
	k.RunResult = r
	c.touch(k)
	return true
}

// enter brings a container to a state.
func (c *Cell) enter(k *container, s executor.State) { k.State, k.Since = s, c.Now() }

// Begun is how often the work of a container has begun, also of one that is gone.
func (c *Cell) Begun(instanceGUID string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun[instanceGUID]
}

// TaskBegun is how often the work of a task has begun here, in all its attempts.
func (c *Cell) TaskBegun(taskGUID string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tasks[taskGUID]
}

// Lose forgets all containers, as a cell does that was switched off.
func (c *Cell) Lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.containers, c.held, c.dirty = nil, nil, nil
}

// Step settles the containers that have changed or whose time has come.
func (c *Cell) Step(ctx context.Context) {
	for _, k := range c.due() {
		c.settle(ctx, k)
	}
}

// due is the containers that have changed, or do now.
func (c *Cell) due() []*container {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	var list []*container
	for _, k := range c.list() {
		waits := k.State != executor.Completed && (k.State != executor.Running || k.task != "")
		if c.dirty[k.GUID] || waits && !now.Before(k.ready) {
			list = append(list, k)
		}
		delete(c.dirty, k.GUID)
	}
	return list
}

// Poll settles every container, and every record that names this cell and has no
// container. A rep does so every 30 s.
func (c *Cell) Poll(ctx context.Context) {
	c.mu.Lock()
	list := c.list()
	c.mu.Unlock()
	for _, k := range list {
		c.settle(ctx, k)
	}
	id := []string{c.Presence.CellID}
	for r, err := range c.BBS.ActualLRPs(ctx, storage.ActualLRPFilter{CellIDs: id}) {
		if err == nil && !c.has(r.InstanceGUID) {
			c.settle(ctx, &container{Container: executor.Container{GUID: r.InstanceGUID}, job: job{lrp: r.Key}})
		}
	}
	for t, err := range c.BBS.Tasks(ctx, storage.TaskFilter{CellIDs: id, States: []task.State{task.Running}, Bare: true}) {
		if err == nil && !c.has(t.InstanceGUID) {
			c.settle(ctx, &container{Container: executor.Container{GUID: t.InstanceGUID}, job: job{task: t.GUID}})
		}
	}
}

// look returns a container as it is now, and whether the cell has it.
func (c *Cell) look(k *container) (now container, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *k, c.containers[k.GUID] == k
}

func (c *Cell) has(instance string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.containers[instance] != nil
}

// settle decides about a container until nothing changes any more. A container
// that the cell does not have stands for a record without one.
func (c *Cell) settle(ctx context.Context, k *container) {
	for range 5 {
		before, _ := c.look(k)
		c.goOn(k)
		var row rep.Row
		var err error
		if k.task != "" {
			row, err = c.taskRow(ctx, k)
		} else {
			row, err = c.lrpRow(ctx, k)
		}
		if err != nil {
			return // the next poll asks again
		}
		for _, step := range row.Steps {
			if !c.take(ctx, k, step) {
				break
			}
		}
		if after, held := c.look(k); !held || after.State == before.State {
			return
		}
	}
}

// goOn lets time do its work on a container.
func (c *Cell) goOn(k *container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.containers[k.GUID] == nil || c.Now().Before(k.ready) {
		return
	}
	switch {
	case k.State == executor.Reserved:
		c.enter(k, executor.Completed)
		k.RunResult = executor.Expired()
	case k.State == executor.Created && k.task == "":
		c.enter(k, executor.Running)
	case k.State == executor.Running && k.task != "":
		c.enter(k, executor.Completed)
	}
}

func (c *Cell) lrpRow(ctx context.Context, k *container) (rep.Row, error) {
	slot, err := c.BBS.Slot(ctx, k.lrp.ProcessGUID, k.lrp.Index)
	if err != nil {
		return rep.Row{}, err
	}
	situation := rep.NoContainer
	if now, held := c.look(k); held {
		if situation, err = rep.SituateContainer(now.State, now.RunResult); err != nil {
			return rep.Row{}, err
		}
	}
	record := rep.SituateLRP(slot, c.me(k), k.lrp.DefinitionID)
	c.mu.Lock()
	evacuates := c.evacuates()
	c.mu.Unlock()
	if evacuates {
		return rep.DecideEvacuation(situation, record), nil
	}
	return rep.DecideLRP(situation, record), nil
}

func (c *Cell) taskRow(ctx context.Context, k *container) (rep.Row, error) {
	t, err := c.BBS.Task(ctx, k.task)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return rep.Row{}, err
	}
	situation := rep.TaskContainerNone
	now, held := c.look(k)
	if held {
		if situation, err = rep.SituateTaskContainer(now.State, now.RunResult); err != nil {
			return rep.Row{}, err
		}
	}
	record := rep.SituateTask(t, c.Presence.CellID, k.GUID)
	if now.asked && situation == rep.TaskContainerReserved && record == rep.TaskRunningAlpha {
		return rep.TaskStartedUnheard(), nil
	}
	return rep.DecideTask(situation, record), nil
}

func (c *Cell) me(k *container) lrp.InstanceKey {
	return lrp.InstanceKey{InstanceGUID: k.GUID, CellID: c.Presence.CellID}
}

// take takes one step of a row. It reports whether to go on with the next.
func (c *Cell) take(ctx context.Context, k *container, step rep.Step) bool {
	if step != rep.ClaimLRP && step != rep.StartLRP { // which state a fact, however often
		ctx = storage.WithRequestID(ctx, c.requestID())
	}
	goOn, err := c.call(ctx, k, step)
	if err == nil {
		return goOn
	}
	var lrpRefused *lrp.TransitionError
	var taskRefused *task.TransitionError
	if (errors.As(err, &lrpRefused) || errors.As(err, &taskRefused)) && step.DeleteWhenRefused() {
		c.remove(k)
	}
	return false
}

// requestID is that of the next call. With NewGUID, no other Cell of this id has
// used it.
func (c *Cell) requestID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caller == "" {
		if c.caller = c.Presence.CellID; c.NewGUID != nil {
			c.caller = c.NewGUID()
		}
	}
	c.calls++
	return fmt.Sprintf("%s-call-%d", c.caller, c.calls)
}

// reports are the steps that say that a container has ended or is gone.
var reports = []rep.Step{rep.CrashLRP, rep.RemoveLRP, rep.RemoveEvacuatingLRP, rep.CompleteTask, rep.FailTask, rep.RejectTask}

func (c *Cell) call(ctx context.Context, k *container, step rep.Step) (goOn bool, err error) {
	now, _ := c.look(k)
	result := now.RunResult
	b, guid, index, me, id := c.BBS, k.lrp.ProcessGUID, k.lrp.Index, c.me(k), k.lrp.DefinitionID
	net := lrp.NetInfo{Address: c.Presence.Address}
	if c.Silent && slices.Contains(reports, step) {
		return true, nil
	}
	switch step {
	case rep.ClaimLRP:
		err = b.ClaimLRP(ctx, guid, index, lrp.Claim{DefinitionID: id, Instance: me})
	case rep.StartLRP:
		err = b.StartLRP(ctx, guid, index, lrp.Start{DefinitionID: id, Domain: k.lrp.Domain, Instance: me, NetInfo: net, Zone: c.Presence.Zone})
	case rep.CrashLRP:
		err = b.CrashLRP(ctx, guid, index, lrp.Crash{DefinitionID: id, Domain: k.lrp.Domain, Instance: me, Reason: result.FailureReason})
	case rep.RemoveLRP:
		err = b.RemoveLRP(ctx, guid, index, lrp.Remove{DefinitionID: id, Instance: me})
	case rep.RemoveEvacuatingLRP:
		err = b.RemoveEvacuatingLRP(ctx, guid, index, lrp.RemoveEvacuating{DefinitionID: id, Instance: me})
	case rep.EvacuateClaimedLRP:
		_, err = b.EvacuateClaimedLRP(ctx, guid, index, lrp.EvacuateClaimed{DefinitionID: id, Instance: me})
	case rep.EvacuateStoppedLRP:
		_, err = b.EvacuateStoppedLRP(ctx, guid, index, lrp.EvacuateStopped{DefinitionID: id, Instance: me})
	case rep.EvacuateCrashedLRP:
		_, err = b.EvacuateCrashedLRP(ctx, guid, index, lrp.EvacuateCrashed{DefinitionID: id, Instance: me, Reason: result.FailureReason})
	case rep.EvacuateRunningLRP:
		var keep bool
		keep, err = b.EvacuateRunningLRP(ctx, guid, index, lrp.EvacuateRunning{DefinitionID: id, Instance: me, NetInfo: net, Zone: c.Presence.Zone})
		return !keep, err
	case rep.StartTask:
		c.mu.Lock()
		k.asked = true
		c.mu.Unlock()
		return b.StartTask(ctx, k.task, task.Start{CellID: me.CellID, InstanceGUID: me.InstanceGUID, Attempt: k.attempt})
	case rep.CompleteTask:
		err = b.CompleteTask(ctx, k.task, task.Complete{CellID: me.CellID, InstanceGUID: me.InstanceGUID, Attempt: k.attempt, Failed: result.Failed, FailureReason: result.FailureReason})
	case rep.FailTask:
		err = b.CompleteTask(ctx, k.task, task.Complete{CellID: me.CellID, InstanceGUID: me.InstanceGUID, Attempt: k.attempt, Failed: true, FailureReason: task.ReasonContainerMissing})
	case rep.RejectTask:
		err = b.RejectStartedTask(ctx, k.task, task.Reject{CellID: me.CellID, InstanceGUID: me.InstanceGUID, Attempt: k.attempt, Reason: result.FailureReason})
	case rep.RunContainer:
		c.run(k)
	case rep.DeleteContainer, rep.DeleteContainerUnlessKept:
		c.remove(k)
	}
	return err == nil, err
}

// run begins the work of a container, unless it has begun or is gone by now.
func (c *Cell) run(k *container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.State != executor.Reserved || c.containers[k.GUID] != k {
		return
	}
	if c.begun == nil {
		c.begun, c.tasks = map[string]int{}, map[string]int{}
	}
	c.begun[k.GUID]++
	if k.task == "" {
		c.enter(k, executor.Created)
		k.ready = c.Now().Add(c.StartsIn)
		return
	}
	c.tasks[k.task]++
	c.enter(k, executor.Running)
	k.ready = c.Now().Add(c.TaskTakes)
}

func (c *Cell) remove(k *container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(k)
}

// drop forgets a container. It is called with the lock.
func (c *Cell) drop(k *container) {
	delete(c.containers, k.GUID)
	if c.held[k.job] == k {
		delete(c.held, k.job)
	}
}
