package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A trouble is what is wrong with a cell that works and can be reached.
type trouble struct {
	// address is where it answers; another cell may have answered there before.
	address string
	// skew is how far its clock is ahead.
	skew time.Duration
	// slow and lying are the steps that it goes on being slow or telling a lie.
	slow, lying int
	lie         lie
	// lied is when it last told a lie; zero if never.
	lied time.Time
	// state and inventory are old answers, for the lie that repeats them.
	state     *auction.CellState
	inventory *auction.Inventory
	// cordoned says that an operator keeps work away from it, and that it has heard so.
	cordoned bool
}

// A lie is how a cell's answers differ from the truth.
type lie int

const (
	oldAnswers lie = iota // the answers that it gave first are given again
	omissions             // it has no containers
	phantoms              // it has what it does not have, and says that it has started
	room                  // it has more room than it has, or less than none
	lies
)

func (l lie) String() string {
	return [lies]string{"it repeats old answers", "it leaves its containers out", "it reports containers that it does not have", "it is wrong about its room"}[l]
}

// credulous is how long what a cell has said falsely may have consequences.
const credulous = 2 * time.Minute

// lies reports whether a cell tells lies, or did lately.
func (w *World) lies(cellID string) bool {
	for i, c := range w.cells {
		if t := &w.troubles[i]; c.presence().CellID == cellID {
			return !t.lied.IsZero() && w.Clock.Now().Sub(t.lied) <= credulous
		}
	}
	return false
}

// deceive makes a cell tell a lie for some steps.
func (w *World) deceive(i int, l lie, steps int) {
	w.tells("fault: %s lies for %d steps: %s", w.cells[i].presence().CellID, steps, l)
	w.harmed("mischief", l.String())
	t := &w.troubles[i]
	t.lie, t.lying, t.lied = l, steps, w.Clock.Now()
	t.state, t.inventory = nil, nil
}

// cordon makes a cell take no more work; what it has stays.
func (w *World) cordon(i int) {
	if t := &w.troubles[i]; !t.cordoned && w.cells[i].cordon(true) {
		t.cordoned = true
		w.tells("%s is cordoned", w.cells[i].presence().CellID)
		w.harmed("mischief", "a cell is cordoned")
	}
}

// cordonUnlessLast leaves one cell that takes work, because nobody may take a cordon
// back.
func (w *World) cordonUnlessLast(i int) {
	open := 0
	for i := range w.troubles {
		if !w.troubles[i].cordoned {
			open++
		}
	}
	if open > 1 {
		w.cordon(i)
	}
}

// uncordon lets a cell take work again.
func (w *World) uncordon(i int) {
	if t := &w.troubles[i]; t.cordoned && w.cells[i].cordon(false) {
		t.cordoned = false
		w.tells("%s is not cordoned any more", w.cells[i].presence().CellID)
	}
}

// toggleCordon cordons a cell, or takes it back.
func (w *World) toggleCordon(i int) {
	if w.troubles[i].cordoned {
		w.uncordon(i)
	} else {
		w.cordon(i)
	}
}

// toggleDrain drains a cell, or gives its drain up.
func (w *World) toggleDrain(i int) {
	if w.cells[i].evacuates() {
		w.giveUp(i)
	} else {
		w.evacuate(i)
	}
}

// evacuate drains a cell that is not being drained.
func (w *World) evacuate(i int) {
	if c := w.cells[i]; !c.evacuates() {
		w.tells("%s is drained", c.presence().CellID)
		w.harmed("mischief", "a cell is drained")
		c.drain()
	}
}

// giveUp ends the drain of a cell that has not left yet.
func (w *World) giveUp(i int) {
	if c := w.cells[i]; c.evacuates() {
		w.tells("the drain of %s is given up, unless it is too late", c.presence().CellID)
		w.harmed("mischief", "a drain is given up")
		c.stay()
	}
}

// falsify changes a cell's answer, if it lies.
func (t *trouble) falsify(w *World, s *auction.CellState) {
	if t.lying == 0 {
		return
	}
	switch t.lie {
	case oldAnswers:
		if t.state == nil {
			first := *s
			t.state = &first
		}
		*s = *t.state
	case omissions:
		s.LRPs, s.Tasks, s.StartingContainers, s.Remaining = nil, nil, 0, s.Total
	case phantoms:
		s.LRPs = append(s.LRPs, lrp.Key{ProcessGUID: fmt.Sprintf("process-%d", w.random.IntN(4)), DefinitionID: "d", Domain: "apps"})
		s.Tasks = append(s.Tasks, "task-1")
		s.StartingContainers += 3
	case room:
		s.Remaining = s.Total
		if w.random.IntN(2) == 0 {
			s.Remaining.MemoryMB = -1
		}
	}
}

func (t *trouble) falsifyInventory(w *World, i *auction.Inventory) {
	if t.lying == 0 {
		return
	}
	switch t.lie {
	case oldAnswers:
		if t.inventory == nil {
			first := *i
			t.inventory = &first
		}
		*i = *t.inventory
	case omissions:
		i.Containers = []string{}
	case phantoms:
		for _, s := range w.ledger.slots {
			for _, r := range s.records {
				if r.CellID == i.CellID {
					i.Containers = append(i.Containers, r.InstanceGUID)
				}
			}
		}
		slices.Sort(i.Containers)
	}
}

// invent makes a cell that reports what it does not have say that an instance runs
// on it, or speak of a task.
func (w *World) invent(ctx context.Context, i int) {
	t := &w.troubles[i]
	if t.lying == 0 || t.lie != phantoms || !w.interrupted && w.random.IntN(3) > 0 {
		return
	}
	p := w.cells[i].presence()
	if w.errands {
		w.inventTask(ctx, i)
		return
	}
	guid, index := fmt.Sprintf("process-%d", w.random.IntN(4)), w.random.IntN(5)
	if w.interrupted { // by now, somebody may have decided to restart what has crashed
		for _, r := range w.scratch {
			if r.State == lrp.Crashed && w.random.IntN(2) == 0 {
				guid, index = r.ProcessGUID, r.Index
			}
		}
	}
	d := w.ledger.deployments[guid]
	if d == nil {
		return
	}
	w.names++
	_ = w.link(i).StartLRP(ctx, guid, index, lrp.Start{
		DefinitionID: d.ActiveDefinitionID, Domain: d.Domain, Zone: p.Zone, NetInfo: lrp.NetInfo{Address: p.Address},
		Instance: lrp.InstanceKey{InstanceGUID: fmt.Sprintf("phantom-%d", w.names), CellID: p.CellID},
	})
}

// inventTask makes a cell speak of a task as if a container of its own had it. It
// may know which attempt is the current one, because it was asked to make it.
func (w *World) inventTask(ctx context.Context, i int) {
	cell := w.cells[i].presence().CellID
	w.names++
	guid, instance := fmt.Sprintf("task-%d", w.names-w.random.IntN(20)), fmt.Sprintf("phantom-%d", w.names)
	if t := w.anyTask(ctx, task.Resolving); t != nil && w.random.IntN(3) == 0 {
		guid = t.GUID
	}
	var attempt task.Attempt
	if t := w.ledger.tasks[guid]; t != nil && w.random.IntN(2) == 0 {
		attempt = t.Attempt()
	} else {
		attempt.Epoch = 1
	}
	switch l := w.link(i); w.random.IntN(3) {
	case 0:
		_, _ = l.StartTask(ctx, guid, task.Start{CellID: cell, InstanceGUID: instance, Attempt: attempt})
	case 1:
		_ = l.CompleteTask(ctx, guid, task.Complete{CellID: cell, InstanceGUID: instance, Attempt: attempt})
	default:
		_ = l.RejectStartedTask(ctx, guid, task.Reject{CellID: cell, InstanceGUID: instance, Attempt: attempt, Reason: "it says so"})
	}
}

// pass lets a step pass for a cell's troubles.
func (t *trouble) pass(now time.Time) {
	if t.lying > 0 {
		t.lying--
		t.lied = now
	}
	t.slow = max(t.slow-1, 0)
}

// move gives a cell another address: that of another cell, which gets its own, or
// one where none was before. Both are off meanwhile.
func (w *World) move(i int) {
	w.names++
	address := fmt.Sprintf("10.1.0.%d", w.names)
	if j := w.random.IntN(len(w.cells)); j != i && w.random.IntN(2) == 0 {
		address = w.troubles[j].address
		w.settleAt(j, w.troubles[i].address)
	}
	w.settleAt(i, address)
}

func (w *World) settleAt(i int, address string) {
	w.harmed("mischief", "a cell moves")
	w.tells("fault: %s is switched off and moves from %s to %s", w.cells[i].presence().CellID, w.troubles[i].address, address)
	w.troubles[i].address = address
	w.cells[i].lose()
	w.cells[i].move(address)
	w.cutOff(i, 0, 1+w.random.IntN(10))
}

// at is the cell that answers at an address, or none.
func (w *World) at(address string) int {
	for i := range w.troubles {
		if w.troubles[i].address == address {
			return i
		}
	}
	return none
}

// The clocks of processes differ from the store's by up to maxSkew. A control
// plane that cannot go on leading may have one that differs by more than it may have
// to begin to lead.
const (
	maxSkew    = 20 * time.Second
	leadsUntil = time.Minute // bbs.LeadershipOptions.MaxClockSkew, by default
	leaderTTL  = 15 * time.Second
	farSkew    = 5 * time.Minute
)

// adjust sets a clock: that of a control plane or of a cell.
func (w *World) adjust(i int) {
	w.harmed("mischief", "a clock is set")
	within := func(most time.Duration) time.Duration {
		return time.Duration(w.random.Int64N(int64(2*most))) - most
	}
	if w.random.IntN(2) == 0 {
		w.troubles[i].skew = within(maxSkew)
		w.tells("fault: the clock of %s is now %s ahead", w.cells[i].presence().CellID, w.troubles[i].skew)
		return
	}
	plane := w.random.IntN(len(w.storage))
	s := w.storage[plane]
	before := s.skew
	if s.skew = within(maxSkew); w.random.IntN(3) == 0 && !s.leads && s.paused == nil {
		s.skew = farSkew
	}
	if s.skew < before {
		s.misled = w.Clock.Now().Add(leaderTTL + before - s.skew)
	}
	w.skewed = true
	w.tells("fault: the clock of %s is now %s ahead", s.name, s.skew)
}

// slack is how far a time that a control plane has recorded may be from the
// store's.
func (w *World) slack() time.Duration {
	if w.skewed {
		return maxSkew
	}
	return 0
}

// clockOf is a cell's.
func (w *World) clockOf(i int) func() time.Time {
	return func() time.Time { return w.Clock.Now().Add(w.troubles[i].skew) }
}

// link is a cell's way to the leader.
func (w *World) link(i int) link {
	return link{w.net, w.cells[i].presence().CellID, &w.cut[i], &w.troubles[i]}
}
