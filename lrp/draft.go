package lrp

import (
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
)

// A draft is a slot while a command changes it. Rules change its records in
// place. finish compares it with the original slot and derives writes, tags and
// events from the difference, so no rule has to.
type draft struct {
	slot   Slot
	d      *Deployment
	now    time.Time
	policy Policy
	cause  Cause

	records []descendant
	effects []Effect
	crash   crash
	keep    bool
	// deployment is the deployment's new version, or nil.
	deployment *Deployment
}

// A descendant is a record of the draft and the record it descends from. A
// record keeps its tag's epoch through changes of state, presence and holder.
type descendant struct {
	ActualLRP
	from    int // index into the slot's records, or none
	removed bool
}

// A crash is the content of a crashed event.
type crash struct {
	happened bool
	before   *ActualLRP // nil if the record was lost
	after    int        // index into records, or none if it was removed
}

const none = -1

func newDraft(s Slot, d *Deployment, c Command, now time.Time, p Policy) draft {
	x := draft{slot: s, d: d, now: now, policy: p.For(d), cause: Cause{Command: c.Name()}}
	x.records = make([]descendant, len(s.Records), max(1, len(s.Records)))
	for i := range s.Records {
		x.records[i] = descendant{ActualLRP: s.Records[i], from: i}
	}
	return x
}

// find returns the first record that ok accepts, or none.
func (x *draft) find(ok func(r *ActualLRP) bool) int {
	for i := range x.records {
		if r := &x.records[i]; !r.removed && ok(&r.ActualLRP) {
			return i
		}
	}
	return none
}

// mine finds the record of this very instance with that presence, or none.
func (x *draft) mine(key InstanceKey, presence Presence) int {
	for i := range x.records {
		r := &x.records[i]
		if !r.removed && r.Presence == presence && r.InstanceKey == key {
			return i
		}
	}
	return none
}

// of finds the definition's record with that presence, or none.
func (x *draft) of(definitionID string, presence Presence) int {
	for i := range x.records {
		r := &x.records[i]
		if !r.removed && r.Presence == presence && r.DefinitionID == definitionID {
			return i
		}
	}
	return none
}

// running finds an ORDINARY RUNNING record other than except that is not to stop
// and that ok accepts, or none. A nil ok accepts any.
func (x *draft) running(except int, ok func(r *ActualLRP) bool) int {
	for i := range x.records {
		r := &x.records[i]
		if !r.removed && i != except && r.Presence == Ordinary && r.stays() && (ok == nil || ok(&r.ActualLRP)) {
			return i
		}
	}
	return none
}

// proven reports whether r has nothing to prove.
func (x *draft) proven(r *ActualLRP) bool { return !x.d.proving(r, x.now) }

// supersedes reports whether record i replaces record j. An instance that a
// rollout has told to stop replaces no evacuated one.
func (x *draft) supersedes(i, j int) bool {
	if x.records[j].Presence == Evacuating {
		return !x.d.yields(&x.records[i].ActualLRP, &x.records[j].ActualLRP, x.now)
	}
	return x.d.Replaces(&x.records[i].ActualLRP, &x.records[j].ActualLRP, &executor.Alarm{Now: x.now})
}

// replacement finds the ORDINARY record of an instance that runs and ends the SUSPECT
// record i, or none.
func (x *draft) replacement(i int) int {
	for j := range x.records {
		if r := &x.records[j]; !r.removed && r.Presence == Ordinary && x.supersedes(j, i) {
			return j
		}
	}
	return none
}

// anyOrdinary reports whether any definition has an ORDINARY record here.
func (x *draft) anyOrdinary() bool {
	return x.find(func(r *ActualLRP) bool { return r.Presence == Ordinary }) != none
}

// desired reports whether something should run at this index.
func (x *draft) desired() bool { return x.d.Desires(x.slot.Index) }

func (x *draft) remove(i int) { x.records[i].removed = true }

// setState changes the state and clears the fields that only the old state may
// have.
func (x *draft) setState(i int, state State) *ActualLRP {
	r := &x.records[i].ActualLRP
	if r.State != state {
		r.Since = x.now
	}
	r.State = state
	r.PlacementError = PlacementError{}
	if state != Running {
		r.NetInfo, r.Routable, r.Zone = NetInfo{}, false, ""
		r.RunningSince = time.Time{}
	}
	if state == Unclaimed || state == Crashed {
		r.InstanceKey, r.Stopping = InstanceKey{}, time.Time{}
	}
	return r
}

// add makes a new ORDINARY record that descends from none and returns its
// index.
func (x *draft) add(definitionID, domain string, state State) int {
	x.records = append(x.records, descendant{from: none, ActualLRP: ActualLRP{
		Key: Key{
			ProcessGUID: x.slot.ProcessGUID, DefinitionID: definitionID,
			Index: x.slot.Index, Domain: domain,
		},
		State: state, Since: x.now,
	}})
	return len(x.records) - 1
}

// create adds an UNCLAIMED record and requests its start.
func (x *draft) create(definitionID, domain string, crashCount int, crashReason string) {
	i := x.add(definitionID, domain, Unclaimed)
	x.records[i].CrashCount, x.records[i].CrashReason = crashCount, crashReason
	x.requestStart(i)
}

// createReplacement makes the ORDINARY record of the instance that is to replace
// old, unless there is one or the index is not desired.
func (x *draft) createReplacement(old ActualLRP) {
	if !x.desired() {
		return
	}
	definition := x.d.restartDefinition(old.DefinitionID)
	if x.of(definition, Ordinary) == none {
		x.create(definition, old.Domain, old.CrashCount, old.CrashReason)
	}
}

func (x *draft) requestStart(i int) {
	x.effects = append(x.effects, Effect{Kind: RequestStart, Key: x.records[i].Key})
}

// stop tells the cell to stop the instance of record i, and notes that in the
// record.
func (x *draft) stop(i int) {
	r := &x.records[i]
	if r.Stopping.IsZero() {
		r.Stopping = x.now
	}
	x.effects = append(x.effects, Effect{Kind: StopInstance, Key: r.Key, Instance: r.InstanceKey})
}

// restart puts record i back to UNCLAIMED and requests its start. The
// definition is the record's own if that is the active one (then it is part of
// a rollout), otherwise the healthy one (003 §UpdateLRPDeployment). The record
// is removed instead if the index is not desired any more, if that definition
// has a record here already, or if another instance runs here, has nothing to
// prove, and the record is not part of a rollout. restart returns the index of the resulting record, or
// none.
func (x *draft) restart(i int) int {
	old := x.records[i].ActualLRP
	if !x.desired() || !x.d.isActive(old.DefinitionID) && x.running(i, x.proven) != none {
		x.remove(i)
		return none
	}
	definition := x.d.restartDefinition(old.DefinitionID)
	if definition == old.DefinitionID {
		x.setState(i, Unclaimed)
		x.records[i].Since = x.now
		x.requestStart(i)
		return i
	}
	x.remove(i)
	if x.of(definition, Ordinary) != none {
		return none
	}
	x.create(definition, old.Domain, old.CrashCount, old.CrashReason)
	return len(x.records) - 1
}

// finish turns the draft into a decision.
func (x *draft) finish() Decision {
	x.assignTags()
	if x.deployment != nil {
		x.policy.record(x.d, x.deployment, x.cause.Command, "", x.now)
	}
	out := Decision{Effects: x.effects, KeepContainer: x.keep, Deployment: x.deployment}
	out.Writes = x.writes()
	out.Events = x.events()
	return out
}

// assignTags gives every changed record its next tag and every new record an
// epoch of its own.
func (x *draft) assignTags() {
	epoch := x.now.UnixNano()
	for i := range x.slot.Records {
		epoch = max(epoch, x.slot.Records[i].ModificationTag.Epoch+1)
	}
	for i := range x.records {
		r := &x.records[i]
		switch {
		case r.removed:
		case r.from == none:
			r.ModificationTag = ModificationTag{Epoch: epoch}
			epoch++
		case !r.ActualLRP.Equal(&x.slot.Records[r.from]):
			r.ModificationTag = x.slot.Records[r.from].ModificationTag.Next()
		}
	}
}

// writes compares the records key by key.
func (x *draft) writes() []Write {
	var writes []Write
	for i := range x.slot.Records {
		before := &x.slot.Records[i]
		after := x.at(before.DefinitionID, before.Presence)
		if after == nil || after.ModificationTag != before.ModificationTag {
			writes = append(writes, Write{Before: before, After: after})
		}
	}
	for i := range x.records {
		r := &x.records[i]
		if !r.removed && !x.slot.has(r.DefinitionID, r.Presence) {
			writes = append(writes, Write{After: &r.ActualLRP})
		}
	}
	return writes
}

// at finds the draft's record with that definition and presence, or nil.
func (x *draft) at(definitionID string, presence Presence) *ActualLRP {
	if i := x.of(definitionID, presence); i != none {
		return &x.records[i].ActualLRP
	}
	return nil
}

func (s Slot) has(definitionID string, presence Presence) bool {
	return slices.ContainsFunc(s.Records, func(r ActualLRP) bool {
		return r.DefinitionID == definitionID && r.Presence == presence
	})
}

// Equal reports whether two records have the same content, tags included.
func (r *ActualLRP) Equal(other *ActualLRP) bool {
	return r.ModificationTag == other.ModificationTag && r.sameContent(other) && r.Presence == other.Presence &&
		r.ExpiresAt.Equal(other.ExpiresAt) && r.Stopping.Equal(other.Stopping)
}

// sameContent ignores presence, expiry, the mark of a stop and the tag, which no
// router uses.
func (r *ActualLRP) sameContent(other *ActualLRP) bool {
	return r.State == other.State && r.Key == other.Key && r.InstanceKey == other.InstanceKey &&
		r.CrashCount == other.CrashCount && r.CrashReason == other.CrashReason &&
		r.PlacementError == other.PlacementError && r.Routable == other.Routable && r.Zone == other.Zone &&
		r.Since.Equal(other.Since) && r.RunningSince.Equal(other.RunningSince) &&
		r.NetInfo.Equal(&other.NetInfo)
}

// Equal reports whether two instances are reached in the same way.
func (n *NetInfo) Equal(other *NetInfo) bool {
	return n.Address == other.Address && n.InstanceAddress == other.InstanceAddress && n.PreferredAddress == other.PreferredAddress &&
		slices.Equal(n.Ports, other.Ports)
}
