package lrp

// A Group is what a router should know about one definition at one index: the
// instance, and the record of the cell that evacuates it. Either may be nil.
type Group struct {
	Instance   *ActualLRP `json:"instance,omitempty"`
	Evacuating *ActualLRP `json:"evacuating,omitempty"`
}

// instanceRank orders the ORDINARY and SUSPECT records that may fill a group's instance: an
// ORDINARY RUNNING record wins, then a SUSPECT one, because it may still be
// routable, then the ORDINARY record that is on its way.
func instanceRank(r *ActualLRP) int {
	switch {
	case r.Presence == Ordinary && r.State == Running:
		return 6
	case r.Presence == Suspect && r.State == Running:
		return 5
	case r.Presence == Suspect:
		return 4
	case r.State == Claimed:
		return 3
	case r.State == Unclaimed:
		return 2
	}
	return 1
}

func (g *Group) add(r *ActualLRP) {
	if r.Presence == Evacuating {
		g.Evacuating = newer(g.Evacuating, r)
		return
	}
	switch {
	case g.Instance == nil || instanceRank(r) > instanceRank(g.Instance):
		g.Instance = r
	case instanceRank(r) == instanceRank(g.Instance):
		g.Instance = newer(g.Instance, r)
	}
}

func newer(a, b *ActualLRP) *ActualLRP {
	if a == nil || b.ModificationTag.Epoch > a.ModificationTag.Epoch {
		return b
	}
	return a
}

func groupOf(records []ActualLRP, definitionID string) (g Group) {
	for i := range records {
		if records[i].DefinitionID == definitionID {
			g.add(&records[i])
		}
	}
	return g
}

func (x *draft) group(definitionID string) (g Group) {
	for i := range x.records {
		if r := &x.records[i]; !r.removed && r.DefinitionID == definitionID {
			g.add(&r.ActualLRP)
		}
	}
	return g
}

// Group returns the group of one definition's records in the slot (003
// §Corresponding changes to ActualLRPs). An empty definition id stands for all
// records.
func (s Slot) Group(definitionID string) (g Group) {
	for i := range s.Records {
		if definitionID == "" || s.Records[i].DefinitionID == definitionID {
			g.add(&s.Records[i])
		}
	}
	return g
}

// Groups returns the groups of all definitions that have records in the slot,
// in the order of their ids (003 §Corresponding changes to ActualLRPs).
func (s Slot) Groups() (list []Group) {
	for i := range s.Records {
		if id := s.Records[i].DefinitionID; i == 0 || id != s.Records[i-1].DefinitionID {
			list = append(list, s.Group(id))
		}
	}
	return list
}

// ActiveGroup returns the group for consumers that know one definition only:
// the active definition's records or, if there are none, all records (003
// §Corresponding changes to ActualLRPs). d may be nil.
func (s Slot) ActiveGroup(d *Deployment) Group {
	if d != nil {
		if g := s.Group(d.ActiveDefinitionID); g != (Group{}) {
			return g
		}
	}
	return s.Group("")
}

// Resolve returns the one record of the group that a consumer should see: the
// evacuating one while the instance is neither RUNNING nor CRASHED (000 §The
// BBS's Role during Evacuation). It returns nil for an empty group.
func (g Group) Resolve() *ActualLRP {
	switch {
	case g.Evacuating == nil:
		return g.Instance
	case g.Instance == nil, g.Instance.State == Unclaimed, g.Instance.State == Claimed:
		return g.Evacuating
	}
	return g.Instance
}

// Resolve returns the one record of the slot that a consumer should see, of any
// definition; ok is false if there is none. During a rollout that is the
// RUNNING instance; of two, the one with the newer record.
func Resolve(s Slot) (r ActualLRP, ok bool) {
	if found := s.Group("").Resolve(); found != nil {
		return *found, true
	}
	return ActualLRP{}, false
}
