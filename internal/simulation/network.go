package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// errLost is the error of a call whose request or answer was lost.
var errLost = errors.New("no answer came")

// A network carries calls between the cells and the control planes, as well
// as it can.
type network struct {
	// faults is the share of calls that go wrong.
	faults float64
	world  *World
	// late are calls that were thought lost and are yet to arrive.
	late []lateCall
}

// A lateCall arrives in a step, or when another actor is interrupted.
type lateCall struct {
	step   int
	arrive func()
}

// carry makes a call, or only seems to.
//
// cell is what is wrong with the cell at one end, or nil: neither end of a call
// waits for the answer of a slow one.
func (n *network) carry(c call, cell *trouble, f func() error) error {
	if cell != nil && cell.slow > 0 {
		n.world.harmed(c.kind(), slow)
		n.delay(c, func() { _ = f() })
		return context.DeadlineExceeded
	}
	how := n.world.random.strikes(Call, n.faults)
	if how == nil {
		return f()
	}
	way := how.IntN(len(harms))
	n.world.harmed(c.kind(), harms[way])
	switch way {
	case 0: // the request is lost
		n.world.tells("fault: the request %s is lost", c)
	case 1: // the answer is lost
		n.world.tells("fault: the answer to %s is lost", c)
		_ = f()
	case 2: // it comes twice, at once or with time between
		n.world.tells("fault: %s comes twice", c)
		if how.IntN(2) == 0 {
			defer n.delay(c, func() { _ = f() })
		} else {
			_ = f()
		}
		return f()
	case 3: // it comes later, by up to minutes
		n.world.tells("fault: %s comes later", c)
		n.delay(c, func() { _ = f() })
	}
	return errLost
}

// latest is how many steps a call is late at most: five minutes.
const latest = int(5 * time.Minute / pace)

// delay lets a call arrive later: most of them soon, and some after minutes.
func (n *network) delay(c call, f func()) {
	steps := 1 + n.world.random.IntN(5)
	if n.world.random.IntN(4) == 0 {
		steps = 1 + n.world.random.IntN(latest)
	}
	n.late = append(n.late, lateCall{n.world.random.step + steps, func() {
		n.world.tells("%s arrives late", c)
		f()
	}})
}

// deliverLate lets the late calls arrive that are due, or all, in any order.
func (n *network) deliverLate(all bool) {
	for {
		var due []int
		for i := range n.late {
			if all || n.late[i].step <= n.world.random.step {
				due = append(due, i)
			}
		}
		if len(due) == 0 {
			return
		}
		n.deliver(due[n.world.random.IntN(len(due))])
	}
}

// deliverOne lets any late call arrive.
func (n *network) deliverOne() {
	if len(n.late) > 0 {
		n.deliver(n.world.random.IntN(len(n.late)))
	}
}

func (n *network) deliver(i int) {
	f := n.late[i].arrive
	n.late = append(n.late[:i:i], n.late[i+1:]...)
	f()
}

// A link is a cell's way to the present leader.
type link struct {
	*network
	cell string
	// cut links carry nothing.
	cut     *bool
	trouble *trouble
}

// of is what the cell says of an instance, and ofTask of a task.
func (l link) of(i lrp.InstanceKey, verb, guid string, index int) utterance {
	return utterance{call: call{l.cell, "the leader", verb, guid, index}, instance: i}
}

func (l link) ofTask(a task.Attempt, verb, guid string) utterance {
	return utterance{call: call{l.cell, "the leader", verb, guid, 0}, attempt: a}
}

var _ rep.BBS = link{}

// call tries every plane: those that do not lead say so.
func (l link) call(u utterance, f func(*bbs.BBS) error) error {
	if *l.cut {
		return errLost
	}
	return l.carry(u.call, l.trouble, func() error {
		before := l.world.speaking
		u.since = l.world.Clock.Now()
		l.world.speaking = &u
		defer func() { l.world.speaking = before }()
		err := errLost
		for i, p := range l.world.Planes {
			if l.world.storage[i].frozen {
				continue
			}
			if err = f(p.BBS); !errors.Is(err, bbs.ErrNotLeader) {
				break
			}
		}
		if err != nil {
			l.world.tells("%s: %s", u.call, brief(err))
		}
		return err
	})
}

func ask[T any](l link, u utterance, f func(*bbs.BBS) (T, error)) (answer T, err error) {
	err = l.call(u, func(b *bbs.BBS) (err error) { answer, err = f(b); return err })
	return answer, err
}

// recorded is what is recorded at an index, and whether nobody has interrupted the
// caller since.
func (l link) recorded(guid string, index int) (before []lrp.ActualLRP, alone func() bool) {
	interrupts := l.world.interrupts
	return slices.Clone(l.world.ledger.slot(guid, index).records), func() bool { return l.world.interrupts == interrupts }
}

// ActualLRPs and the other reads do not go wrong by themselves.
func (l link) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	if *l.cut {
		return func(yield func(lrp.ActualLRP, error) bool) { yield(lrp.ActualLRP{}, errLost) }
	}
	return l.world.Planes[0].BBS.ActualLRPs(ctx, f)
}

func (l link) Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, error) {
	if *l.cut {
		return lrp.Slot{}, errLost
	}
	s, err := l.world.Planes[0].BBS.Slot(ctx, processGUID, index)
	if err == nil {
		l.world.looksAtIndex(l.cell, s)
	}
	return s, err
}

func (l link) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	if *l.cut {
		return func(yield func(*task.Task, error) bool) { yield(nil, errLost) }
	}
	return l.world.Planes[0].BBS.Tasks(ctx, f)
}

func (l link) Task(ctx context.Context, guid string) (*task.Task, error) {
	if *l.cut {
		return nil, errLost
	}
	t, err := l.world.Planes[0].BBS.Task(ctx, guid)
	if err == nil || errors.Is(err, storage.ErrNotFound) {
		l.world.looksAtTask(l.cell, guid, t)
	}
	return t, err
}

func (l link) Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	if *l.cut {
		return func(yield func(*lrp.Deployment, error) bool) { yield(nil, errLost) }
	}
	return l.world.Planes[0].BBS.Deployments(ctx, f)
}

func (l link) ClaimLRP(ctx context.Context, guid string, index int, c lrp.Claim) error {
	return l.call(l.of(c.Instance, "ClaimLRP", guid, index), func(b *bbs.BBS) error {
		before, alone := l.recorded(guid, index)
		err := b.ClaimLRP(ctx, guid, index, c)
		l.world.object(l.world.ledger.claimed(slotKey{guid, index}, c, before, alone(), err))
		return err
	})
}

func (l link) StartLRP(ctx context.Context, guid string, index int, c lrp.Start) error {
	return l.world.doomsRefused(c.Instance, l.call(l.of(c.Instance, "StartLRP", guid, index), func(b *bbs.BBS) error {
		before, alone := l.recorded(guid, index)
		err := b.StartLRP(ctx, guid, index, c)
		l.world.object(l.world.ledger.started(slotKey{guid, index}, c, before, alone(), err))
		return err
	}))
}

func (l link) CrashLRP(ctx context.Context, guid string, index int, c lrp.Crash) error {
	return l.call(l.of(c.Instance, "CrashLRP", guid, index), func(b *bbs.BBS) error { return b.CrashLRP(ctx, guid, index, c) })
}

func (l link) RemoveLRP(ctx context.Context, guid string, index int, c lrp.Remove) error {
	first := true // a repetition is answered as the first call, even if the record is the instance's again
	return l.call(l.of(c.Instance, "RemoveLRP", guid, index), func(b *bbs.BBS) error {
		_, alone := l.recorded(guid, index)
		err := b.RemoveLRP(ctx, guid, index, c)
		if first && err == nil {
			l.world.object(l.world.ledger.removed(slotKey{guid, index}, c.Instance, alone()))
		}
		first = false
		return err
	})
}

func (l link) EvacuateClaimedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateClaimed) (bool, error) {
	keep, err := ask(l, l.of(c.Instance, "EvacuateClaimedLRP", guid, index), func(b *bbs.BBS) (bool, error) { return b.EvacuateClaimedLRP(ctx, guid, index, c) })
	l.world.excuses(c.Instance, err)
	return keep, err
}

func (l link) EvacuateRunningLRP(ctx context.Context, guid string, index int, c lrp.EvacuateRunning) (bool, error) {
	keep, err := ask(l, l.of(c.Instance, "EvacuateRunningLRP", guid, index), func(b *bbs.BBS) (bool, error) {
		before, alone := l.recorded(guid, index)
		keep, err := b.EvacuateRunningLRP(ctx, guid, index, c)
		if err == nil {
			l.world.evacuatesRunning(slotKey{guid, index}, before, c.Instance, c.DefinitionID)
		}
		if err == nil && !keep {
			l.world.object(l.world.ledger.drained(slotKey{guid, index}, c.Instance, before, alone()))
		}
		return keep, err
	})
	if err == nil && !keep {
		l.world.dooms(c.Instance.InstanceGUID)
	}
	return keep, l.world.doomsRefused(c.Instance, err)
}

func (l link) EvacuateStoppedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateStopped) (bool, error) {
	return ask(l, l.of(c.Instance, "EvacuateStoppedLRP", guid, index), func(b *bbs.BBS) (bool, error) { return b.EvacuateStoppedLRP(ctx, guid, index, c) })
}

func (l link) EvacuateCrashedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateCrashed) (bool, error) {
	return ask(l, l.of(c.Instance, "EvacuateCrashedLRP", guid, index), func(b *bbs.BBS) (bool, error) { return b.EvacuateCrashedLRP(ctx, guid, index, c) })
}

func (l link) RemoveEvacuatingLRP(ctx context.Context, guid string, index int, c lrp.RemoveEvacuating) error {
	return l.call(l.of(c.Instance, "RemoveEvacuatingLRP", guid, index), func(b *bbs.BBS) error { return b.RemoveEvacuatingLRP(ctx, guid, index, c) })
}

func (l link) StartTask(ctx context.Context, guid string, c task.Start) (bool, error) {
	l.world.startsTask(guid, c)
	return ask(l, l.ofTask(c.Attempt, "StartTask", guid), func(b *bbs.BBS) (run bool, err error) {
		return run, l.world.commands(c, guid, func() error { run, err = b.StartTask(ctx, guid, c); return err })
	})
}

func (l link) CompleteTask(ctx context.Context, guid string, c task.Complete) error {
	return l.call(l.ofTask(c.Attempt, "CompleteTask", guid), func(b *bbs.BBS) error {
		before, interrupts := l.world.ledger.tasks[guid], l.world.interrupts
		return l.world.commands(c, guid, func() error {
			err := b.CompleteTask(ctx, guid, c)
			if err == nil && l.world.interrupts == interrupts {
				l.world.object(l.world.ledger.completes(before, c))
			}
			return err
		})
	})
}

func (l link) RejectStartedTask(ctx context.Context, guid string, c task.Reject) error {
	return l.call(l.ofTask(c.Attempt, "RejectStartedTask", guid), func(b *bbs.BBS) error {
		return l.world.commands(c, guid, func() error { return b.RejectStartedTask(ctx, guid, c) })
	})
}

// A wire is a control plane's way to a cell.
type wire struct {
	*network
	plane int
	// address is where the cell called cellID was said to be. Another cell, or none,
	// may answer there by now.
	cellID, address string
}

var _ auction.CellClient = wire{}

// order is send for a call that makes the cell do something: only a leader gives
// orders. One that was paused does not know yet that it no longer leads.
func (w wire) order(c call, f func(machine) error) error {
	s := w.world.storage[w.plane]
	if !w.world.ledger.closed && s.paused == nil && !w.world.Clock.Now().Before(s.misled) && !w.world.leads(w.plane) {
		w.world.object(checkLeaders.violated("%s gives an order to cell %s and does not lead", planeName(w.plane), w.name()))
	}
	err := w.send(c, f)
	w.world.tells("%s: %s", c, brief(err))
	return err
}

func (w wire) send(c call, f func(machine) error) error {
	i := w.world.at(w.address)
	if i == none || w.world.cut[i] {
		return context.DeadlineExceeded
	}
	return w.carry(c, &w.world.troubles[i], func() error { return f(w.world.cells[i]) })
}

// name is the cell that answers, or its address.
func (w wire) name() string {
	if i := w.world.at(w.address); i != none {
		return w.world.cells[i].presence().CellID
	}
	return w.address
}

// to is a call to the cell.
func (w wire) to(verb, about string, index int) call {
	return call{planeName(w.plane), w.name(), verb, about, index}
}

func (w wire) State(ctx context.Context) (s auction.CellState, err error) {
	err = w.send(w.to("State", "", 0), func(cell machine) (err error) { s, err = cell.State(ctx); return err })
	if err == nil {
		w.world.troubles[w.world.at(w.address)].falsify(w.world, &s)
		if s.ID == w.cellID { // nobody may believe what another cell says there
			w.world.said[s.ID] = s
		}
	}
	return s, err
}

// Inventory implements [auction.InventoryClient].
func (w wire) Inventory(ctx context.Context) (i auction.Inventory, err error) {
	err = w.send(w.to("Inventory", "", 0), func(cell machine) (err error) { i, err = cell.Inventory(ctx); return err })
	if err == nil {
		w.world.troubles[w.world.at(w.address)].falsifyInventory(w.world, &i)
	}
	return i, err
}

func (w wire) Perform(ctx context.Context, work auction.Work) (r []auction.Rejection, err error) {
	w.world.object(handed(w.world.said[work.CellID], work))
	if i := w.world.at(w.address); w.world.operated && i != none && w.world.random.strikes(Interrupt, 0.05) != nil {
		w.world.cordonUnlessLast(i) // after it has said what room it has
	}
	for i := range work.Items {
		w.world.effected("Perform", map[bool]string{true: "a task", false: "an instance"}[work.Items[i].Kind == auction.Task])
	}
	err = w.order(w.to(fmt.Sprintf("Perform of %d items", len(work.Items)), "", 0), func(cell machine) (err error) {
		held := managed(cell.holds())
		r, err = cell.Perform(ctx, work)
		holds := cell.holds()
		if truth, err := cell.State(ctx); err == nil {
			w.world.object(errors.Join(kept(truth), roomy(truth, cell)))
		}
		cordoned := w.world.troubles[slices.Index(w.world.cells, cell)].cordoned
		w.world.object(taken(work.CellID, cell.evacuates(), cordoned, managed(holds)-held))
		for i := range holds {
			w.world.attempted(cell, &holds[i])
		}
		return err
	})
	return r, err
}

// managed counts the containers that a cell has for work. What an earlier daemon has
// left does not count: a backend that fails does not list it.
func managed(list []executor.Container) (n int) {
	for i := range list {
		if list[i].Tags != nil {
			n++
		}
	}
	return n
}

func (w wire) StopLRP(ctx context.Context, key lrp.Key, instance lrp.InstanceKey) error {
	w.world.object(w.world.ledger.orderedToStop(key, instance))
	w.world.object(w.world.ledger.stopped(key, instance, w.world.storage[w.plane].acted))
	return w.order(w.to("StopLRP", key.ProcessGUID, key.Index), func(cell machine) error {
		w.world.dooms(instance.InstanceGUID)
		return cell.StopLRP(ctx, key, instance)
	})
}

func (w wire) CancelTask(ctx context.Context, taskGUID, instanceGUID string) error {
	w.world.effected("CancelTask", stateOf(w.world.ledger.tasks[taskGUID]).String())
	return w.order(w.to("CancelTask", taskGUID, 0), func(cell machine) error {
		w.world.object(w.world.ledger.orderedToCancel(taskGUID, instanceGUID))
		return cell.CancelTask(ctx, taskGUID, instanceGUID)
	})
}
