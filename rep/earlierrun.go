package rep

// Records may name this cell although their containers ended with an earlier run
// of it. Routers send requests to the ports of these containers until the BBS
// knows of their end, and new work could get the same ports. So the cell takes no
// work before it has reported all that is gone. It does this each time this run
// becomes the present one, because another run may have had the id meanwhile.

// A past is what earlier runs of the cell have left in the records.
type past struct {
	// reported is true once the BBS knows what is gone.
	reported bool
	// gone are the instances that it has to hear of, by guid.
	gone map[string]bool
}

// found takes the instances that are recorded here and have no container, from a
// survey that has read all records. Each of them is settled afterwards.
func (p *past) found(gone []subject) {
	if p.reported {
		return
	}
	p.gone = map[string]bool{}
	for _, s := range gone {
		p.gone[s.guid] = true
	}
	p.reported = len(gone) == 0
}

// settled notes that the record of an instance is as it should be.
func (p *past) settled(guid string) {
	if p.gone[guid] {
		delete(p.gone, guid)
		p.reported = len(p.gone) == 0
	}
}
