package lrp

// What becomes of the instances of a missing cell (000 §Suspect Cells):
// MarkSuspect makes a replacement, Recover settles which of the two stays when
// the cell returns, and RemoveSuspect ends suspects whose replacement runs.
//
// The rest of a replacement's life is in other files. createReplacement
// (draft.go) makes its record and requests its start; Deployment.Replaces
// (disruption.go) is the rule for when it counts. A replacement that starts ends
// its suspect in the same commit (start in step_cell.go).

func (x *draft) markSuspect(c MarkSuspect) {
	x.cause.Detail = c.CellID
	for i := range x.slot.Records {
		if r := &x.records[i]; r.Presence == Ordinary && r.CellID == c.CellID && c.CellID != "" {
			x.suspect(i)
		}
	}
}

// suspect marks record i. If its definition already has a SUSPECT record, only
// one of the two stays: the older one if i was only being started, or if the older
// one runs and only i was told to stop (i then restarts), otherwise i. The index is
// never left without a pending replacement.
func (x *draft) suspect(i int) {
	r := &x.records[i]
	if older := x.of(r.DefinitionID, Suspect); older != none {
		o := &x.records[older]
		if r.State == Claimed || !r.Stopping.IsZero() && o.State == Running && o.Stopping.IsZero() {
			x.restart(i)
			return
		}
		x.remove(older)
	}
	x.records[i].Presence = Suspect
	x.createReplacement(x.records[i].ActualLRP)
}

func (x *draft) recoverSuspects(c Recover) {
	x.cause.Detail = c.CellID
	recovered := false
	replaced := make([]bool, len(x.slot.Records)) // before any of them is back
	for i := range replaced {
		replaced[i] = x.replacement(i) != none || !x.records[i].Stopping.IsZero()
	}
	for i := range x.slot.Records {
		r := &x.records[i]
		if r.Presence != Suspect || r.CellID != c.CellID {
			continue
		}
		if replaced[i] {
			x.remove(i)
			continue
		}
		if starting := x.of(r.DefinitionID, Ordinary); starting != none {
			x.stopIfHeld(starting)
			x.remove(starting)
		}
		x.records[i].Presence = Ordinary
		recovered = true
	}
	if !recovered {
		return
	}
	// The replacement may be of another definition than the instance.
	for i := range x.records {
		if r := &x.records[i]; !r.removed && x.d.overtaken(&r.ActualLRP, x.running(i, x.proven) != none) {
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
	for i := range x.records {
		if x.records[i].Presence == Suspect && x.replacement(i) != none {
			x.remove(i)
		}
	}
}

// suspectSpeaks answers a missing cell that still reports its instance as
// alive, as record i says. The report is ignored until a replacement is RUNNING, and
// refused from then on (000 §The missing cell-1 making API calls to BBS).
func (x *draft) suspectSpeaks(i int, refusal error) error {
	if r := x.replacement(i); r != none {
		return x.refuse(refusal, r, "another instance has replaced the one of the missing cell")
	}
	return nil
}
