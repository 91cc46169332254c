package rep

// Records may name this cell whose containers ended with an earlier run of it.
// Routers send requests to their ports until the BBS knows of their end. New
// work could get the same ports, so the cell takes none before: first all that
// is gone is reported, then there is work. That holds for each time at which
// this run becomes the present one, as another may have had the name meanwhile.

// A past is what earlier runs of the cell have left in the records.
type past struct {
	// reported is true once the BBS knows what is gone.
	reported bool
	// gone are the instances that it has to hear of, by guid.
	gone map[string]bool
}

// found takes what a survey, which read all records, found recorded here and
// without a container. Each of them is settled afterwards.
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
