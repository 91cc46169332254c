package sqlstore

// addEvent gives an event the next number of the log. Events are numbered in the
// order of the commits of a group, and within a commit in the order of its
// batch. No number ever belongs to two events.
func (a *attempt) addEvent(data []byte) {
	if n := len(a.segments); n == 0 || a.segments[n-1].n == maxSegment || len(a.segments[n-1].data)+len(data) > maxSegmentBytes {
		size := 0
		for _, it := range a.items {
			size += it.size
		}
		a.segments = append(a.segments, segment{data: make([]byte, 0, min(size, maxSegmentBytes))})
	}
	last := &a.segments[len(a.segments)-1]
	last.n++
	last.data = appendEvent(last.data, data)
	a.newest++
}
