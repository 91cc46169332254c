package sqlstore

import "github.com/diegosdk/diego/storage"

// An outcome is what the callers of a transaction get if it was committed.
type outcome struct {
	token    int64
	events   int64 // how many it had
	since    int64 // an event before them
	found    int64 // the last of them in the log, or the number of markers
	newest   int64 // the last of them as far as the attempt knew
	cursors  []storage.Cursor
	errs     []error
	deferred map[*item]bool
}

func (a *attempt) outcome() *outcome {
	o := &outcome{token: a.token, newest: a.newest, since: a.s.newest.Load(), deferred: a.deferred}
	for i := range a.segments {
		o.events += a.segments[i].n
	}
	for _, it := range a.items {
		o.cursors, o.errs = append(o.cursors, it.cursor), append(o.errs, it.err)
	}
	return o
}

// restore gives the items the outcome of the attempt in doubt, which was
// committed after all.
func (a *attempt) restore() {
	d := a.doubt
	a.newest, a.deferred = d.newest, d.deferred
	moved := storage.Cursor(0)
	if d.events > 0 {
		a.newest, moved = d.found, storage.Cursor(d.found-d.newest)
	}
	for i, it := range a.items {
		it.cursor, it.err = d.cursors[i], d.errs[i]
		if it.cursor > 0 {
			it.cursor += moved
		}
	}
}
