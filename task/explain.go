package task

import "fmt"

// maxExplainedResult is how much of a result Explain shows, in bytes.
const maxExplainedResult = 100

// Explain tells people what the event means, without the name of the task:
// "runs on cell-1", "failed: exit status 3". The text is for people and may
// change; programs look at Kind and at the records.
func (e Event) Explain() string {
	switch {
	case e.Before == nil && e.After == nil:
		return e.Kind.String()
	case e.Before == nil:
		return "desired"
	case e.After == nil:
		return e.explainRemoved()
	}
	after := e.After
	switch after.State {
	case Pending:
		return "was not begun and is tried again: " + after.RejectionReason
	case Running:
		return "runs on " + after.CellID
	case Completed:
		if e.Before.State == Resolving {
			return "has not been dealt with in time; somebody else may"
		}
		return after.explainEnd()
	}
	return "is being dealt with"
}

func (e Event) explainRemoved() string {
	if e.Cause.Command == (ExpireCompleted{}).Name() {
		return "deleted: nobody has dealt with it in time"
	}
	return "deleted"
}

func (t *Task) explainEnd() string {
	switch {
	case t.Failed:
		return "failed: " + t.FailureReason
	case t.Result == "":
		return "succeeded"
	case len(t.Result) > maxExplainedResult:
		return fmt.Sprintf("succeeded with a result of %d bytes: %.*q…", len(t.Result), maxExplainedResult, t.Result)
	}
	return fmt.Sprintf("succeeded: %q", t.Result)
}
