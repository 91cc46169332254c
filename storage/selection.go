package storage

import (
	"errors"
	"iter"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A Selection picks the events whose subject has labels that a selector matches.
// It learns the labels from the events themselves, so call [Selection.Wants] for
// every event of the log, in order. It picks an event
//
//   - about a task: if the selector matches its labels;
//   - about a deployment: if the selector matches its labels before or after;
//   - about an instance, or a quarantined record: if the selector matches the
//     labels that its process had at that time: those of the last change of the
//     process, or those that the Selection began with. A process that was deleted
//     keeps its last labels, so the ends of its instances are picked too;
//   - about anything else: only if the selector is zero, which matches all.
//
// A Selection from [NewSelection] begins with the labels of now. One from
// [SelectionAfter] begins with those at an earlier position of the log, for a
// subscriber that continues there. One goroutine at a time may use a Selection.
type Selection struct {
	selector executor.Selector
	// chosen are the processes whose instances are chosen. Those of them that have
	// ended are in ended, or in endedBefore if others have ended since.
	chosen, ended, endedBefore map[string]bool
}

// maxEnded is how many processes that have ended a Selection remembers at least.
// It forgets them when it knows twice as many.
const maxEnded = 10_000

// NewSelection returns a Selection for the events from now on. now are the guids
// of the processes that the selector matches at present: list the deployments
// with [DeploymentFilter.Selector]. Instances of processes that ended earlier are
// not picked.
func NewSelection(selector executor.Selector, now []string) *Selection {
	s := &Selection{selector: selector, chosen: make(map[string]bool, len(now)), ended: map[string]bool{}}
	for _, guid := range now {
		s.chosen[guid] = true
	}
	return s
}

// SelectionAfter returns a Selection for the events after a position. now is as
// for [NewSelection]. log has the events from that position, or from an earlier
// one, to the end; begin to read it after you have now. From the changes of
// deployments in log, the Selection works out which labels a process had at the
// position. If log begins earlier, the Selection also knows the processes that
// ended in between, and picks the ends of their instances.
//
// Other events in log, and those that cannot be decoded, do not matter. Any
// other error of log is returned.
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
