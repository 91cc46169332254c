package converge

import (
	"maps"
	"slices"
	"time"

	"github.com/diegosdk/diego/storage"
)

// An agenda is why a pass need not look at everything. What a plan says of a
// process follows from its records, from which of its cells are there, from the
// freshness of its domain, and from the time. So a process in which there was
// nothing to do needs another look only when
//
//   - the log of events tells of one of its records;
//   - one of its cells has come or gone, or its loss is believed or doubted now;
//   - the earliest moment has come that its plan asked about.
//
// One in which there was something to do, or that waits for its domain, is
// looked at in every pass until there is not. The same holds for tasks.
//
// The agenda has what is due, not what is well, so it is small. The zero agenda
// knows nothing.
type agenda struct {
	// looked is when everything was looked at; zero if never, or if something
	// was missed since.
	looked time.Time
	// cursor is how far the log was followed.
	cursor storage.Cursor
	// cells are those of the last pass.
	cells Cells
	// processes and tasks are when each that needs it is looked at again.
	processes, tasks map[string]time.Time
	// census is what there is.
	census census
}

const (
	// maxFollowed is how many events a pass reads at most. Beyond that it is
	// cheaper to look at everything.
	maxFollowed = 10_000
	// maxDue is how many processes and how many tasks a pass looks at one by
	// one.
	maxDue = 5_000
	// maxCells is how many cells that moved a pass asks the store about.
	maxCells = 20
)

func (a agenda) clone() agenda {
	a.processes, a.tasks = maps.Clone(a.processes), maps.Clone(a.tasks)
	return a
}

// begin makes it the agenda of a look at everything.
func (a *agenda) begin(now time.Time, log storage.Extent, cells Cells) {
	*a = agenda{looked: now, cursor: log.Newest, cells: cells, processes: map[string]time.Time{}, tasks: map[string]time.Time{}}
}

// holds reports whether everything was looked at not longer than interval ago,
// and the log has not gone back since. Reading on tells whether the agenda can be
// brought up to date from it: numbers do not, because of gaps.
func (a *agenda) holds(now time.Time, log storage.Extent, interval time.Duration) bool {
	age := now.Sub(a.looked)
	return !a.looked.IsZero() && age >= 0 && age < interval && a.cursor <= log.Newest
}

// follow puts on the agenda what an event is about.
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

// moved lists the cells that the last pass took for something else: present,
// missing or neither. It is not ok if they are too many, or if it concerns cells
// that are in no list.
func (a *agenda) moved(cells Cells) (ids []string, ok bool) {
	ids, ok = cells.changed(a.cells)
	return ids, ok && len(ids) <= maxCells
}

// due takes what is due off the agenda, each in order. It is not ok if that is
// so much that it is cheaper to look at everything.
func (a *agenda) due(now time.Time) (processes, tasks []string, ok bool) {
	processes, tasks = take(a.processes, now), take(a.tasks, now)
	return processes, tasks, len(processes) <= maxDue && len(tasks) <= maxDue
}

// next is when the first of what is not due now will be; zero if nothing will.
func (a *agenda) next(now time.Time) (first time.Time) {
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
