package lrp

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// The commands of an evacuating cell (000 §Harmonizing During Evacuation).
// EvacuateRunning carries out the evacuation table; the others are for
// containers that are not RUNNING, which are always deleted.

// evacuateClaimed handles an instance that is given up before it runs. If its
// cell has a reservation but not the claim yet, the record waits for a start
// that nobody is about to make, so the start is requested again.
func (x *draft) evacuateClaimed(c EvacuateClaimed) error {
	if err := checkInstance(c.Instance); err != nil {
		return err
	}
	if x.evacuateEnded(c.Instance); len(x.effects) > 0 || !x.desired() {
		return nil
	}
	if i := x.target(c.DefinitionID, Unclaimed); i != none && x.records[i].State == Unclaimed {
		x.requestStart(i)
	}
	return nil
}

func (x *draft) evacuateStopped(c EvacuateStopped) error {
	if err := checkInstance(c.Instance); err != nil {
		return err
	}
	x.evacuateEnded(c.Instance)
	return nil
}

func (x *draft) evacuateEnded(me InstanceKey) {
	x.cause.Detail = me.CellID
	if i, _ := x.leave(me); i != none {
		x.restart(i)
	}
}

func (x *draft) evacuateCrashed(c EvacuateCrashed) error {
	if err := checkInstance(c.Instance); err != nil {
		return err
	}
	reason := executor.CutReason(c.Reason)
	x.cause.Detail = reason
	switch i, left := x.leave(c.Instance); {
	case i != none:
		x.crashOrRestart(i, reason)
	case !left:
		x.crashUnrecorded(c.DefinitionID, reason)
	}
	return nil
}

func (x *draft) removeEvacuating(c RemoveEvacuating) error {
	if err := checkInstance(c.Instance); err != nil {
		return err
	}
	x.cause.Detail = endedOn(c.Instance, c.Overdue)
	if i := x.mine(c.Instance, Evacuating); i != none {
		x.remove(i)
	}
	return nil
}

func (x *draft) evacuateRunning(c EvacuateRunning) error {
	if err := checkInstance(c.Instance); err != nil {
		return err
	}
	if err := checkPlace(c.NetInfo, c.Zone); err != nil {
		return err
	}
	x.cause.Detail = c.Instance.CellID
	if i := x.mine(c.Instance, Ordinary); i != none && !x.records[i].Stopping.IsZero() {
		x.keep = true // its cell reports when it has stopped
		return nil
	}
	if x.d != nil && x.d.UpdateStrategy == Recreate {
		x.evacuateByRecreating(c)
		return nil
	}
	if i := x.outserved(c); i != none {
		x.giveUp(i)
		return nil
	}
	if i := x.mine(c.Instance, Suspect); i != none {
		// The cell is both missing and evacuating: its instance stays routable,
		// unless its replacement runs.
		if x.find(func(r *ActualLRP) bool {
			return r.Presence == Ordinary && r.State == Running && !x.d.yields(r, &x.records[i].ActualLRP, x.now)
		}) != none {
			x.remove(i)
			return nil
		}
		if x.keep = true; x.records[i].Stopping.IsZero() {
			x.evacuateOwn(i, c)
		}
		return nil
	}
	o, e, ordinary, evacuating := evacuationSituation(x.slot, x.d, c.Instance, c.DefinitionID, x.now)
	if o == OrdinaryNone && e == EvacuatingAlpha && x.desired() {
		// The index was scaled down and is desired again.
		x.createReplacement(*evacuating)
		o = OrdinaryUnclaimed
	}
	if o == OrdinaryCrashed && e == EvacuatingAlpha && x.desired() && x.d.limited() {
		// The replacement has crashed before it was ready, and starts again.
		o = OrdinaryUnclaimed
	}
	rule := EvacuationRule(o, e)
	x.keep = rule.KeepContainer
	if rule.RemoveEvacuating {
		x.remove(x.mine(c.Instance, Evacuating))
	}
	mine := x.mine(c.Instance, Ordinary)
	switch {
	case rule.PutEvacuating && mine != none:
		x.evacuateOwn(mine, c)
	case rule.PutEvacuating:
		x.createEvacuating(ordinary, c)
	case rule.UnclaimOrdinary:
		x.restart(mine)
	}
	if e == EvacuatingAlpha && x.keep {
		x.renewEvacuating(x.mine(c.Instance, Evacuating), c)
	}
	return nil
}

// outserved finds the record of a caller that must not be evacuated, or none. The
// process has a budget for disruptions, the caller is not ready, and another cell
// evacuates a ready instance of the same definition. That one keeps the EVACUATING
// record, because a definition has only one at an index.
func (x *draft) outserved(c EvacuateRunning) int {
	own := x.find(func(r *ActualLRP) bool { return r.InstanceKey == c.Instance && r.Presence != Evacuating })
	if own == none || !c.Unready || !x.d.limited() {
		return none
	}
	if i := x.of(x.records[own].DefinitionID, Evacuating); i == none || !x.records[i].Routable {
		return none
	}
	return own
}

// giveUp ends the record of an instance that does not serve its index.
func (x *draft) giveUp(i int) {
	if x.records[i].Presence == Ordinary {
		x.restart(i)
		return
	}
	x.remove(i)
}

// expiry is when the caller's EVACUATING record expires unless it is renewed,
// and bound the longest time that the record may live.
func (x *draft) expiry(c EvacuateRunning) (at time.Time, bound time.Duration) {
	bound = orDefault(x.policy.EvacuationTimeout, defaultEvacuationTimeout)
	if 0 < c.TTL && c.TTL < bound {
		return x.now.Add(c.TTL), bound
	}
	return x.now.Add(bound), bound
}

// renewEvacuating extends the life of record i if its cell evacuates for longer
// than the policy's bound and is still there. To save writes, it waits until
// half of the time has passed, and ignores gains of less than a second.
func (x *draft) renewEvacuating(i int, c EvacuateRunning) {
	at, bound := x.expiry(c)
	r := &x.records[i]
	if c.TTL > 0 && r.ExpiresAt.Sub(x.now) <= bound/2 && at.Sub(r.ExpiresAt) >= time.Second {
		r.ExpiresAt = at
	}
}

// evacuateOwn turns the cell's ORDINARY or SUSPECT record into the EVACUATING
// one. A desired index also has an ORDINARY record; if there is none, it is
// made.
func (x *draft) evacuateOwn(i int, c EvacuateRunning) {
	old := x.records[i].ActualLRP
	x.putEvacuating(i, c)
	x.dropEvacuating(i)
	x.createReplacement(old)
}

// putEvacuating makes record i the EVACUATING record of the caller, with the
// caller's data.
func (x *draft) putEvacuating(i int, c EvacuateRunning) {
	r := x.setState(i, Running)
	if r.RunningSince.IsZero() {
		r.RunningSince = x.now
	}
	r.Presence = Evacuating
	r.ExpiresAt, _ = x.expiry(c)
	r.InstanceKey, r.NetInfo, r.Routable, r.Zone = c.Instance, c.NetInfo, !c.Unready, c.Zone
}

// createEvacuating makes an EVACUATING record for a caller that has none. The
// crash count comes from the ordinary record beside it, and so does the
// definition, unless the caller names one that the deployment knows.
func (x *draft) createEvacuating(ordinary *ActualLRP, c EvacuateRunning) {
	definition := ordinary.DefinitionID
	if x.d != nil {
		if _, known := x.d.Definitions[c.DefinitionID]; known {
			definition = c.DefinitionID
		}
	}
	i := x.add(definition, ordinary.Domain, Claimed)
	x.records[i].CrashCount, x.records[i].CrashReason = ordinary.CrashCount, ordinary.CrashReason
	x.putEvacuating(i, c)
}

// dropEvacuating removes the EVACUATING records that the instance of record i, which
// is evacuated now, has replaced.
func (x *draft) dropEvacuating(i int) {
	r := x.records[i].ActualLRP
	r.Presence = Ordinary // as which it replaced them
	for j := range x.records {
		o := &x.records[j]
		if j != i && o.Presence == Evacuating && (o.DefinitionID == r.DefinitionID || !x.d.yields(&r, &o.ActualLRP, x.now)) {
			x.remove(j)
		}
	}
}

// evacuateByRecreating stops an instance before its replacement starts, if the
// budget has room for it; without a budget, only while every desired index is
// RUNNING. An instance that the records do not have as RUNNING serves nobody yet,
// and needs no room. Writing the deployment makes two cells that ask at once conflict.
func (x *draft) evacuateByRecreating(c EvacuateRunning) {
	i, _ := x.leave(c.Instance)
	switch {
	case i == none:
	case x.desired() && x.records[i].State == Running && !x.d.MayTakeDown(c.RunningInstances):
		x.keep = true
	default:
		x.restart(i)
		x.change(func(*Deployment) {})
	}
}
