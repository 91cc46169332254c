package lrp

import (
	"cmp"
	"slices"
)

// Validate checks the invariants of a record; the error is an *InvariantError.
// This is the only list of them: Step refuses to decide about a record that
// breaks one, and a store quarantines it.
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
	case r.State != Running && (r.NetInfo.Address != "" || r.NetInfo.InstanceAddress != "" || r.PreferredAddress != PreferNone || len(r.NetInfo.Ports) > 0):
		return "only a RUNNING record has addresses"
	case r.PreferredAddress > PreferHost:
		return "a preferred address is UNKNOWN, INSTANCE or HOST"
	case r.State != Running && (r.Routable || r.Zone != ""):
		return "only a RUNNING record is routable and in a zone"
	case r.State == Running && r.RunningSince.IsZero(), r.State != Running && !r.RunningSince.IsZero():
		return "a RUNNING record, and no other, has been running since some time"
	case r.Presence == Evacuating && r.ExpiresAt.IsZero(), r.Presence != Evacuating && !r.ExpiresAt.IsZero():
		return "an EVACUATING record, and no other, expires"
	case !r.Stopping.IsZero() && (!held || r.Presence == Evacuating):
		return "only a CLAIMED or RUNNING record that is not EVACUATING is to stop"
	case r.PlacementError.Reason > RejectedByCell || r.PlacementError.IsZero() && r.PlacementError.Detail != "":
		return "a placement error has a known reason"
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

// broken returns why Step cannot decide with the deployment, or "". It checks
// only what decisions use; Validate checks the rest when a deployment is made.
func (d *Deployment) broken(processGUID string) string {
	if d == nil {
		return ""
	}
	_, active := d.Definitions[d.ActiveDefinitionID]
	healthy := d.HealthyDefinitionID == d.ActiveDefinitionID || d.HealthyDefinitionID == ""
	if !healthy {
		_, healthy = d.Definitions[d.HealthyDefinitionID]
	}
	switch {
	case d.ProcessGUID != processGUID:
		return "a slot is decided with the deployment of its process"
	case d.Domain == "":
		return "a deployment has a domain"
	case !active || d.ActiveDefinitionID == "":
		return "the active definition is one of the deployment's"
	case !healthy:
		return "the healthy definition is one of the deployment's"
	case d.RolloutState.From != "" && !d.has(d.RolloutState.From):
		return "the definition from which a rollout began is one of the deployment's"
	}
	return ""
}

// has reports whether the deployment has the definition.
func (d *Deployment) has(definitionID string) bool {
	_, has := d.Definitions[definitionID]
	return has
}

// Validate checks every record, and that the records belong together: all at
// this index, in order, and no two with the same definition and presence or the
// same epoch. The error is an *InvariantError.
func (s Slot) Validate() error {
	if s.ProcessGUID == "" || s.Index < 0 {
		return &InvariantError{Key: Key{ProcessGUID: s.ProcessGUID, Index: s.Index}, Rule: "a slot has a process guid and an index of at least 0"}
	}
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

// CompareRecords orders records as slots and lists do: by process guid, index,
// definition id and presence. The result is negative, 0 or positive; it is 0
// for two versions of one record.
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
