package simulation

import (
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// memory is how long a reason to stop an instance may lie back when the stop is
// sent: effects wait while a control plane is paused.
const memory = 2 * time.Minute

func alive(k *executor.Container) bool { return k.State != executor.Completed }

// reasons judges every record of an instance that ran and does no more.
func (l *ledger) reasons(c *slotChange) error {
	for _, r := range running(c.before) {
		kept := slices.ContainsFunc(running(c.after), func(a *lrp.ActualLRP) bool { return a.InstanceKey == r.InstanceKey })
		if kept || !l.world.lives(r.InstanceKey) || l.excused(c, r) {
			continue
		}
		return checkReasons.violated("%s/%d: %s ends the record of an instance that runs, %+v; the slot is then %+v", c.key.guid, c.key.index, c.command, *r, c.after)
	}
	return nil
}

// replaced makes sure that a replacement that runs ends the other records of its
// index in the same commit.
func (l *ledger) replaced(c *slotChange) error {
	if c.command != "Start" || l.world.speaking == nil || !ordinaryRuns(c.after, lrp.InstanceKey{}) || l.unseen(c.key) {
		return nil
	}
	for _, r := range c.after {
		if r.Presence != lrp.Ordinary && r.InstanceKey != l.world.speaking.instance && !l.spares(c.after, &r) {
			return checkReplaced.violated("%s/%d: %+v runs, and this stays: %+v", c.key.guid, c.key.index, l.world.speaking.instance, r)
		}
	}
	return nil
}

// spares reports whether the instance that speaks may have to prove healthy, or to
// become ready, before it replaces r. It also spares an evacuated instance of the
// active definition if it is of another one, which a rollout tells to stop.
func (l *ledger) spares(records []lrp.ActualLRP, r *lrp.ActualLRP) bool {
	me, d := find(records, l.world.speaking.instance), l.deployments[r.ProcessGUID]
	if me != nil && d != nil && r.Presence == lrp.Evacuating && r.DefinitionID == d.ActiveDefinitionID && me.DefinitionID != r.DefinitionID {
		return true
	}
	now := l.now()
	if l.decided.Before(now) {
		now = l.decided // a late call has reached a control plane that is paused
	}
	return me != nil && !l.replaces(me, r, now.Add(-2*l.world.slack()))
}

// recovered notes the replacements that a returning instance makes needless.
func (l *ledger) recovered(c *slotChange) error {
	for i := range c.before {
		r := &c.before[i]
		if c.command == "Recover" && r.Presence == lrp.Ordinary && !r.InstanceKey.IsZero() && find(c.after, r.InstanceKey) == nil {
			l.needless[r.InstanceKey] = l.now()
		}
	}
	return nil
}

// excused reports whether there is a reason to end the record.
func (l *ledger) excused(c *slotChange, r *lrp.ActualLRP) bool {
	if l.world.lies(r.CellID) {
		return true // what it says may end what it has
	}
	if !r.Stopping.IsZero() && (c.command == "Recover" || c.command == "Start" && ordinaryRuns(c.after, r.InstanceKey)) {
		return true // it was told to stop; its cell finds no record, and deletes it
	}
	own := l.world.speaking != nil && l.world.speaking.instance == r.InstanceKey
	desired := l.desires(c.key)
	// A process that was deleted may be back: then a commit has no deployment to check.
	back := l.justNow(l.slot(c.key.guid, c.key.index).back)
	lately := !desired || l.justNow(l.slot(c.key.guid, c.key.index).undesired)
	_, then := l.world.goneThen[r.CellID]
	gone := then || !l.world.present(r.CellID)
	replaced := l.replacing(c.after, r) || l.world.rolls && l.unseen(c.key)
	switch c.command {
	case "Claim", "Crash", "Remove", "EvacuateClaimed", "EvacuateStopped", "EvacuateCrashed", "RemoveEvacuating":
		return own
	case "EvacuateRunning":
		crashed := slices.ContainsFunc(c.after, func(a lrp.ActualLRP) bool { return a.State == lrp.Crashed })
		// Of two that are not ready, a definition keeps the record of the one that was
		// evacuated later.
		later := r.Presence == lrp.Evacuating && !r.Routable && slices.ContainsFunc(running(c.after), func(a *lrp.ActualLRP) bool {
			return a.DefinitionID == r.DefinitionID && a.Presence == lrp.Evacuating
		})
		return replaced || later || own && (!desired || back || crashed || l.recreates(c.key.guid))
	case "StopExtra":
		return gone && lately
	case "Retire":
		return gone
	case "Prune":
		return r.Presence == lrp.Evacuating && (gone || !l.decided.Before(r.ExpiresAt))
	case "Start", "MarkSuspect", "Recover", "RemoveSuspect":
		return replaced
	}
	return false
}

func (l *ledger) recreates(guid string) bool {
	d := l.deployments[guid]
	return d != nil && d.UpdateStrategy == lrp.Recreate
}

// justNow reports whether it was in this step.
func (l *ledger) justNow(t time.Time) bool { return l.now().Sub(t) < pace }

// lately reports whether a reason to stop still counts.
func (l *ledger) lately(t time.Time) bool { return !t.IsZero() && l.now().Sub(t) <= memory }

// stopped judges a stop that a control plane sends to a cell. It may have been
// decided since the control plane has last carried out effects, at acted.
func (l *ledger) stopped(key lrp.Key, instance lrp.InstanceKey, acted time.Time) error {
	if l.closed {
		return nil
	}
	delete(l.needless, instance)
	s := l.slot(key.ProcessGUID, key.Index)
	s.stopping[instance] = true
	l.world.effected("StopLRP", stopsAs(find(s.records, instance)))
	at := slices.IndexFunc(s.records, func(r lrp.ActualLRP) bool { return r.InstanceKey == instance && r.State == lrp.Running })
	if at < 0 {
		return nil
	}
	r := &s.records[at]
	switch {
	case !l.desires(slotKey{key.ProcessGUID, key.Index}), l.replacing(s.records, r):
	case !r.Stopping.IsZero() && l.now().Sub(r.Stopping) >= l.world.waits.staleUnclaimed-l.world.slack(): // the reason was one when it was first told to
	case l.lately(s.undesired), l.lately(s.contested[instance]), l.lately(s.retired), l.lately(s.relaxed):
	case !r.RunningSince.Before(acted.Add(-2*pace - l.world.slack())): // it was decided while the instance still started
	case limited(l.deployments[key.ProcessGUID]):
		return checkBudget.violated("%s/%d: the only instance that is ready is to stop: %+v", key.ProcessGUID, key.Index, s.records)
	default:
		return checkStops.violated("%s/%d: the only instance that runs is to stop: %+v", key.ProcessGUID, key.Index, s.records)
	}
	return nil
}

// orderedToStop judges an order to stop by the records, and not by who gives it.
func (l *ledger) orderedToStop(key lrp.Key, instance lrp.InstanceKey) error {
	s := l.slot(key.ProcessGUID, key.Index)
	r := find(s.records, instance)
	if l.closed || r == nil || !r.Stopping.IsZero() || !s.givenUp[instance].IsZero() {
		return nil
	}
	return checkOrders.violated("%s/%d: cell %s is told to stop an instance, and no commit says so: %+v", key.ProcessGUID, key.Index, instance.CellID, *r)
}

// restarts is the policy of restarts as the specification has it, with the
// knobs of this world.
type restarts struct {
	immediate, most             int
	shortest, longest, forgiven time.Duration
}

// after is the count after a crash.
func (p *restarts) after(r *lrp.ActualLRP, now time.Time) int {
	if r.State == lrp.Running && now.Sub(r.RunningSince) >= p.forgiven {
		return 1
	}
	return r.CrashCount + 1
}

// waits is how long a CRASHED instance stays so at least, and whether it ever
// starts again.
func (p *restarts) waits(count int) (wait time.Duration, ever bool) {
	wait = p.shortest
	for range count - 3 {
		wait = min(2*wait, p.longest)
	}
	return wait, count <= p.most
}

// crashed judges crash counts and restarts, but for a step in which a consumer changes
// the policy: what was decided before goes by the former one.
func (l *ledger) crashed(c *slotChange) error {
	if l.justNow(l.slot(c.key.guid, c.key.index).restarts) {
		return nil
	}
	p := l.restarts(c.key.guid)
	object := func(what string, want any) error {
		return checkCrashes.violated("%s/%d: %s %s, want %v: from %+v to %+v", c.key.guid, c.key.index, c.command, what, want, c.before, c.after)
	}
	told := slices.ContainsFunc(c.events, func(e *lrp.Event) bool { return e.Kind == lrp.InstanceCrashed })
	crash := c.command == "Crash" || c.command == "EvacuateCrashed"
	if crash && len(c.events) > 0 && strings.Contains(c.events[0].Cause.Detail, "reservation") {
		return object("is of an instance that never ran", "none")
	}
	for i := range c.before {
		b := &c.before[i]
		var a *lrp.ActualLRP
		for j := range c.after {
			if c.after[j].ModificationTag.Epoch == b.ModificationTag.Epoch {
				a = &c.after[j]
			}
		}
		// An EVACUATING record becomes the ORDINARY one if the index has none.
		ordinary := b.Presence == lrp.Ordinary || a != nil && a.Presence == lrp.Ordinary
		mine := crash && ordinary && l.world.speaking != nil && b.InstanceKey == l.world.speaking.instance
		if mine && !told {
			return object("makes no event", "one")
		}
		switch {
		case a == nil:
		case mine && l.unseen(c.key): // it was decided by the policy of the deployment before
		case mine:
			want := p.after(b, l.decided)
			if a.CrashCount != want {
				return object("makes a wrong crash count", want)
			}
			if atOnce := want-1 < p.immediate; atOnce != (a.State == lrp.Unclaimed) {
				return object("restarts at once, or does not", atOnce)
			}
		case c.command == "Retire":
		case a.CrashCount != b.CrashCount:
			return object("changes a crash count", b.CrashCount)
		case b.State == lrp.Crashed && a.State == lrp.Unclaimed && c.command == "Restart":
			wait, ever := p.waits(b.CrashCount)
			if at := b.Since.Add(wait); !ever || l.now().Before(at) {
				return object("comes too early", at)
			}
		}
		if a != nil && c.command == "Restart" && b.State != lrp.Crashed && a.State != b.State {
			return object("restarts an instance that is not CRASHED", b.State)
		}
	}
	return l.inherited(c, object)
}

// inherited judges the counts of replacements.
func (l *ledger) inherited(c *slotChange, object func(string, any) error) error {
	switch c.command {
	case "MarkSuspect", "EvacuateRunning", "Remove", "EvacuateClaimed", "EvacuateStopped", "CreateMissing":
	default:
		return nil
	}
	if len(c.before) == 0 {
		return nil
	}
	for i := range c.after {
		a := &c.after[i]
		isNew := !slices.ContainsFunc(c.before, func(b lrp.ActualLRP) bool { return b.ModificationTag.Epoch == a.ModificationTag.Epoch })
		known := slices.ContainsFunc(c.before, func(b lrp.ActualLRP) bool { return b.CrashCount == a.CrashCount })
		if isNew && !known {
			return object("loses the crash count", "that of a record before")
		}
	}
	return nil
}

// evacuating judges how long EVACUATING records are to live.
func (l *ledger) evacuating(c *slotChange) error {
	for i := range c.after {
		r := &c.after[i]
		if r.Presence == lrp.Evacuating {
			l.slot(c.key.guid, c.key.index).evacuated[r.InstanceKey] = true
		}
		if r.Presence == lrp.Evacuating && r.ExpiresAt.Sub(l.now()) > l.world.evacuation+l.world.slack() {
			return checkEvacuate.violated("%s/%d: an EVACUATING record is to live until %s: %+v", c.key.guid, c.key.index, r.ExpiresAt, *r)
		}
	}
	return nil
}

// expired makes sure that convergence removes an EVACUATING record in time: a
// leader that works looks every 3 s here, and converges every 30 s at least.
func (l *ledger) expired() error {
	const patience = 40
	if l.closed {
		return nil
	}
	for key, s := range l.slots {
		over := false
		for i := range s.records {
			r := &s.records[i]
			over = over || r.Presence == lrp.Evacuating && !l.now().Before(r.ExpiresAt)
		}
		switch {
		case !over:
			s.overdue = 0
		case l.world.looked:
			s.overdue++
		}
		if s.overdue > patience {
			return checkEvacuate.violated("%s/%d: an EVACUATING record has expired, and a leader has looked %d times: %+v", key.guid, key.index, s.overdue, s.records)
		}
	}
	return nil
}

// drained judges the answer that an instance that is being evacuated is not to
// be kept. before are the records when the cell asked. Another instance that runs
// is a reason, unless it has still to prove healthy, or was told to stop because the
// one that is evacuated has proved so, and nobody but convergence wanted that. alone
// says that nobody has interrupted the cell since.
func (l *ledger) drained(key slotKey, instance lrp.InstanceKey, before []lrp.ActualLRP, alone bool) error {
	s := l.slot(key.guid, key.index)
	own := find(before, instance)
	if l.closed || own == nil || !own.Stopping.IsZero() || !l.desires(key) || !alone && l.justNow(s.undesired) || l.recreates(key.guid) {
		return nil
	}
	asked := l.lately(s.undesired) || l.lately(s.retired)
	unproved := l.proves(own, l.now().Add(-2*l.world.slack()))
	if slices.ContainsFunc(running(slices.Concat(before, s.records)), func(r *lrp.ActualLRP) bool {
		return r.InstanceKey != instance && (asked || (unproved || !s.stopping[r.InstanceKey]) && l.replaces(r, own, l.latest()))
	}) {
		return nil
	}
	if slices.ContainsFunc(slices.Concat(before, s.records), func(r lrp.ActualLRP) bool { return r.State == lrp.Crashed }) {
		return nil
	}
	return checkEvacuate.violated("%s/%d: cell %s is to delete the only instance that runs: %+v", key.guid, key.index, instance.CellID, before)
}

// routed follows the group events as a router does.
func (l *ledger) routed(c *slotChange) error {
	s := l.slot(c.key.guid, c.key.index)
	routes := s.routes
	of := func(r *lrp.ActualLRP) route { return route{r.InstanceKey, r.Presence == lrp.Evacuating} }
	for _, e := range c.events {
		switch e.Kind {
		case lrp.GroupCreated, lrp.GroupChanged:
			if e.Before != nil {
				delete(routes, of(e.Before))
			}
			if e.After.State == lrp.Running {
				routes[of(e.After)] = true
			}
		case lrp.GroupRemoved:
			delete(routes, of(e.Before))
		}
	}
	want := map[route]bool{}
	for _, r := range running(c.after) {
		ordinary := slices.ContainsFunc(c.after, func(o lrp.ActualLRP) bool {
			return o.Presence == lrp.Ordinary && o.State == lrp.Running && o.DefinitionID == r.DefinitionID
		})
		if r.Presence != lrp.Suspect || !ordinary {
			want[of(r)] = true
		}
	}
	for r := range routes {
		if !want[r] && slices.ContainsFunc(running(c.after), func(a *lrp.ActualLRP) bool { return of(a) == r }) {
			continue // a suspect whose route is withdrawn when it goes
		}
		if !want[r] {
			return checkRoutes.violated("%s/%d: after %s routers still know %+v; the slot is %+v", c.key.guid, c.key.index, c.command, r, c.after)
		}
	}
	for r := range want {
		if !routes[r] {
			return checkRoutes.violated("%s/%d: after %s routers do not know %+v; the slot is %+v", c.key.guid, c.key.index, c.command, r, c.after)
		}
	}
	return nil
}

// prompt makes sure that nothing waits for long for its start while all messages
// arrive and there is room.
func (l *ledger) prompt() error {
	const patience = 5 * pace
	if !l.world.calm || !l.world.healed.IsZero() {
		return nil
	}
	for instance, since := range l.needless {
		if l.now().Sub(since) > 2*pace && l.world.lives(instance) && l.world.present(instance.CellID) {
			return checkPrompt.violated("cell %s is not told to stop %s, which is needless since %s", instance.CellID, instance.InstanceGUID, since)
		}
	}
	for key, s := range l.slots {
		for i := range s.records {
			r := &s.records[i]
			if r.State == lrp.Unclaimed && r.PlacementError.IsZero() && l.desires(key) && l.now().Sub(r.Since) > patience {
				return checkPrompt.violated("%s/%d waits since %s: %+v", key.guid, key.index, r.Since, s.records)
			}
		}
	}
	return nil
}
