package sqlstore

import (
	"time"

	"github.com/diegosdk/diego/storage"
)

// recordWrites adds the statements that write what was accepted, but for the
// events.
func (a *attempt) recordWrites(calls []call) []call {
	q := &a.s.q
	calls = append(calls, a.aside...)
	calls = q.deleteLRPs.calls(calls, a.lrpsGone, nil)
	calls = q.upsertLRPs.calls(calls, a.lrps, nil)
	calls = q.updateLRPs.calls(calls, a.lrpsStaying, nil)
	calls = q.deleteDeployments.calls(calls, a.deploymentsGone, nil)
	calls = q.deleteAllDefinitions.calls(calls, a.deploymentsGone, nil)
	calls = q.deleteDefinitions.calls(calls, a.undefined, nil)
	calls = q.upsertDeployments.calls(calls, a.deployments, nil)
	calls = q.insertDefinitions.calls(calls, a.defined, nil)
	calls = q.deleteTasks.calls(calls, a.tasksGone, nil)
	calls = q.upsertTasks.calls(calls, a.tasks, nil)
	calls = q.upsertDomains.calls(calls, a.domains, nil)
	return q.insertRequests.calls(calls, a.requestRows, nil)
}

// writes adds the statements that write all that was accepted; none if nothing
// was.
func (a *attempt) writes(calls []call) []call {
	q := &a.s.q
	calls = a.recordWrites(calls)
	if len(a.segments) > 0 {
		rows := make([]any, 0, 5*len(a.segments))
		last := a.newest
		for i := len(a.segments) - 1; i >= 0; i-- {
			rows = append(rows, last, a.segments[i].n, a.now, a.token, a.segments[i].data)
			last -= a.segments[i].n
		}
		calls = q.insertEvents.calls(calls, rows, nil)
		if a.trims {
			x := storage.Extent{Oldest: storage.Cursor(a.oldest), Newest: storage.Cursor(a.newest)}
			a.oldest = int64(x.Keep(a.s.options.Events, a.gaps))
		}
		calls = append(calls, call{query: q.setLog, args: []any{a.newest, a.oldest}})
	} else if len(calls) > 0 && !a.joined {
		calls = append(calls, call{query: q.insertMarker, args: []any{a.token, a.now}})
	}
	if len(calls) > 0 && !a.joined {
		calls = a.sweep(calls)
	}
	return calls
}

const sweepEvery = int64(time.Minute)

// sweep adds statements, now and then, that delete what is too old.
func (a *attempt) sweep(calls []call) []call {
	s := a.s
	if a.trims {
		calls = append(calls, call{query: s.q.trimEvents, args: []any{a.oldest}}, call{query: s.q.trimGaps, args: []any{a.oldest}})
	}
	if sweepDue(a.now, s.swept) {
		requests, ended := []any{a.now - int64(s.options.Requests)}, []any{a.now - int64(storage.KeepFor)}
		calls = append(calls, call{query: s.q.sweepRequests, args: requests}, call{query: s.q.sweepMarkers, args: requests},
			call{query: s.q.sweepDomains, args: ended})
	}
	return calls
}

// sweepDue reports whether the last sweep is long ago, or was by a clock that has
// been put back.
func sweepDue(now, last int64) bool { return now-last > sweepEvery || now < last }

// trimDue reports whether enough events were added for old ones to be deleted.
func (s *Store) trimDue() bool {
	return s.trimmed < 0 || s.newest.Load()-s.trimmed > max(16, int64(s.options.Events)/16)
}

// swept notes that what sweep has added is done.
func (a *attempt) swept() {
	s := a.s
	if a.trims {
		s.trimmed = a.newest
	}
	if sweepDue(a.now, s.swept) {
		s.swept = a.now
	}
}
