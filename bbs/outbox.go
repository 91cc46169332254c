package bbs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/deadline"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// An outbox carries out effects, each at most once. It keeps them in memory;
// convergence requests lost ones again. Effects within this process do not wait
// for those that need a cell's answer.
type outbox struct {
	store     storage.Reader
	directory auction.Directory
	// start, rollout and callBack carry out effects that need no cell.
	start    func(...auction.Item)
	rollout  func(ctx context.Context, processGUID string) error
	callBack func(*task.Task)
	// timeout is how long a cell may take to answer, and concurrency how many
	// are asked at a time.
	timeout     time.Duration
	concurrency int
	// toDirectory and toCells carry the calls, so that one that ignores its
	// context delays no other for longer than the timeout. With a concurrency of
	// 1, calls are waited for without end.
	toDirectory *deadline.Line
	toCells     *deadline.Lines
	now         func() time.Time
	metrics     auction.Metrics
	logger      *slog.Logger

	local, remote mailbox
}

// A mailbox holds effects until somebody takes them.
type mailbox struct {
	mu    sync.Mutex
	lrps  []lrp.Effect
	tasks []task.Effect
	wake  chan struct{}
}

func newMailbox() mailbox { return mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) put(lrps []lrp.Effect, tasks []task.Effect) {
	if len(lrps)+len(tasks) == 0 {
		return
	}
	m.mu.Lock()
	m.lrps, m.tasks = append(m.lrps, lrps...), append(m.tasks, tasks...)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) take() (lrps []lrp.Effect, tasks []task.Effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lrps, tasks = m.lrps, m.tasks
	m.lrps, m.tasks = nil, nil
	return lrps, tasks
}

// Carry implements converge.Effects.
func (x *outbox) Carry(lrps []lrp.Effect, tasks []task.Effect) {
	var localLRPs, remoteLRPs []lrp.Effect
	var localTasks, remoteTasks []task.Effect
	for _, e := range lrps {
		if e.Kind == lrp.StopInstance {
			remoteLRPs = append(remoteLRPs, e)
		} else {
			localLRPs = append(localLRPs, e)
		}
	}
	for _, e := range tasks {
		if e.Kind == task.CancelOnCell {
			remoteTasks = append(remoteTasks, e)
		} else {
			localTasks = append(localTasks, e)
		}
	}
	x.local.put(localLRPs, localTasks)
	x.remote.put(remoteLRPs, remoteTasks)
}

// tickLocal carries out the waiting effects that need no cell, and the effects
// that follow from them. While definitions are read that take long, it carries out
// what comes meanwhile.
func (x *outbox) tickLocal(ctx context.Context) {
	var queue startQueue
	for {
		lrps, tasks := x.local.take()
		if len(lrps)+len(tasks) == 0 && queue.empty() || ctx.Err() != nil {
			return
		}
		queue.add(lrps, x.now())
		x.begin(ctx, &queue, tasks)
		rolled := map[string]bool{}
		for _, e := range lrps {
			guid := e.Key.ProcessGUID
			if e.Kind != lrp.ContinueRollout || rolled[guid] {
				continue
			}
			rolled[guid] = true
			if err := x.rollout(ctx, guid); err != nil {
				x.lost("a rollout does not go on", e.Kind.String(), err, "process", guid)
			}
		}
		for _, e := range tasks {
			if e.Kind == task.CallBack {
				x.callBack(e.Task)
			}
		}
	}
}

// begin requests starts as one batch: those of the tasks, and those of the queue
// whose definitions are read within handOver. The others stay in the queue.
func (x *outbox) begin(ctx context.Context, queue *startQueue, tasks []task.Effect) {
	began := x.now()
	var items []auction.Item
	for !queue.empty() && ctx.Err() == nil {
		at := x.now()
		list, done := queue.take()
		items = append(items, x.items(ctx, list)...)
		now := x.now()
		done(now.Sub(at))
		if now.Sub(began) >= handOver {
			break
		}
	}
	for _, e := range tasks {
		if e.Kind == task.RequestStart {
			items = append(items, auction.NewTask(e.Task, began))
		}
	}
	if len(items) > 0 {
		x.start(items...)
	}
}

// items reads the definitions of processes and makes the items of their instances.
// It reads no other definitions, and no revisions, each of which has a definition more.
func (x *outbox) items(ctx context.Context, list []processStarts) (items []auction.Item) {
	unseen := make(map[string]bool, len(list))
	var f storage.DeploymentFilter
	for _, p := range list {
		f.ProcessGUIDs = append(f.ProcessGUIDs, p.guid)
		unseen[p.guid] = true
		for _, s := range p.starts {
			f.DefinitionIDs = append(f.DefinitionIDs, s.key.DefinitionID)
		}
	}
	slices.Sort(f.DefinitionIDs)
	f.DefinitionIDs = slices.Compact(f.DefinitionIDs)
	deployments := make(map[string]*lrp.Deployment, len(list))
	lost := func(guid string, err error) {
		delete(unseen, guid)
		x.lost("instances are not placed", lrp.RequestStart.String(), err, "process", guid)
	}
	for d, err := range x.store.Deployments(ctx, f) {
		var corrupt *storage.CorruptError
		switch {
		case err == nil:
			delete(unseen, d.ProcessGUID)
			deployments[d.ProcessGUID] = d
		case errors.As(err, &corrupt):
			lost(corrupt.Key.GUID, err)
		default:
			for _, p := range list {
				if unseen[p.guid] {
					lost(p.guid, err)
				}
			}
		}
	}
	for _, p := range list {
		d := deployments[p.guid]
		if d == nil {
			continue
		}
		for _, s := range p.starts {
			item, err := auction.NewLRP(d, s.key, s.at)
			if err != nil {
				x.lost("an instance is not placed", lrp.RequestStart.String(), err, "process", p.guid, "index", s.key.Index)
				continue
			}
			items = append(items, item)
		}
	}
	return items
}

// tickRemote sends the messages that wait for cells, and waits for the answers.
// A cell that is not present gets no message. It is for one goroutine at a
// time.
func (x *outbox) tickRemote(ctx context.Context) {
	lrps, tasks := x.remote.take()
	if len(lrps)+len(tasks) == 0 {
		return
	}
	if x.toDirectory == nil {
		x.toDirectory, x.toCells = deadline.NewLine(lineLimit(x.concurrency)), deadline.NewLines(lineLimit(x.concurrency))
	}
	cells, err := deadline.Call(ctx, x.toDirectory, x.timeout, x.directory.Cells)
	if err != nil {
		x.lost("cells are not told what to stop", "all", err, "messages", len(lrps)+len(tasks))
		return
	}
	clients := make(map[string]auction.CellClient, len(cells))
	for _, c := range cells {
		clients[c.ID] = c.Client
	}
	x.toCells.Connect(maps.Keys(clients))
	parallel.Each(len(lrps)+len(tasks), x.concurrency, func(i int) {
		if i < len(lrps) {
			e := lrps[i]
			client := clients[e.Instance.CellID]
			if client == nil { // convergence asks again if it is back before its instance is given up
				return
			}
			err := x.send(ctx, e.Instance.CellID, func(ctx context.Context) error { return client.StopLRP(ctx, e.Key, e.Instance) })
			if err != nil {
				x.lost("an instance is not stopped", e.Kind.String(), err, "cell", e.Instance.CellID, "process", e.Key.ProcessGUID, "index", e.Key.Index)
			}
			return
		}
		e := tasks[i-len(lrps)]
		if client := clients[e.Task.CellID]; client != nil {
			err := x.send(ctx, e.Task.CellID, func(ctx context.Context) error { return client.CancelTask(ctx, e.Task.GUID, e.Task.InstanceGUID) })
			if err != nil {
				x.lost("a task's container is not deleted", e.Kind.String(), err, "cell", e.Task.CellID, "task", e.Task.GUID)
			}
		}
	})
}

// lineLimit is how many calls to one party may be abandoned at a time. A call
// in the caller's goroutine is waited for without end.
func lineLimit(concurrency int) int {
	if concurrency == 1 {
		return 0
	}
	return 4
}

// send makes one call to a cell.
func (x *outbox) send(ctx context.Context, cellID string, f func(context.Context) error) error {
	_, err := deadline.Call(ctx, x.toCells.To(cellID), x.timeout, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

func (x *outbox) lost(what, kind string, err error, args ...any) {
	x.metrics.Count("effects_lost_total", 1, auction.Label{Name: "kind", Value: kind})
	x.logger.Warn(what+"; convergence asks again", append(args, "err", err)...)
}

// run carries out effects as they come, until ctx ends.
func (x *outbox) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { whenever(ctx, x.local.wake, x.tickLocal) })
	wg.Go(func() { whenever(ctx, x.remote.wake, x.tickRemote) })
	wg.Wait()
}

// whenever calls f for each signal until ctx ends.
func whenever(ctx context.Context, wake <-chan struct{}, f func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
			f(ctx)
		}
	}
}
