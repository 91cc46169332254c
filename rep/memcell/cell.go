package memcell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// A Cell is an [auction.CellClient] and an [auction.InventoryClient]. Its other
// methods play the part of the world: they let time pass and containers fail.
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
	// StartsIn is how long an instance takes until it is healthy, TaskTakes how
	// long a task runs (default: both are done in the Step that begins them).
	StartsIn, TaskTakes time.Duration
	// ReservedFor is how long a reservation waits for its work to begin
	// (default 1 min).
	ReservedFor time.Duration
	// Silent makes the cell delete a container that ends without reporting it,
	// as if the report were lost.
	Silent bool
	// Evacuating makes the cell refuse work and hand over what it has.
	Evacuating bool
	// Ran counts how often the work of each task has begun, by "GUID@EPOCH" of
	// its attempt.
	Ran map[string]int

	mu         sync.Mutex
	containers map[string]*Container
	held       map[job]*Container // the newest for each job
	dirty      map[string]bool
	begun      map[string]int // by instance guid
	next       int
	calls      int
}

// A Container is a copy of what a [Cell] knows of one container.
type Container struct {
	// Instance is the instance guid.
	Instance string
	// LRP is set for an instance, Task and Attempt for a task.
	LRP     lrp.Key
	Task    string
	Attempt task.Attempt
	State   executor.State
	// Result says how a COMPLETED container ended.
	Result executor.RunResult
	size   executor.Resources
	// asked says that the BBS was asked to start the task; the answer may be lost.
	asked bool
	// ready is when a reservation expires, an instance becomes healthy or a
	// task ends.
	ready time.Time
}

// State implements [auction.CellClient].
func (c *Cell) State(context.Context) (auction.CellState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := auction.CellState{
		ID: c.Presence.CellID, Zone: c.Presence.Zone, Total: c.Presence.Capacity, Remaining: c.remaining(),
		RootFSProviders: c.Presence.RootFSProviders, PlacementTags: c.Presence.PlacementTags,
		OptionalPlacementTags: c.Presence.OptionalPlacementTags, Evacuating: c.Evacuating,
	}
	for _, k := range c.list() {
		if k.Task != "" {
			s.Tasks = append(s.Tasks, k.Task)
		} else {
			s.LRPs = append(s.LRPs, k.LRP)
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
		left = left.Minus(share(k.size))
	}
	return left
}

// share is what a container takes of the cell.
func share(r executor.Resources) auction.Capacity {
	return auction.Capacity{MemoryMB: r.MemoryMB, DiskMB: r.DiskMB, Containers: 1, Extra: r.Extra}
}

// list is the containers in the order in which they came.
func (c *Cell) list() []*Container {
	list := make([]*Container, 0, len(c.containers))
	for _, k := range c.containers {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *Container) int {
		if len(a.Instance) != len(b.Instance) {
			return len(a.Instance) - len(b.Instance)
		}
		if a.Instance < b.Instance {
			return -1
		}
		return 1
	})
	return list
}

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
		case c.Evacuating:
			reason = string(auction.Evacuating)
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
		c.next++
		k := &Container{
			Instance: fmt.Sprintf("%s-%d", c.Presence.CellID, c.next), LRP: j.lrp, Task: j.task, Attempt: j.attempt,
			State: executor.Reserved, size: item.Resources, ready: c.Now().Add(cmp.Or(c.ReservedFor, time.Minute)),
		}
		if c.containers == nil {
			c.containers, c.held = map[string]*Container{}, map[job]*Container{}
		}
		c.containers[k.Instance], c.held[j] = k, k
		c.touch(k)
	}
	return out, nil
}

// A job is what a container is for.
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

// touch has a container looked at in the next Step.
func (c *Cell) touch(k *Container) {
	if c.dirty == nil {
		c.dirty = map[string]bool{}
	}
	c.dirty[k.Instance] = true
}

// StopLRP implements [auction.CellClient].
func (c *Cell) StopLRP(_ context.Context, key lrp.Key, instance lrp.InstanceKey) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.containers[instance.InstanceGUID]
	if k != nil && k.Task == "" && instance.CellID == c.Presence.CellID && k.LRP.ProcessGUID == key.ProcessGUID && k.LRP.Index == key.Index {
		c.end(k, executor.Stopped())
	}
	return nil
}

// CancelTask implements [auction.CellClient].
func (c *Cell) CancelTask(_ context.Context, taskGUID, instanceGUID string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.containers[instanceGUID]; k != nil && k.Task == taskGUID {
		c.drop(k)
	}
	return nil
}

// Inventory implements [auction.InventoryClient].
func (c *Cell) Inventory(context.Context) (auction.Inventory, error) {
	i := auction.Inventory{CellID: c.Presence.CellID, Containers: []string{}}
	for _, k := range c.Containers() {
		i.Containers = append(i.Containers, k.Instance)
	}
	slices.Sort(i.Containers)
	return i, nil
}

// Containers lists copies of the cell's containers, oldest first.
func (c *Cell) Containers() []Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Container
	for _, k := range c.list() {
		list = append(list, *k)
	}
	return list
}

// Crash makes the RUNNING instance at an index fail. It reports whether the cell
// has one.
func (c *Cell) Crash(processGUID string, index int, reason string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.list() {
		if k.LRP.ProcessGUID == processGUID && k.LRP.Index == index && k.State == executor.Running {
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

func (c *Cell) end(k *Container, r executor.RunResult) bool {
	if k.State == executor.Completed {
		return false
	}
	k.State, k.Result = executor.Completed, r
	c.touch(k)
	return true
}

// Begun is how often the work of a container has begun, also of one that is gone.
func (c *Cell) Begun(instanceGUID string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun[instanceGUID]
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
func (c *Cell) due() []*Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	var list []*Container
	for _, k := range c.list() {
		waits := k.State != executor.Completed && (k.State != executor.Running || k.Task != "")
		if c.dirty[k.Instance] || waits && !now.Before(k.ready) {
			list = append(list, k)
		}
		delete(c.dirty, k.Instance)
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
			c.settle(ctx, &Container{Instance: r.InstanceGUID, LRP: r.Key})
		}
	}
	for t, err := range c.BBS.Tasks(ctx, storage.TaskFilter{CellIDs: id, States: []task.State{task.Running}}) {
		if err == nil && !c.has(t.InstanceGUID) {
			c.settle(ctx, &Container{Instance: t.InstanceGUID, Task: t.GUID})
		}
	}
}

// look returns a container as it is now, and whether the cell has it.
func (c *Cell) look(k *Container) (now Container, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *k, c.containers[k.Instance] == k
}

func (c *Cell) has(instance string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.containers[instance] != nil
}

// settle decides about a container until nothing changes any more. A container
// that the cell does not have stands for a record without one.
func (c *Cell) settle(ctx context.Context, k *Container) {
	for range 5 {
		before, _ := c.look(k)
		c.goOn(k)
		var row rep.Row
		var err error
		if k.Task != "" {
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
func (c *Cell) goOn(k *Container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.containers[k.Instance] == nil || c.Now().Before(k.ready) {
		return
	}
	switch {
	case k.State == executor.Reserved:
		k.State = executor.Completed
		k.Result = executor.Expired()
	case k.State == executor.Created && k.Task == "":
		k.State = executor.Running
	case k.State == executor.Running && k.Task != "":
		k.State = executor.Completed
	}
}

func (c *Cell) lrpRow(ctx context.Context, k *Container) (rep.Row, error) {
	slot, err := c.BBS.Slot(ctx, k.LRP.ProcessGUID, k.LRP.Index)
	if err != nil {
		return rep.Row{}, err
	}
	container := rep.NoContainer
	if now, held := c.look(k); held {
		if container, err = rep.SituateContainer(now.State, now.Result); err != nil {
			return rep.Row{}, err
		}
	}
	if c.Evacuating {
		return c.evacuationRow(slot, k, container), nil
	}
	return rep.DecideLRP(container, rep.SituateLRP(slot, c.me(k), k.LRP.DefinitionID)), nil
}

func (c *Cell) evacuationRow(slot lrp.Slot, k *Container, container rep.ContainerSituation) rep.Row {
	return rep.DecideEvacuation(container, rep.SituateLRP(slot, c.me(k), k.LRP.DefinitionID))
}

func (c *Cell) taskRow(ctx context.Context, k *Container) (rep.Row, error) {
	t, err := c.BBS.Task(ctx, k.Task)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return rep.Row{}, err
	}
	container := rep.TaskContainerNone
	now, held := c.look(k)
	if held {
		if container, err = rep.SituateTaskContainer(now.State, now.Result); err != nil {
			return rep.Row{}, err
		}
	}
	record := rep.SituateTask(t, c.Presence.CellID, k.Instance)
	if now.asked && container == rep.TaskContainerReserved && record == rep.TaskRunningAlpha {
		return rep.TaskStartedUnheard(), nil
	}
	return rep.DecideTask(container, record), nil
}

func (c *Cell) me(k *Container) lrp.InstanceKey {
	return lrp.InstanceKey{InstanceGUID: k.Instance, CellID: c.Presence.CellID}
}

// take takes one step of a row. It reports whether to go on with the next.
func (c *Cell) take(ctx context.Context, k *Container, step rep.Step) bool {
	if step != rep.ClaimLRP && step != rep.StartLRP { // which state a fact, however often
		c.mu.Lock()
		c.calls++
		ctx = storage.WithRequestID(ctx, fmt.Sprintf("%s-call-%d", c.Presence.CellID, c.calls))
		c.mu.Unlock()
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

// reports are the steps that say that a container has ended or is gone.
var reports = []rep.Step{rep.CrashLRP, rep.RemoveLRP, rep.RemoveEvacuatingLRP, rep.CompleteTask, rep.FailTask, rep.RejectTask}

func (c *Cell) call(ctx context.Context, k *Container, step rep.Step) (goOn bool, err error) {
	now, _ := c.look(k)
	result := now.Result
	b, guid, index, me, id := c.BBS, k.LRP.ProcessGUID, k.LRP.Index, c.me(k), k.LRP.DefinitionID
	net := lrp.NetInfo{Address: c.Presence.Address}
	if c.Silent && slices.Contains(reports, step) {
		return true, nil
	}
	switch step {
	case rep.ClaimLRP:
		err = b.ClaimLRP(ctx, guid, index, lrp.Claim{DefinitionID: id, Instance: me})
	case rep.StartLRP:
		err = b.StartLRP(ctx, guid, index, lrp.Start{DefinitionID: id, Domain: k.LRP.Domain, Instance: me, NetInfo: net, Zone: c.Presence.Zone})
	case rep.CrashLRP:
		err = b.CrashLRP(ctx, guid, index, lrp.Crash{DefinitionID: id, Domain: k.LRP.Domain, Instance: me, Reason: result.FailureReason})
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
		return b.StartTask(ctx, k.Task, task.Start{CellID: me.CellID, InstanceGUID: me.InstanceGUID, Attempt: k.Attempt})
	case rep.CompleteTask:
		err = b.CompleteTask(ctx, k.Task, task.Complete{CellID: me.CellID, InstanceGUID: me.InstanceGUID, Attempt: k.Attempt, Failed: result.Failed, FailureReason: result.FailureReason})
	case rep.FailTask:
		err = b.CompleteTask(ctx, k.Task, task.Complete{CellID: me.CellID, InstanceGUID: me.InstanceGUID, Attempt: k.Attempt, Failed: true, FailureReason: task.ReasonContainerMissing})
	case rep.RejectTask:
		err = b.RejectStartedTask(ctx, k.Task, task.Reject{CellID: me.CellID, InstanceGUID: me.InstanceGUID, Attempt: k.Attempt, Reason: result.FailureReason})
	case rep.RunContainer:
		c.run(k)
	case rep.DeleteContainer, rep.DeleteContainerUnlessKept:
		c.remove(k)
	}
	return err == nil, err
}

// run begins the work of a container.
func (c *Cell) run(k *Container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun == nil {
		c.begun = map[string]int{}
	}
	c.begun[k.Instance]++
	if k.Task == "" {
		k.State, k.ready = executor.Created, c.Now().Add(c.StartsIn)
		return
	}
	k.State, k.ready = executor.Running, c.Now().Add(c.TaskTakes)
	if c.Ran == nil {
		c.Ran = map[string]int{}
	}
	c.Ran[fmt.Sprintf("%s@%d", k.Task, k.Attempt.Epoch)]++
}

func (c *Cell) remove(k *Container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(k)
}

// drop forgets a container. It is called with the lock.
func (c *Cell) drop(k *Container) {
	delete(c.containers, k.Instance)
	if j := (job{k.LRP, k.Task, k.Attempt}); c.held[j] == k {
		delete(c.held, j)
	}
}
