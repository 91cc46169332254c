package task

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// Step applies one command to a task; a nil t is a task that has no record. It
// changes nothing: the decision says what to write, which events that makes
// and what to do once it is written. A command that changes nothing is no
// error.
//
// An error means that nothing is to be done. It is a *TransitionError if the
// rules refuse the command, an *executor.ValidationError if its arguments are
// wrong, and an *InvariantError if t is a record that Step cannot have made.
func Step(t *Task, c Command, now time.Time, p Policy) (Decision, error) {
	if err := checkCommand(c, now); err != nil {
		return Decision{}, err
	}
	s := step{before: t, command: c, now: now.Round(0).UTC(), policy: p.withDefaults()}
	var guid string
	var state State
	if t != nil {
		if rule := t.broken(); rule != "" {
			return Decision{}, &InvariantError{GUID: t.GUID, Rule: rule}
		}
		guid, state = t.GUID, t.State
	}
	r := lookup(state, c.kind(), s.premiseHolds())
	if r.do == refuse {
		return Decision{}, &TransitionError{GUID: guid, State: state, Command: c.Name(), Err: r.err, Why: r.reason}
	}
	return s.decide(r.do), nil
}

// Overdue returns the command that time alone calls for, or nil. It looks at
// the same rules as Step: ExpirePending or RequestAgain for a PENDING task,
// ExpireCompleted or RequestCallback for a COMPLETED one, DemoteResolving for
// a RESOLVING one.
func Overdue(t *Task, now time.Time, p Policy) Command {
	p = p.withDefaults()
	for _, c := range timed {
		s := step{before: t, command: c, now: now, policy: p}
		if lookup(t.State, c.kind(), s.premiseHolds()).do != nothing {
			return c
		}
	}
	return nil
}

// timed are the commands of time, the more final ones first.
var timed = [...]Command{ExpirePending{}, RequestAgain{}, ExpireCompleted{}, RequestCallback{}, DemoteResolving{}}

// A step is one call of Step.
type step struct {
	before  *Task
	command Command
	now     time.Time
	policy  Policy // with its defaults
}

// premiseHolds tells whether what the command takes for true is true. See
// Premise.
func (s *step) premiseHolds() bool {
	t := s.before
	if t == nil {
		return false
	}
	switch c := s.command.(type) {
	case Start:
		return t.at(c.CellID, c.InstanceGUID, c.Attempt)
	case Complete:
		return t.at(c.CellID, c.InstanceGUID, c.Attempt)
	case Reject:
		return t.CellID == c.CellID && t.InstanceGUID == c.InstanceGUID &&
			(t.State != Pending || t.isAt(c.Attempt))
	case CellMissing:
		return t.CellID == c.CellID
	case RequestAgain:
		return s.passed(t.UpdatedAt, s.policy.StalePending)
	case ExpirePending:
		return s.passed(t.CreatedAt, s.policy.ExpirePending)
	case DemoteResolving:
		return s.passed(t.UpdatedAt, s.policy.StaleResolving)
	case RequestCallback:
		return t.CompletionCallbackURL != "" && s.passed(t.UpdatedAt, s.policy.StaleCompleted)
	case ExpireCompleted:
		return s.passed(t.FirstCompletedAt, s.policy.ExpireCompleted)
	}
	return true
}

// at reports whether the container has t or, while t is PENDING, was reserved
// for its current attempt.
func (t *Task) at(cell, instance string, a Attempt) bool {
	if t.State == Pending {
		return t.isAt(a)
	}
	return t.CellID == cell && t.InstanceGUID == instance
}

func (t *Task) isAt(a Attempt) bool { return a == Attempt{} || a == t.Attempt() }

func (s *step) passed(since time.Time, d time.Duration) bool { return s.now.Sub(since) >= d }

func (s *step) decide(do action) Decision {
	switch do {
	case nothing:
		return Decision{}
	case requestStart:
		return Decision{Effects: []Effect{{RequestStart, s.before}}}
	case callBack:
		return Decision{Effects: []Effect{{CallBack, s.before}}}
	case remove:
		return s.write(Removed, nil, s.before.FailureReason)
	case create:
		c := s.command.(Desire)
		after := &Task{
			GUID: c.GUID, Domain: c.Domain, Definition: c.Definition, State: Pending,
			CreatedAt: s.now, UpdatedAt: s.now,
			ModificationTag: ModificationTag{Epoch: s.now.UnixNano()},
		}
		d := s.write(Created, after, "")
		d.Effects = []Effect{{RequestStart, after}}
		return d
	}

	after := new(Task)
	*after = *s.before
	after.UpdatedAt = s.now
	after.ModificationTag = after.ModificationTag.Next()
	switch do {
	case run:
		c := s.command.(Start)
		after.State, after.CellID, after.InstanceGUID = Running, c.CellID, c.InstanceGUID
		d := s.write(Changed, after, "")
		d.ShouldRun = true
		return d
	case retry:
		reason := executor.CutReason(s.command.(Reject).Reason)
		after.CellID, after.InstanceGUID = "", ""
		after.RejectionCount++
		after.RejectionReason = reason
		if after.RejectionCount > s.policy.MaxRetries {
			return s.completed(after, outcome{failed: true, reason: reason})
		}
		after.State = Pending
		return s.write(Changed, after, reason)
	case resolve:
		after.State = Resolving
		return s.write(Changed, after, "")
	case demote:
		return s.completed(after, outcome{after.Failed, after.FailureReason, after.Result})
	}

	// end and stop
	if c, ok := s.command.(Complete); ok {
		after.CellID, after.InstanceGUID = c.CellID, c.InstanceGUID
	}
	d := s.completed(after, s.outcome())
	if do == stop {
		d.Effects = append([]Effect{{CancelOnCell, after}}, d.Effects...)
	}
	return d
}

// An outcome is how a task ended.
type outcome struct {
	failed         bool
	reason, result string
}

// outcome is what the command says of the task's end.
func (s *step) outcome() outcome {
	switch c := s.command.(type) {
	case Complete:
		return outcome{c.Failed, executor.CutReason(c.FailureReason), c.Result}
	case Fail:
		return outcome{failed: true, reason: executor.CutReason(c.Reason)}
	case CellMissing:
		return outcome{failed: true, reason: ReasonCellMissing}
	case ExpirePending:
		return outcome{failed: true, reason: ReasonNotStarted}
	}
	return outcome{failed: true, reason: ReasonCancelled}
}

func (s *step) completed(after *Task, o outcome) Decision {
	after.State = Completed
	after.Failed, after.FailureReason, after.Result = o.failed, o.reason, o.result
	if after.FirstCompletedAt.IsZero() {
		after.FirstCompletedAt = s.now
	}
	d := s.write(Changed, after, o.reason)
	if after.CompletionCallbackURL != "" {
		d.Effects = []Effect{{CallBack, after}}
	}
	return d
}

// write is the decision to write after, and the event that this makes.
func (s *step) write(k EventKind, after *Task, detail string) Decision {
	return Decision{
		Write:  Write{Before: s.before, After: after},
		Events: []Event{{Kind: k, Before: s.before, After: after, Cause: Cause{Command: s.command.Name(), Detail: detail}}},
	}
}
