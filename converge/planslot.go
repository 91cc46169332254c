package converge

import (
	"slices"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// slotRules are the duties of convergence for one slot.
type slotRules struct {
	cells  Cells
	alarm  executor.Alarm  // what was asked about the time
	policy lrp.Policy      // of the slot's process
	fresh  map[string]bool // by domain
	// waits is true if a slot waits for its domain to be fresh.
	waits bool
}

// plan appends the actions for a slot that has records.
func (x *slotRules) plan(out []LRPAction, s lrp.Slot, p *process) []LRPAction {
	out = x.pruneEvacuating(out, s)
	desired := p.deployment.Desires(s.Index)
	if !desired && !p.unsure {
		missing, extra, fresh := x.extra(s)
		if extra && fresh {
			return append(out, command(s, lrp.StopExtra{MissingCells: missing}, InstanceExtra))
		}
		x.waits = x.waits || extra
	}
	out = x.checkCells(out, s, p.deployment)
	if !desired {
		return x.stopAgain(out, s)
	}
	ordinary := false
	for i := range s.Records {
		r := &s.Records[i]
		if r.Presence != lrp.Ordinary {
			continue
		}
		ordinary = true
		switch {
		case x.restarts(r):
			out = append(out, command(s, lrp.Restart{DefinitionID: r.DefinitionID}, RestartDue))
		case x.stale(r):
			key := r.Key
			out = append(out, LRPAction{ProcessGUID: s.ProcessGUID, Index: s.Index, Start: &key, Reason: StartOverdue})
		}
	}
	if !ordinary {
		out = append(out, command(s, lrp.CreateMissing{}, InstanceMissing))
	}
	if c := p.rollout.Visit(s); c != nil {
		return append(out, command(s, c, RolloutStep)) // which repeats stops
	}
	return x.stopAgain(out, s)
}

// stopAgain repeats orders to stop that may be lost. A missing cell cannot be told.
func (x *slotRules) stopAgain(out []LRPAction, s lrp.Slot) []LRPAction {
	overdue := false
	for i := range s.Records {
		r := &s.Records[i]
		at, ever := x.policy.StopOverdueFrom(r)
		overdue = ever && !x.cells.Missing(r.CellID) && x.alarm.Reached(at) || overdue
	}
	if overdue {
		out = append(out, command(s, lrp.StopAgain{}, StopOverdue))
	}
	return out
}

func (x *slotRules) restarts(r *lrp.ActualLRP) bool {
	if r.State != lrp.Crashed {
		return false
	}
	next := x.policy.Restart.Next(r.CrashCount, r.Since)
	return !next.Never && x.alarm.Reached(next.At)
}

func (x *slotRules) stale(r *lrp.ActualLRP) bool {
	at, ever := x.policy.StaleFrom(r)
	return ever && x.alarm.Reached(at)
}

func command(s lrp.Slot, c lrp.Command, why Reason) LRPAction {
	return LRPAction{ProcessGUID: s.ProcessGUID, Index: s.Index, Command: c, Reason: why}
}

// pruneEvacuating ends evacuations. Otherwise convergence ignores EVACUATING
// records (000 §The BBS's Role during Evacuation).
func (x *slotRules) pruneEvacuating(out []LRPAction, s lrp.Slot) []LRPAction {
	var missing []string
	over := false
	for i := range s.Records {
		r := &s.Records[i]
		if r.Presence != lrp.Evacuating {
			continue
		}
		if x.cells.Missing(r.CellID) {
			missing = append(missing, r.CellID)
		}
		over = over || x.alarm.Reached(r.ExpiresAt)
	}
	if over || missing != nil {
		out = append(out, command(s, lrp.Prune{MissingCells: missing}, EvacuationOver))
	}
	return out
}

// replaced reports whether a suspect's replacement runs on a cell that is not
// missing.
func (x *slotRules) replaced(s lrp.Slot, d *lrp.Deployment, suspect *lrp.ActualLRP) bool {
	return slices.ContainsFunc(s.Records, func(r lrp.ActualLRP) bool {
		return r.Presence == lrp.Ordinary && !x.cells.Missing(r.CellID) && d.Replaces(&r, suspect, &x.alarm)
	})
}

// extra reports whether a slot that is not desired has something to stop. It is
// stopped only while the domain is fresh (000 §Convergence 3); if the process
// has come back in another domain, all its domains must be fresh. missing are
// the cells that cannot be asked to stop it.
func (x *slotRules) extra(s lrp.Slot) (missing []string, extra, fresh bool) {
	fresh = true
	for i := range s.Records {
		r := &s.Records[i]
		if r.Presence == lrp.Evacuating {
			continue
		}
		extra, fresh = true, fresh && x.fresh[r.Domain]
		if r.CellID != "" && x.cells.Missing(r.CellID) {
			missing = append(missing, r.CellID)
		}
	}
	return missing, extra, fresh
}

// checkCells looks for instances whose cell went missing or came back (000
// §Suspect Cells). A cell whose loss was believed and is now doubted, because
// many others followed, counts as back: its replacements must not start.
func (x *slotRules) checkCells(out []LRPAction, s lrp.Slot, d *lrp.Deployment) []LRPAction {
	replaced := false
	for i := range s.Records {
		r := &s.Records[i]
		if r.Presence == lrp.Ordinary && r.CellID != "" && x.cells.Missing(r.CellID) {
			out = append(out, command(s, lrp.MarkSuspect{CellID: r.CellID}, CellMissing))
		}
		replaced = replaced || r.Presence == lrp.Suspect && x.replaced(s, d, r)
	}
	if replaced {
		out = append(out, command(s, lrp.RemoveSuspect{}, SuspectReplaced))
	}
	for i := range s.Records {
		r := &s.Records[i]
		switch {
		case r.Presence != lrp.Suspect || x.replaced(s, d, r):
		case x.cells.Present(r.CellID):
			out = append(out, command(s, lrp.Recover{CellID: r.CellID}, CellReturned))
		case x.cells.doubts(r.CellID):
			out = append(out, command(s, lrp.Recover{CellID: r.CellID}, LossDoubted))
		}
	}
	return out
}
