package lrp

import (
	"cmp"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
)

// The commands of a cell about its own instance, and the auctioneer's Fail
// (000 §Starting ActualLRPs, §Stopping ActualLRPs, §Crashes).

func (x *draft) claim(c Claim) error {
	if err := checkInstance(c.Instance); err != nil {
		return err
	}
	x.cause.Detail = cmp.Or(executor.CutReason(c.Reason), c.Instance.CellID)
	if i := x.mine(c.Instance, Suspect); i != none {
		return x.suspectSpeaks(i, ErrCannotBeClaimed)
	}
	if i := x.mine(c.Instance, Evacuating); i != none {
		return x.refuse(ErrCannotBeClaimed, i, "the instance is being evacuated")
	}
	i := x.mine(c.Instance, Ordinary)
	if i == none {
		i = x.target(c.DefinitionID, Unclaimed)
	}
	switch {
	case i == none:
		return x.refuse(ErrCannotBeClaimed, none, "there is no record to claim")
	case x.records[i].State == Unclaimed, x.records[i].InstanceKey == c.Instance:
		x.setState(i, Claimed).InstanceKey = c.Instance
		return nil
	}
	return x.refuse(ErrCannotBeClaimed, i, "it is not there to be claimed")
}

// target finds the ORDINARY record for a command that names no instance. It is
// the record of the named definition. If none is named, it is a record in the
// preferred state; the active definition's comes first, then the healthy one's,
// then any other.
func (x *draft) target(definitionID string, preferred State) int {
	if definitionID != "" {
		return x.of(definitionID, Ordinary)
	}
	best, bestRank := none, 0
	for i := range x.records {
		r := &x.records[i]
		if r.removed || r.Presence != Ordinary {
			continue
		}
		rank := 1
		switch {
		case x.d == nil:
		case r.DefinitionID == x.d.ActiveDefinitionID:
			rank = 3
		case r.DefinitionID == x.d.HealthyDefinitionID:
			rank = 2
		}
		if r.State == preferred {
			rank += 3
		}
		if rank > bestRank {
			best, bestRank = i, rank
		}
	}
	return best
}

func (x *draft) start(c Start) error {
	if err := checkInstance(c.Instance); err != nil {
		return err
	}
	if err := checkPlace(c.NetInfo, c.Zone); err != nil {
		return err
	}
	x.cause.Detail = c.Instance.CellID
	if i := x.mine(c.Instance, Suspect); i != none {
		return x.suspectSpeaks(i, ErrCannotBeStarted)
	}
	i, err := x.startTarget(c)
	if err != nil {
		return err
	}
	r := x.setState(i, Running)
	if r.RunningSince.IsZero() {
		r.RunningSince = x.now
	}
	if r.InstanceKey != c.Instance {
		r.Stopping = time.Time{} // that was the instance before
	}
	r.InstanceKey, r.NetInfo, r.Routable, r.Zone = c.Instance, c.NetInfo, !c.Unready, c.Zone
	for j := range x.records {
		if x.records[j].Presence == Ordinary || !x.supersedes(i, j) {
			continue
		}
		if x.records[j].Presence == Evacuating && x.records[j].InstanceKey != c.Instance {
			x.stop(j) // its cell waits for this
		}
		x.remove(j) // this instance now serves the index
	}
	x.becameHealthy(i)
	return nil
}

// startTarget finds or makes the record that Start changes.
func (x *draft) startTarget(c Start) (int, error) {
	i, evacuating := x.mine(c.Instance, Ordinary), x.mine(c.Instance, Evacuating)
	definition := c.DefinitionID
	switch {
	case i != none:
		definition = x.records[i].DefinitionID
	case evacuating != none:
		definition = x.records[evacuating].DefinitionID
		i = x.of(definition, Ordinary)
	default:
		if i = x.target(definition, Unclaimed); i != none {
			definition = x.records[i].DefinitionID
		} else if definition == "" {
			definition = x.d.activeOr(x.slot.ProcessGUID)
		}
	}
	if i != none && x.records[i].stays() && x.records[i].InstanceKey != c.Instance {
		return none, x.refuse(ErrCannotBeStarted, i, "another instance is running")
	}
	// Only a rollout starts a second instance where one runs, and the healthy
	// definition may start again beside one that has still to prove healthy. An
	// instance that runs may still report new addresses or that it is no longer
	// reachable.
	runs := i != none && x.records[i].State == Running && x.records[i].InstanceKey == c.Instance
	other := x.running(i, nil)
	if x.d != nil && definition == x.d.HealthyDefinitionID {
		other = x.running(i, x.proven)
	}
	if other != none && !runs && (i == none || x.d != nil && !x.d.isActive(definition)) {
		return none, x.refuse(ErrCannotBeStarted, other, "an instance of another definition is running")
	}
	if i != none && x.records[i].InstanceKey != c.Instance {
		x.stopIfHeld(i) // its cell was slower
	}
	switch {
	case evacuating != none && x.mine(c.Instance, Ordinary) == none:
		// The evacuation ends: the record comes back in place of its replacement.
		if i != none {
			x.remove(i)
		}
		x.records[evacuating].Presence, x.records[evacuating].ExpiresAt = Ordinary, time.Time{}
		return evacuating, nil
	case i == none:
		return x.createRunning(definition, c.Domain)
	}
	return i, nil
}

// createRunning makes the record of a running instance that has none: an
// emptied database must not stop containers.
func (x *draft) createRunning(definitionID, domain string) (int, error) {
	if x.d != nil {
		if _, known := x.d.Definitions[definitionID]; !known {
			return none, x.refuse(ErrCannotBeStarted, none, "the deployment has no definition "+definitionID)
		}
		domain = x.d.Domain
	}
	if err := checkKey(definitionID, domain); err != nil {
		return none, err
	}
	return x.add(definitionID, domain, Claimed), nil
}

// becameHealthy notes that a definition works (003 §UpdateLRPDeployment) and
// stops the instances that the new one replaces, if record i is proven.
func (x *draft) becameHealthy(i int) {
	definition := x.records[i].DefinitionID
	if !x.d.isActive(definition) || !x.records[i].stays() {
		return
	}
	proving := x.d.proving(&x.records[i].ActualLRP, x.now)
	if !proving {
		if x.d.unnoted() {
			x.change((*Deployment).note)
		}
		x.stopOthers(definition)
	}
	if proving || len(x.d.Definitions) > 1 {
		x.effects = append(x.effects, Effect{Kind: ContinueRollout, Key: x.records[i].Key})
	}
}

// change makes a new version of the deployment.
func (x *draft) change(f func(*Deployment)) {
	d := *x.d
	f(&d)
	d.ModificationTag = d.ModificationTag.Next()
	x.deployment = &d
}

// judge ends or pauses the rollout if record i shows that the active definition
// has failed.
func (x *draft) judge(i int) {
	r := &x.records[i].ActualLRP
	if !x.desired() || !x.d.isActive(r.DefinitionID) {
		return
	}
	if f := x.d.failure(r, x.policy.RolloutGiveUp, &executor.Alarm{Now: x.now}); f != nil {
		x.change(func(d *Deployment) { d.fail(*f, d.Rollout.OnFailure == PauseOnFailure) })
		x.effects = append(x.effects, Effect{Kind: ContinueRollout, Key: r.Key})
	}
}

// stopOthers stops the ORDINARY records of all other definitions.
func (x *draft) stopOthers(definitionID string) {
	for i := range x.records {
		if r := &x.records[i]; r.Presence == Ordinary && r.DefinitionID != definitionID {
			x.stopOrRemove(i, nil)
		}
	}
}

// stopOrRemove stops record i (000 §Stopping ActualLRPs). A record on no cell,
// or on a missing one, is removed. Otherwise the cell is asked to stop its
// instance and reports when that is done.
func (x *draft) stopOrRemove(i int, missingCells []string) {
	r := &x.records[i]
	switch {
	case r.removed:
	case r.InstanceKey.IsZero() || slices.Contains(missingCells, r.CellID):
		x.remove(i)
	default:
		x.stop(i)
	}
}

func (x *draft) removed(c Remove) error {
	if err := checkInstance(c.Instance); err != nil {
		return err
	}
	x.cause.Detail = endedOn(c.Instance, c.Overdue)
	switch i, left := x.leave(c.Instance); {
	case i != none:
		x.restart(i)
		return nil
	case left:
		return nil
	}
	return x.refuse(ErrCannotBeRemoved, x.target(c.DefinitionID, Running), "it is not this instance's record")
}

// endedOn is where an instance has ended, for the timeline.
func endedOn(i InstanceKey, overdue bool) string {
	if overdue {
		return i.CellID + " (its time to evacuate has passed)"
	}
	return i.CellID
}

// leave removes what an instance holds besides an ORDINARY record: its SUSPECT
// or EVACUATING record. If a desired index would be left without any ORDINARY
// record, the other record is not removed but becomes ORDINARY. leave returns
// the instance's ORDINARY record, or none, for the caller to decide about, and
// reports whether it removed anything.
func (x *draft) leave(key InstanceKey) (ordinary int, left bool) {
	ordinary = x.mine(key, Ordinary)
	for i := range x.records {
		r := &x.records[i]
		switch {
		case r.InstanceKey != key || r.Presence == Ordinary:
		case x.desired() && !x.anyOrdinary():
			r.Presence, r.ExpiresAt = Ordinary, time.Time{}
			ordinary = i
		default:
			x.remove(i)
			left = true
		}
	}
	return ordinary, left
}

func (x *draft) fail(c Fail) error {
	if err := c.Error.check(); err != nil {
		return err
	}
	i := x.target(c.DefinitionID, Unclaimed)
	if i == none {
		return x.refuse(ErrCannotBeFailed, none, "there is no record to fail")
	}
	r := &x.records[i]
	if r.State != Unclaimed {
		return x.refuse(ErrCannotBeFailed, i, "it is placed already")
	}
	r.PlacementError = c.Error.limited()
	x.cause.Detail = r.PlacementError.String()
	return nil
}
