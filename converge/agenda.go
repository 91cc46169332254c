package converge

import (
	"maps"
	"slices"
	"time"

	"github.com/diegosdk/diego/storage"
)

// An agenda lists what is due, so that a pass need not look at everything. The
// plan for a process depends only on its records, on which of its cells are
// present, on the freshness of its domain, and on the time. So a process with
// nothing to do needs another look only when one of these happens:
//
//   - the log has an event about one of its records;
//   - one of its cells comes or goes, or the loss of one becomes believed or
//     doubted;
//   - the earliest time arrives that its plan asked about.
//
// A process with something to do, or one that waits for its domain, is looked
// at in every pass until that is over. The same holds for tasks.
//
// The agenda does not list healthy processes, so it is small. The zero agenda
// knows nothing.
type agenda struct {
	// looked is the time of the last look at everything; zero if there was none,
	// or if something was missed since.
	looked time.Time
	// cursor is the position up to which the log was followed.
	cursor storage.Cursor
	// cells are the cells of the last pass.
	cells Cells
	// processes and tasks say when to look again at those that need it.
	processes, tasks map[string]time.Time
	// ahead is the earliest time at which a process that is looked at in every pass
	// may need more; zero if there is none.
	ahead time.Time
	// census counts all records.
	census census
}

const (
	// maxFollowed is how many events a pass reads at most. Beyond that it is
	// cheaper to look at everything.
	maxFollowed = 10_000
	// maxDue is how many processes and how many tasks a pass looks at one by
	// one.
	maxDue = 5_000
	// maxCells is the number of changed cells up to which a pass asks the store
	// for their records.
	maxCells = 20
)

func (a agenda) clone() agenda {
	a.processes, a.tasks = maps.Clone(a.processes), maps.Clone(a.tasks)
	a.census.troubled = maps.Clone(a.census.troubled)
	return a
}

// begin starts the agenda anew for a look at everything.
func (a *agenda) begin(now time.Time, log storage.Extent, cells Cells) {
	*a = agenda{looked: now, cursor: log.Newest, cells: cells, processes: map[string]time.Time{}, tasks: map[string]time.Time{}, census: census{troubled: map[string]ProcessCount{}}}
}

// holds reports whether the last look at everything is at most interval ago and
// the log has not lost events since. It says nothing about whether the log
// still reaches back far enough: reading it shows that. Comparing numbers does
// not, because of gaps.
func (a *agenda) holds(now time.Time, log storage.Extent, interval time.Duration) bool {
	age := now.Sub(a.looked)
	return !a.looked.IsZero() && age >= 0 && age < interval && a.cursor <= log.Newest
}

// follow puts the subject of an event on the agenda.
func (a *agenda) follow(e *storage.Event) {
	s := e.Subject()
	if s.ProcessGUID != "" {
		a.processes[s.ProcessGUID] = time.Time{}
	}
	if s.TaskGUID != "" {
		a.tasks[s.TaskGUID] = time.Time{}
	}
	a.census.follow(e)
	a.cursor = e.Sequence
}

// moved lists the cells whose status (present, missing or neither) differs from
// the last pass. ok is false if there are too many, or if the change concerns
// cells that are in no list.
func (a *agenda) moved(cells Cells) (ids []string, ok bool) {
	ids, ok = cells.changed(a.cells)
	return ids, ok && len(ids) <= maxCells
}

// due removes what is due from the agenda and returns it in order. ok is false
// if there is so much that looking at everything is cheaper.
func (a *agenda) due(now time.Time) (processes, tasks []string, ok bool) {
	a.ahead = time.Time{} // these processes are all due
	processes, tasks = take(a.processes, now), take(a.tasks, now)
	return processes, tasks, len(processes) <= maxDue && len(tasks) <= maxDue
}

// foresee notes when a process that is looked at in every pass may need more.
func (a *agenda) foresee(at time.Time) {
	if a.ahead.IsZero() || at.Before(a.ahead) {
		a.ahead = at
	}
}

// next is the earliest time on the agenda after now; zero if there is none.
func (a *agenda) next(now time.Time) (first time.Time) {
	if a.ahead.After(now) {
		first = a.ahead
	}
	for _, times := range []map[string]time.Time{a.processes, a.tasks} {
		//lint:maporder the least is the same in any order
		for _, at := range times {
			if at.After(now) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

func take(times map[string]time.Time, now time.Time) (due []string) {
	//lint:maporder what is due is sorted below
	for guid, at := range times {
		if !now.Before(at) {
			due = append(due, guid)
			delete(times, guid)
		}
	}
	slices.Sort(due)
	return due
}
