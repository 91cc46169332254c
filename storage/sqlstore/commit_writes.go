package sqlstore

import (
	"slices"
	"time"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// recordWrites adds the statements that write what was accepted, apart from the
// events.
func (a *attempt) recordWrites(calls []dialect.Call) []dialect.Call {
	q := &a.s.q
	calls = append(calls, a.aside...)
	calls = q.deleteLRPs.Calls(calls, a.lrpsGone, nil)
	calls = q.upsertLRPs.Calls(calls, a.lrps, nil)
	calls = q.updateLRPs.Calls(calls, a.lrpsStaying, nil)
	calls = q.deleteDeployments.Calls(calls, a.deploymentsGone, nil)
	calls = q.deleteAllDefinitions.Calls(calls, a.deploymentsGone, nil)
	calls = q.deleteDefinitions.Calls(calls, a.undefined, nil)
	calls = q.upsertDeployments.Calls(calls, a.deployments, nil)
	calls = q.insertDefinitions.Calls(calls, a.defined, nil)
	calls = q.deleteTasks.Calls(calls, a.tasksGone, nil)
	calls = q.upsertTasks.Calls(calls, a.tasks, nil)
	calls = q.upsertDomains.Calls(calls, a.domains, nil)
	return q.insertRequests.Calls(calls, a.requestRows, nil)
}

// writes adds the statements that write all that was accepted. If nothing was,
// it adds none.
func (a *attempt) writes(calls []dialect.Call) []dialect.Call {
	q := &a.s.q
	calls = a.recordWrites(calls)
	if len(a.segments) > 0 {
		rows := make([]any, 0, 5*len(a.segments))
		last := a.newest
		for _, s := range slices.Backward(a.segments) {
			rows = append(rows, last, s.n, a.now, a.token, s.data)
			last -= s.n
		}
		calls = q.insertEvents.Calls(calls, rows, nil)
		if a.trims {
			x := storage.Extent{Oldest: storage.Cursor(a.oldest), Newest: storage.Cursor(a.newest)}
			a.oldest = max(int64(x.Keep(a.s.options.Events, a.gaps)), a.oldestBySize())
		}
		calls = append(calls, dialect.Call{Query: q.setLog, Args: []any{a.newest, a.oldest}})
	} else if len(calls) > 0 && !a.joined {
		calls = append(calls, dialect.Call{Query: q.insertMarker, Args: []any{a.token, a.now}})
	}
	if len(calls) > 0 && !a.joined {
		calls = a.sweep(calls)
	}
	return calls
}

const sweepEvery = int64(time.Minute)

// sweep adds statements that delete old rows, if that is due.
func (a *attempt) sweep(calls []dialect.Call) []dialect.Call {
	s := a.s
	if a.trims {
		calls = append(calls, dialect.Call{Query: s.q.trimEvents, Args: []any{a.oldest}}, dialect.Call{Query: s.q.trimGaps, Args: []any{a.oldest}})
	}
	if sweepDue(a.now, s.swept) {
		requests, ended := []any{a.now - int64(s.options.Requests)}, []any{a.now - int64(storage.KeepFor)}
		calls = append(calls, dialect.Call{Query: s.q.sweepRequests, Args: requests}, dialect.Call{Query: s.q.sweepMarkers, Args: requests},
			dialect.Call{Query: s.q.sweepDomains, Args: ended})
	}
	return calls
}

// sweepDue reports whether the last sweep was long ago, or the clock has been set
// back since.
func sweepDue(now, last int64) bool { return now-last > sweepEvery || now < last }

// trimDue reports whether enough events or bytes were added to make it worthwhile
// to delete old ones, or some are still to be deleted.
func (s *Store) trimDue() bool {
	return s.trimmed < 0 || s.size.behind || s.appended > s.options.EventBytes/16 || s.newest.Load()-s.trimmed > max(16, int64(s.options.Events)/16)
}

// swept notes that the statements of sweep have been committed.
func (a *attempt) swept() {
	s := a.s
	if a.trims {
		s.trimmed, s.appended = a.newest, 0
	}
	if sweepDue(a.now, s.swept) {
		s.swept = a.now
	}
}
