package storage

import (
	"errors"
	"iter"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A Selection chooses events by the labels of their subjects. [Selection.Wants]
// must be called for all events of a log in their order.
//
//   - An event about a task is chosen by the labels of the task.
//   - An event about a deployment is chosen by its labels before or after.
//   - An event about an instance, or about a record of a process that was put
//     aside, is chosen by the labels that the process had then, as far as the
//     events so far tell, and otherwise by those that it has when the Selection
//     is made. After the end of a process its last labels count, so the ends of
//     its instances are chosen. Of processes that ended before the first event,
//     it chooses no instances.
//
// [SelectionAfter] knows the labels at a position of the log and which processes
// ended shortly before it.
//
// All other events are about nothing that has labels; only the zero Selector
// chooses them. One goroutine at a time may use a Selection.
type Selection struct {
	selector executor.Selector
	// chosen are the processes whose instances are chosen. Those of them that have
	// ended are in ended, or in endedBefore if others have ended since.
	chosen, ended, endedBefore map[string]bool
}

// maxEnded is how many processes that have ended a Selection remembers at least.
// It forgets them when it knows twice as many.
const maxEnded = 10_000

// NewSelection makes a Selection. now are the guids of the processes that the
// selector chooses when it is made: see DeploymentFilter.Selector.
func NewSelection(selector executor.Selector, now []string) *Selection {
	s := &Selection{selector: selector, chosen: make(map[string]bool, len(now)), ended: map[string]bool{}}
	for _, guid := range now {
		s.chosen[guid] = true
	}
	return s
}

// SelectionAfter makes a Selection for the events after a position. now are the
// guids that NewSelection takes. log lists the events about deployments from
// the position, or from an earlier one, to the end of the log; begin to read it
// after now. From log the Selection knows which labels a process had at the
// position, even if they have changed since. It also knows the processes that
// ended between the beginning of log and the position, and chooses the ends of
// their instances. It ignores other events in log and those that cannot be
// decoded. Any other error of log is returned.
func SelectionAfter(selector executor.Selector, now []string, after Cursor, log iter.Seq2[Event, error]) (*Selection, error) {
	s := NewSelection(selector, now)
	seen := map[string]bool{}
	var passed []Event // up to the position
	for e, err := range log {
		if errors.Is(err, ErrCorrupt) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if e.LRP == nil || e.LRP.DeploymentBefore == nil && e.LRP.DeploymentAfter == nil {
			continue
		}
		if guid := e.Subject().ProcessGUID; !seen[guid] {
			seen[guid] = true
			if before := e.LRP.DeploymentBefore; before != nil && selector.Matches(before.Labels) {
				s.chosen[guid] = true
			} else {
				delete(s.chosen, guid)
			}
		}
		if e.Sequence <= after {
			passed = append(passed, e)
		}
	}
	for i := range passed {
		s.Wants(&passed[i])
	}
	return s, nil
}

// Wants reports whether the next event of the log is chosen.
func (s *Selection) Wants(e *Event) bool {
	switch {
	case s.selector.IsZero():
		return true
	case e.Task != nil:
		t := e.Task.After
		if t == nil {
			t = e.Task.Before
		}
		return t != nil && s.selector.Matches(t.Labels)
	case e.LRP != nil && (e.LRP.DeploymentBefore != nil || e.LRP.DeploymentAfter != nil):
		return s.deployment(e.LRP.DeploymentBefore, e.LRP.DeploymentAfter)
	}
	subject := e.Subject()
	return s.chosen[subject.ProcessGUID]
}

// deployment notes the labels of a process.
func (s *Selection) deployment(before, after *lrp.Deployment) bool {
	was := before != nil && s.selector.Matches(before.Labels)
	if after == nil {
		if was {
			s.end(before.ProcessGUID)
		}
		return was
	}
	delete(s.ended, after.ProcessGUID)
	delete(s.endedBefore, after.ProcessGUID)
	is := s.selector.Matches(after.Labels)
	if is {
		s.chosen[after.ProcessGUID] = true
	} else {
		delete(s.chosen, after.ProcessGUID)
	}
	return was || is
}

// end notes that a process that was chosen has ended.
func (s *Selection) end(guid string) {
	if len(s.ended) == maxEnded && !s.ended[guid] {
		for old := range s.endedBefore { //lint:maporder all of them go
			delete(s.chosen, old)
		}
		s.endedBefore, s.ended = s.ended, map[string]bool{}
	}
	s.chosen[guid], s.ended[guid] = true, true
}
