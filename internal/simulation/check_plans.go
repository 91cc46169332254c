package simulation

import (
	"slices"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
)

// planned judges a plan that was made from everything: it stops surplus only
// where it may, and leaves out nothing that it has to do.
func (l *ledger) planned(actions []converge.LRPAction) error {
	if l.closed {
		return nil
	}
	plans := map[slotKey][]string{}
	for _, a := range actions {
		key := slotKey{a.ProcessGUID, a.Index}
		switch {
		case a.Start != nil:
			plans[key] = append(plans[key], "a start")
		case a.Command != nil:
			plans[key] = append(plans[key], a.Command.Name())
		}
		if _, advances := a.Command.(lrp.AdvanceRollout); advances {
			if err := l.advances(key); err != nil {
				return err
			}
		}
		if _, stops := a.Command.(lrp.StopExtra); !stops {
			continue
		}
		for _, r := range l.slot(key.guid, key.index).records {
			if r.Presence != lrp.Evacuating && !l.fresh(r.Domain) {
				return checkFresh.violated("%s/%d is to stop, and domain %s was fresh until %s: %+v", key.guid, key.index, r.Domain, l.domains[r.Domain], r)
			}
		}
	}
	for key, s := range l.slots {
		if r := l.overdueStop(s); r != nil && len(plans[key]) == 0 {
			return checkDuties.violated("%s/%d: an instance was told to stop and has not, and nothing is planned: %+v", key.guid, key.index, *r)
		}
		for _, d := range l.duties(key, s) {
			if !slices.Contains(plans[key], d.want) && !slices.Contains(plans[key], d.or) {
				return checkDuties.violated("%s/%d: %s, and %s is not planned, but %q: %+v", key.guid, key.index, d.why, d.want, plans[key], s.records)
			}
		}
	}
	return nil
}

// advances makes sure that a rollout begins with an index only when all lower ones
// are through, or were given up, but for as many as may be in flight.
func (l *ledger) advances(key slotKey) error {
	d := l.deployments[key.guid]
	active := func(index int) (r *lrp.ActualLRP, any bool) {
		s := l.slot(key.guid, index)
		for i := range s.records {
			if s.records[i].Presence != lrp.Ordinary {
				continue
			}
			if any = true; s.records[i].DefinitionID == d.ActiveDefinitionID {
				return &s.records[i], true
			}
		}
		return nil, any
	}
	if held(d, key.index) {
		return checkRollout.violated("%s/%d is to advance, and the rollout waits for somebody: %+v", key.guid, key.index, d.RolloutState)
	}
	if r, _ := active(key.index); r != nil && r.State == lrp.Running {
		return nil // it only stops the others here
	}
	most := max(1, orZero(d.Rollout).MaxInFlight)
	var before []int
	for index := range key.index {
		r, any := active(index)
		stalled := r != nil && (d.HealthyDefinitionID == d.ActiveDefinitionID || d.RolloutState.Proved) && l.late(d, r)
		if any && !stalled && (r == nil || !l.proved(r)) {
			before = append(before, index)
		}
	}
	if len(before) >= most {
		return checkRollout.violated("%s: index %d begins before indices %v run definition %s, and at most %d may be in flight: %+v", key.guid, key.index, before, d.ActiveDefinitionID, most, l.slot(key.guid, before[0]).records)
	}
	return nil
}

func (l *ledger) fresh(domain string) bool { return l.now().Before(l.domains[domain]) }

// overdueStop is an instance that was told to stop so long ago that its cell, which is
// present, may not have heard of it; or nil.
func (l *ledger) overdueStop(s *slot) *lrp.ActualLRP {
	for i := range s.records {
		r := &s.records[i]
		if r.Presence == lrp.Ordinary && !r.Stopping.IsZero() && l.now().Sub(r.Stopping) >= l.world.waits.staleUnclaimed && l.world.present(r.CellID) {
			return r
		}
	}
	return nil
}

// A duty is what a plan has to contain, it or another.
type duty struct{ want, or, why string }

// duties are those of convergence towards a slot.
func (l *ledger) duties(key slotKey, s *slot) (list []duty) {
	desired := l.desires(key)
	ordinary := false
	surplus := len(s.records) > 0
	for i := range s.records {
		r := &s.records[i]
		ordinary = ordinary || r.Presence == lrp.Ordinary
		surplus = surplus && (r.Presence == lrp.Evacuating || l.fresh(r.Domain))
		if r.Presence == lrp.Evacuating && !l.now().Before(r.ExpiresAt) {
			list = append(list, duty{"Prune", "", "an evacuation is over"})
		}
		if !desired {
			continue
		}
		switch {
		case r.Presence == lrp.Suspect && l.world.present(r.CellID):
			list = append(list, duty{"Recover", "RemoveSuspect", "the cell of a suspect is back"})
		case r.Presence != lrp.Ordinary:
		case r.State == lrp.Crashed:
			if wait, ever := l.restarts(key.guid).waits(r.CrashCount); ever && !l.now().Before(r.Since.Add(wait)) {
				list = append(list, duty{"Restart", "", "a restart is due"})
			}
		case r.State == lrp.Unclaimed && l.now().Sub(r.Since) >= l.world.waits.staleUnclaimed:
			list = append(list, duty{"a start", "", "a start is overdue"})
		}
	}
	switch {
	case desired && !ordinary:
		list = append(list, duty{"CreateMissing", "MarkSuspect", "nothing is on its way"})
	case !desired && surplus && slices.ContainsFunc(s.records, func(r lrp.ActualLRP) bool { return r.Presence != lrp.Evacuating }):
		list = append(list, duty{"StopExtra", "", "nothing is desired"})
	}
	return list
}

// ended makes sure that what a consumer has ended is stopped whether or not its
// domain is fresh, once every fault has ended for a while. An instance that was being
// evacuated is left to its cell. If that cell no longer evacuates, the instance says
// that it runs, and is surplus like any other. So is one that had been given up, most
// often because its cell was missing, and that says later that it runs.
func (l *ledger) ended() error {
	if l.closed {
		return nil
	}
	for key, s := range l.slots {
		for i := range s.records {
			r := &s.records[i]
			back := !s.returned[r.InstanceKey].Before(s.ended)
			if !l.desires(key) && !back && !s.evacuated[r.InstanceKey] && r.Presence != lrp.Evacuating && r.ModificationTag.Created().Add(l.world.slack()).Before(s.ended) {
				return checkConsumer.violated("%s/%d was ended at %s, and there still is %+v", key.guid, key.index, s.ended, *r)
			}
		}
	}
	return nil
}
