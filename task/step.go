package task

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// Step applies one command to a task; a nil t is a task without a record. It
// does not change t: the decision says what to write, which events to publish
// and what to do after the commit. A command with nothing to do is not an
// error: the decision is empty. [Table] has the rules.
//
// The error is a *TransitionError if the rules refuse the command, an
// *executor.ValidationError if its fields or now are outside their limits, and
// an *InvariantError if Step cannot have made the record t.
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

// Overdue returns the command that is due because of the time alone, or nil. It
// uses the same rules as [Step]: ExpirePending or RequestAgain for a PENDING
// task, ExpireCompleted or RequestCallback for a COMPLETED one, DemoteResolving
// for a RESOLVING one. It does not check the record's invariants: Step does
// that when it gets the command.
func Overdue(t *Task, now time.Time, p Policy) Command {
	if t == nil || t.State >= numStates {
		return nil
	}
	s := step{before: t, now: now, policy: p.withDefaults()}
	for _, s.command = range timed {
		if lookup(t.State, s.command.kind(), s.premiseHolds()).do != nothing {
			return s.command
		}
	}
	return nil
}

// NextOverdue returns the earliest time after now at which [Overdue] may return
// a different command for the unchanged task. It returns the zero time if there
// is none.
func NextOverdue(t *Task, now time.Time, p Policy) time.Time {
	if t == nil || t.State >= numStates {
		return time.Time{}
	}
	s := step{before: t, now: now, policy: p.withDefaults()}
	for _, s.command = range timed {
		if lookup(t.State, s.command.kind(), true).do != nothing {
			s.premiseHolds()
		}
	}
	return s.alarm.Next
}

// timed are the commands that depend on time, the more final ones first.
var timed = [...]Command{ExpirePending{}, RequestAgain{}, ExpireCompleted{}, RequestCallback{}, DemoteResolving{}}

// A step is one call of Step.
type step struct {
	before  *Task
	command Command
	now     time.Time
	policy  Policy         // with its defaults
	alarm   executor.Alarm // the times that the premise asked about
}

// premiseHolds reports whether the command's premise is true. See [Premise].
func (s *step) premiseHolds() bool {
	t := s.before
	if t == nil {
		return false
	}
	switch c := s.command.(type) {
	case Start:
		return t.isIn(c.CellID, c.InstanceGUID, c.Attempt)
	case Complete:
		return t.isIn(c.CellID, c.InstanceGUID, c.Attempt)
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

// isIn reports whether the container has t or, while t is PENDING, was
// reserved for its current attempt.
func (t *Task) isIn(cell, instance string, a Attempt) bool {
	if t.State == Pending {
		return t.isAt(a)
	}
	return t.CellID == cell && t.InstanceGUID == instance
}

func (t *Task) isAt(a Attempt) bool { return a == Attempt{} || a == t.Attempt() }

func (s *step) passed(since time.Time, d time.Duration) bool {
	s.alarm.Now = s.now
	return s.alarm.Reached(since.Add(d))
}

func (s *step) decide(do action) Decision {
	if do == retry && s.before.RejectionCount >= s.policy.MaxRetries {
		do = giveUp
	}
	switch do {
	case nothing:
		return Decision{}
	case requestStart, callBack:
		return Decision{Effects: effects(do, s.before)}
	case create:
		return s.write(Created, s.created(), do)
	case remove:
		return s.write(Removed, nil, do)
	}
	return s.write(Changed, s.changed(do), do)
}

// created is the record of a Desire.
func (s *step) created() *Task {
	c := s.command.(Desire)
	return &Task{
		GUID: c.GUID, Domain: c.Domain, Definition: c.Definition, State: Pending,
		CreatedAt: s.now, UpdatedAt: s.now,
		ModificationTag: ModificationTag{Epoch: s.now.UnixNano()},
	}
}

// changed is the record after do.
func (s *step) changed(do action) *Task {
	after := new(Task)
	*after = *s.before
	after.State = actionNext[do]
	after.UpdatedAt = s.now
	after.ModificationTag = after.ModificationTag.Next()
	if after.State == Completed && after.FirstCompletedAt.IsZero() {
		after.FirstCompletedAt = s.now
	}

	switch c := s.command.(type) {
	case Start:
		after.CellID, after.InstanceGUID = c.CellID, c.InstanceGUID
	case Complete:
		after.CellID, after.InstanceGUID = c.CellID, c.InstanceGUID
		after.Failed, after.FailureReason, after.Result = c.Failed, executor.CutReason(c.FailureReason), c.Result
	case Reject:
		after.CellID, after.InstanceGUID = "", ""
		after.RejectionCount++
		after.RejectionReason = executor.CutReason(c.Reason)
		if do == giveUp {
			after.Failed, after.FailureReason = true, after.RejectionReason
		}
	case Fail:
		after.Failed, after.FailureReason = true, executor.CutReason(c.Reason)
	case Cancel:
		after.Failed, after.FailureReason = true, ReasonCancelled
	case CellMissing:
		after.Failed, after.FailureReason = true, ReasonCellMissing
	case ExpirePending:
		after.Failed, after.FailureReason = true, ReasonNotStarted
	}
	return after
}

// write returns the decision to write after, with its event and effects.
func (s *step) write(k EventKind, after *Task, do action) Decision {
	return Decision{
		Write:     Write{Before: s.before, After: after},
		Events:    []Event{{Kind: k, Before: s.before, After: after, Cause: s.cause()}},
		Effects:   effects(do, after),
		ShouldRun: do == run,
	}
}

// cause is the command and its details.
func (s *step) cause() Cause {
	detail := ""
	switch c := s.command.(type) {
	case Complete:
		detail = executor.CutReason(c.FailureReason)
	case Reject:
		detail = executor.CutReason(c.Reason)
	case Fail:
		detail = executor.CutReason(c.Reason)
	case CellMissing:
		detail = c.CellID
	}
	return Cause{Command: s.command.Name(), Detail: detail}
}

// effects are the effects of do. A task without a URL gets no callback.
func effects(do action, t *Task) []Effect {
	kinds := actionEffects[do]
	if len(kinds) == 0 {
		return nil
	}
	list := make([]Effect, 0, len(kinds))
	for _, k := range kinds {
		if k != CallBack || t.CompletionCallbackURL != "" {
			list = append(list, Effect{Kind: k, Task: t})
		}
	}
	return list
}
