package lrp

// This file derives a decision's events from the slot before and after it. The
// crash comes first. Then come the instance events: those that lead to a
// RUNNING record that is not to stop come first and plain removals last, so a
// consumer that follows them never sees a gap that was not there. Then come the
// group events in the same order.
//
// A consumer can fold an event stream: a created event adds the record, a
// changed event replaces the record with the same epoch, a removed event drops
// it.

// events lists what the draft changed.
func (x *draft) events() []Event {
	room := 2
	if len(x.effects) > 0 {
		room = 4 // one instance goes and another comes
	}
	out := make([]Event, 0, room)
	if x.crash.happened {
		e := Event{Kind: InstanceCrashed, Before: x.crash.before, Cause: x.cause}
		if x.crash.after != none {
			e.After = &x.records[x.crash.after].ActualLRP
		}
		out = append(out, e)
	}
	out = x.instanceEvents(out)
	out = x.groupEvents(out)
	if x.deployment != nil {
		out = append(out, Event{Kind: DeploymentChanged, DeploymentBefore: x.d.withoutRevisions(), DeploymentAfter: x.deployment.withoutRevisions(), Cause: x.cause})
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (x *draft) instanceEvents(out []Event) []Event {
	for _, stays := range [...]bool{true, false} {
		for i := range x.records {
			r := &x.records[i]
			if r.removed || r.stays() != stays {
				continue
			}
			if r.from == none {
				out = append(out, Event{Kind: InstanceCreated, After: &r.ActualLRP, Cause: x.cause})
				continue
			}
			before := &x.slot.Records[r.from]
			switch {
			case r.ModificationTag == before.ModificationTag:
			case anotherInstance(before, &r.ActualLRP):
				out = append(out,
					Event{Kind: InstanceRemoved, Before: before, Cause: x.cause},
					Event{Kind: InstanceCreated, After: &r.ActualLRP, Cause: x.cause})
			default:
				out = append(out, Event{Kind: InstanceChanged, Before: before, After: &r.ActualLRP, Cause: x.cause})
			}
		}
	}
	for i := range x.records {
		if r := &x.records[i]; r.removed && r.from != none {
			out = append(out, Event{Kind: InstanceRemoved, Before: &x.slot.Records[r.from], Cause: x.cause})
		}
	}
	return out
}

// anotherInstance reports whether the change of a record is one instance that
// went and another that came: the record goes back to UNCLAIMED, or another
// instance takes it over.
func anotherInstance(before, after *ActualLRP) bool {
	if after.State == Unclaimed {
		return before.State != Unclaimed
	}
	return !before.InstanceKey.IsZero() && !after.InstanceKey.IsZero() && before.InstanceKey != after.InstanceKey
}

// groupEvents compares, for each definition, the instance and the evacuating
// record that its group shows. There is one exception. While its replacement
// runs, a RUNNING suspect is no longer shown by its group; still, its removal
// withdraws its route (000 §Suspect Cells B2, D1). Both records may exist
// because somebody else wrote one of them, and then nobody has withdrawn the
// route.
func (x *draft) groupEvents(out []Event) []Event {
	additions := len(out)
	var removals []Event
	seen := func(definitionID string) {
		before := groupOf(x.slot.Records, definitionID)
		after := x.group(definitionID)
		for _, pair := range [...][2]*ActualLRP{{before.Instance, after.Instance}, {before.Evacuating, after.Evacuating}} {
			b, a := pair[0], pair[1]
			switch {
			case b == a:
			case b == nil:
				out = append(out, Event{Kind: GroupCreated, After: a, Cause: x.cause})
			case a == nil:
				removals = append(removals, Event{Kind: GroupRemoved, Before: b, Cause: x.cause})
			case !b.InstanceKey.IsZero() && !a.InstanceKey.IsZero() && b.InstanceKey != a.InstanceKey:
				out = append(out, Event{Kind: GroupCreated, After: a, Cause: x.cause})
				removals = append(removals, Event{Kind: GroupRemoved, Before: b, Cause: x.cause})
			case !b.sameContent(a):
				out = append(out, Event{Kind: GroupChanged, Before: b, After: a, Cause: x.cause})
			}
		}
		for i := range x.records {
			r := &x.records[i]
			if !r.removed || r.from == none || r.DefinitionID != definitionID {
				continue
			}
			if old := &x.slot.Records[r.from]; old.Presence == Suspect && old.State == Running && old != before.Instance {
				removals = append(removals, Event{Kind: GroupRemoved, Before: old, Cause: x.cause})
			}
		}
	}
	x.eachDefinition(seen)
	// Routes to RUNNING instances come first.
	added := out[additions:]
	for i := range added {
		if added[i].After.State == Running {
			e := added[i]
			copy(added[1:i+1], added[:i])
			added[0] = e
		}
	}
	return append(out, removals...)
}

// eachDefinition calls f once for each definition that has a record before or
// after, in order of first appearance.
func (x *draft) eachDefinition(f func(definitionID string)) {
	for i := range x.records {
		id, known := x.records[i].DefinitionID, false
		for j := range i {
			known = known || x.records[j].DefinitionID == id
		}
		if !known {
			f(id)
		}
	}
}
