package lrp

import "slices"

// The commands of convergence (000 §Convergence, §Suspect Cells) and of the
// consumer. Convergence plans them from a snapshot, so each checks whether its
// reason still holds, and does nothing if it does not.

func (x *draft) createMissing() {
	if !x.desired() || x.anyOrdinary() {
		return
	}
	count, reason := 0, ""
	if len(x.records) > 0 { // what it replaces
		count, reason = x.records[0].CrashCount, x.records[0].CrashReason
	}
	x.create(x.d.restartDefinition(""), x.d.Domain, count, reason)
}

func (x *draft) stopExtra(c StopExtra) {
	if x.desired() {
		return
	}
	for i := range x.records {
		if x.records[i].Presence != Evacuating {
			x.stopOrRemove(i, c.MissingCells)
		}
	}
}

func (x *draft) restartCrashed(c Restart) {
	i := x.of(c.DefinitionID, Ordinary)
	if i == none || x.records[i].State != Crashed || !x.desired() {
		return
	}
	if r := &x.records[i]; x.policy.Restart.Next(r.CrashCount, r.Since).Due(x.now) {
		x.restart(i)
	}
}

func (x *draft) markSuspect(c MarkSuspect) {
	x.cause.Detail = c.CellID
	for i := range x.slot.Records {
		if r := &x.records[i]; r.Presence == Ordinary && r.CellID == c.CellID && c.CellID != "" {
			x.suspect(i)
		}
	}
}

// suspect marks record i. If its definition already has a SUSPECT record, only
// one of the two stays: the older one if i was only being started (i then
// restarts), otherwise i. The index is never left without a pending
// replacement.
func (x *draft) suspect(i int) {
	older := x.of(x.records[i].DefinitionID, Suspect)
	if older != none && x.records[i].State == Claimed {
		x.restart(i)
		return
	}
	if older != none {
		x.remove(older)
	}
	x.records[i].Presence = Suspect
	if !x.desired() {
		return
	}
	r := x.records[i].ActualLRP
	definition := x.d.restartDefinition(r.DefinitionID)
	if x.of(definition, Ordinary) == none {
		x.create(definition, r.Domain, r.CrashCount, r.CrashReason)
	}
}

func (x *draft) recoverSuspects(c Recover) {
	x.cause.Detail = c.CellID
	replaced, recovered := x.running(none) != none, false
	for i := range x.slot.Records {
		r := &x.records[i]
		if r.Presence != Suspect || r.CellID != c.CellID {
			continue
		}
		if replaced {
			x.remove(i)
			continue
		}
		if replacement := x.of(r.DefinitionID, Ordinary); replacement != none {
			x.stopIfHeld(replacement)
			x.remove(replacement)
		}
		x.records[i].Presence = Ordinary
		recovered = true
	}
	if !recovered {
		return
	}
	// The replacement may be of another definition than the instance.
	for i := range x.records {
		if r := &x.records[i]; !r.removed && x.d.overtaken(&r.ActualLRP, x.running(i) != none) {
			x.stopIfHeld(i)
			x.remove(i)
		}
	}
}

// stopIfHeld tells a cell that the instance that it is starting is not needed
// any more.
func (x *draft) stopIfHeld(i int) {
	if !x.records[i].InstanceKey.IsZero() {
		x.stop(i)
	}
}

func (x *draft) removeReplacedSuspects() {
	if x.running(none) == none {
		return
	}
	for i := range x.records {
		if x.records[i].Presence == Suspect {
			x.remove(i)
		}
	}
}

func (x *draft) prune(c Prune) {
	for i := range x.records {
		r := &x.records[i]
		if r.Presence == Evacuating && (!x.now.Before(r.ExpiresAt) || slices.Contains(c.MissingCells, r.CellID)) {
			x.remove(i)
		}
	}
}

// stopOvertaken keeps the instance that runs at the index, if it is not of the
// active definition. It gives up those that were to replace it before another
// definition became active (003 §New LRP definition during existing rolling
// deploy).
func (x *draft) stopOvertaken() {
	for i := range x.records {
		if r := &x.records[i]; !r.removed && x.d.overtaken(&r.ActualLRP, x.running(i) != none) {
			x.stopOrRemove(i, nil)
		}
	}
}

// advanceRollout takes the index one step towards the active definition (003
// §UpdateLRPDeployment): first it makes that definition's record; once that is
// RUNNING, it ends all others. A record that does not run, of a definition that
// is neither active nor healthy, is given up at once.
func (x *draft) advanceRollout() {
	if !x.desired() {
		return
	}
	active := x.of(x.d.ActiveDefinitionID, Ordinary)
	if active != none && x.records[active].State == Running {
		x.becameHealthy(active)
		return
	}
	for i := range x.records {
		r := &x.records[i].ActualLRP
		if x.d.strays(r) || x.d.overtaken(r, x.running(i) != none) {
			x.stopOrRemove(i, nil)
		}
	}
	if active == none {
		x.create(x.d.ActiveDefinitionID, x.d.Domain, 0, "")
	}
}

// retire stops the instance at the index; the desired state stays, so the index
// starts again. A record on no cell is replaced by a new one, with a crash
// count of 0.
func (x *draft) retire(c Retire) error {
	definition := c.DefinitionID
	if definition == "" {
		if i := x.target("", 0); i != none {
			definition = x.records[i].DefinitionID
		} else if i := x.find(func(*ActualLRP) bool { return true }); i != none {
			definition = x.records[i].DefinitionID
		}
	}
	found := false
	for i := range x.slot.Records {
		r := &x.records[i]
		if r.DefinitionID != definition || r.Presence == Evacuating {
			continue
		}
		found = true
		gone := r.InstanceKey.IsZero() || (c.MissingCell != "" && r.CellID == c.MissingCell)
		switch {
		case !gone:
			x.stop(i)
		case r.Presence == Suspect:
			x.remove(i)
		default:
			r.CrashCount, r.CrashReason = 0, ""
			x.restart(i)
		}
	}
	if !found {
		return x.refuse(ErrCannotBeRetired, none, "there is no record to retire")
	}
	return nil
}
