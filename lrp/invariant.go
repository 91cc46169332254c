package lrp

import (
	"cmp"
	"slices"
)

// Validate checks what must hold of every record; the error is an
// *InvariantError. It is the one list of invariants: Step refuses to decide
// about a record that breaks one, and a store quarantines it.
func (r *ActualLRP) Validate() error {
	if rule := r.broken(); rule != "" {
		return &InvariantError{Key: r.Key, Presence: r.Presence, Rule: rule}
	}
	return nil
}

func (r *ActualLRP) broken() string {
	held := r.State == Claimed || r.State == Running
	switch {
	case r.ProcessGUID == "":
		return "a record has a process guid"
	case r.DefinitionID == "":
		return "a record has a definition id"
	case r.Domain == "":
		return "a record has a domain"
	case r.Index < 0:
		return "an index is at least 0"
	case r.State < Unclaimed || r.State > Crashed:
		return "a state is UNCLAIMED, CLAIMED, RUNNING or CRASHED"
	case r.Presence > Suspect:
		return "a presence is ORDINARY, EVACUATING or SUSPECT"
	case held && (r.InstanceGUID == "" || r.CellID == ""):
		return "a CLAIMED or RUNNING record has an instance guid and a cell"
	case !held && !r.InstanceKey.IsZero():
		return "an UNCLAIMED or CRASHED record is on no cell"
	case r.Presence == Evacuating && r.State != Running:
		return "an EVACUATING record is RUNNING"
	case r.Presence == Suspect && !held:
		return "a SUSPECT record is CLAIMED or RUNNING"
	case r.State != Running && (r.NetInfo.Address != "" || r.NetInfo.InstanceAddress != "" || len(r.NetInfo.Ports) > 0):
		return "only a RUNNING record has addresses"
	case r.State != Running && (r.Routable || r.Zone != ""):
		return "only a RUNNING record is routable and in a zone"
	case r.State == Running && r.RunningSince.IsZero(), r.State != Running && !r.RunningSince.IsZero():
		return "a RUNNING record, and no other, has been running since some time"
	case r.Presence == Evacuating && r.ExpiresAt.IsZero(), r.Presence != Evacuating && !r.ExpiresAt.IsZero():
		return "an EVACUATING record, and no other, expires"
	case r.State != Unclaimed && !r.PlacementError.IsZero():
		return "only an UNCLAIMED record has a placement error"
	case r.CrashCount < 0:
		return "a crash count is at least 0"
	case r.Since.IsZero():
		return "a record is in its state since some time"
	case r.ModificationTag.IsZero():
		return "a record has a modification tag"
	}
	return ""
}

// Validate checks every record and that they belong together: all at this
// index, in order, and no two with the same definition and presence or the
// same epoch.
func (s Slot) Validate() error {
	for i := range s.Records {
		r := &s.Records[i]
		if err := r.Validate(); err != nil {
			return err
		}
		rule := ""
		if r.ProcessGUID != s.ProcessGUID || r.Index != s.Index {
			rule = "a record is in the slot of its process and index"
		}
		for j := range i {
			other := &s.Records[j]
			if CompareRecords(other, r) >= 0 {
				rule = "a slot has its records in order, one per definition and presence"
			}
			if other.ModificationTag.Epoch == r.ModificationTag.Epoch {
				rule = "two records of a slot have different epochs"
			}
		}
		if rule != "" {
			return &InvariantError{Key: r.Key, Presence: r.Presence, Rule: rule}
		}
	}
	return nil
}

// CompareRecords orders records as slots and lists have them: by process guid,
// index, definition id and presence. It returns 0 for two versions of one
// record.
func CompareRecords(a, b *ActualLRP) int {
	if c := cmp.Compare(a.ProcessGUID, b.ProcessGUID); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Index, b.Index); c != 0 {
		return c
	}
	if c := cmp.Compare(a.DefinitionID, b.DefinitionID); c != 0 {
		return c
	}
	return cmp.Compare(a.Presence, b.Presence)
}

// SortRecords puts records in the order of CompareRecords.
func SortRecords(records []ActualLRP) {
	slices.SortFunc(records, func(a, b ActualLRP) int { return CompareRecords(&a, &b) })
}
