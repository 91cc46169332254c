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
	served := x.served()
	for i := range x.records {
		if r := &x.records[i]; x.d.overtaken(&r.ActualLRP, served) {
			x.stopOrRemove(i, nil)
		}
	}
}

// stopAgain repeats the orders to stop that are overdue.
func (x *draft) stopAgain() {
	for i := range x.records {
		if at, ever := x.policy.StopOverdueFrom(&x.records[i].ActualLRP); ever && !x.now.Before(at) {
			x.stop(i)
		}
	}
}

// served reports whether an instance of a definition that is not active runs.
func (x *draft) served() bool { return x.d != nil && x.find(x.d.serves) != none }

// failRollout carries out what the process wants if a new definition fails.
func (x *draft) failRollout() {
	if i := x.of(x.d.activeOr(""), Ordinary); i != none {
		x.judge(i)
	}
}

// advanceRollout takes the index one step towards the active definition (003
// §UpdateLRPDeployment): first it makes that definition's record; once that is
// RUNNING and has proved healthy, it ends all others. A record that does not run,
// of a definition that is neither active nor healthy, is given up at once.
func (x *draft) advanceRollout(c AdvanceRollout) {
	overtaken := c.DefinitionID != "" && !x.d.isActive(c.DefinitionID)
	if !x.desired() || overtaken || x.d.held(x.slot.Index) {
		return
	}
	active := x.of(x.d.ActiveDefinitionID, Ordinary)
	if active != none && x.records[active].stays() && x.proven(&x.records[active].ActualLRP) {
		x.becameHealthy(active)
		return
	}
	served := x.served()
	for i := range x.records {
		r := &x.records[i].ActualLRP
		if x.d.strays(r) || x.d.overtaken(r, served) {
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
