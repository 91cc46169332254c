package task

import (
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/diegosdk/diego/executor"
)

// Validate checks every limit of a definition. The error is an
// *executor.ValidationError that names each field outside its limit.
func (d *Definition) Validate() error {
	var v executor.Validator
	d.validate(&v)
	return v.Err()
}

func (d *Definition) validate(v *executor.Validator) {
	d.Resources.Validate(v)
	for i, tag := range d.PlacementTags {
		v.At("placement_tags", i).Check(tag != "", "", tag, "a non-empty tag")
	}
	if d.CompletionCallbackURL != "" {
		u, err := url.Parse(d.CompletionCallbackURL)
		v.Check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "",
			"completion_callback_url", d.CompletionCallbackURL, "an http or https URL with a host")
	}
	v.Check(len(d.Annotation) <= executor.MaxAnnotationBytes, "annotation", bytes(len(d.Annotation)), "at most 10240 bytes")
	executor.ValidateMetricTags(v, d.MetricTags, d.MetricsGUID)
	v.Check((d.ImageUsername == "") == (d.ImagePassword == ""), "image_username", "", "both or neither of image_username and image_password")
}

// Validate checks that t can have been made by [Step], which refuses to decide
// about it otherwise, and that its definition is within its limits. The error
// is an *InvariantError or an *executor.ValidationError.
func (t *Task) Validate() error {
	if rule := t.broken(); rule != "" {
		return &InvariantError{GUID: t.GUID, Rule: rule}
	}
	return t.Definition.Validate()
}

// broken is the one list of invariants of a record: the rule that t breaks, or
// "".
func (t *Task) broken() string {
	ended := t.State == Completed || t.State == Resolving
	held := t.CellID != "" || t.InstanceGUID != ""
	switch {
	case t.GUID == "":
		return "a task has a guid"
	case t.Domain == "":
		return "a task has a domain"
	case t.State == Absent || t.State >= numStates:
		return "a state is PENDING, RUNNING, COMPLETED or RESOLVING"
	case held && (t.CellID == "" || t.InstanceGUID == ""):
		return "a cell and an instance guid come together"
	case t.State == Running && !held:
		return "a RUNNING task has a cell"
	case t.State == Pending && held:
		return "a PENDING task is on no cell"
	case t.Failed != (t.FailureReason != ""):
		return "a failed task, and no other, has a failure reason"
	case t.Failed && !ended:
		return "only a COMPLETED or RESOLVING task has failed"
	case t.Result != "" && (t.Failed || !ended):
		return "only a COMPLETED or RESOLVING task that has not failed has a result"
	case len(t.FailureReason) > executor.MaxReasonBytes, len(t.RejectionReason) > executor.MaxReasonBytes:
		return "a reason is at most 1024 bytes"
	case len(t.Result) > MaxResultBytes:
		return "a result is at most 51200 bytes"
	case t.RejectionCount < 0:
		return "a rejection count is at least 0"
	case (t.RejectionCount > 0) != (t.RejectionReason != ""):
		return "a rejected task, and no other, has a rejection reason"
	case !recordable(t.CreatedAt), !recordable(t.UpdatedAt), ended && !recordable(t.FirstCompletedAt):
		return "a time is between 1970 and 2262"
	case (t.State == Pending || t.State == Running) && !t.FirstCompletedAt.IsZero():
		return "a task that has not ended was never COMPLETED"
	case t.ModificationTag.Epoch == 0 || t.ModificationTag.Index < 0:
		return "a task has a modification tag"
	}
	return ""
}

// checkCommand checks the arguments of a command, and now.
func checkCommand(c Command, now time.Time) error {
	var v executor.Validator
	switch c := c.(type) {
	case Desire:
		v.Check(c.GUID != "", "task_guid", "", "a guid")
		v.Check(c.Domain != "", "domain", "", "a domain")
		c.Definition.validate(&v)
	case Start:
		checkContainer(&v, c.CellID, c.InstanceGUID)
	case Complete:
		checkContainer(&v, c.CellID, c.InstanceGUID)
		v.Check(c.Failed == (c.FailureReason != ""), "failure_reason", c.FailureReason, "a reason if failed, and none if not")
		v.Check(c.Result == "" || !c.Failed, "result", bytes(len(c.Result)), "none if failed")
		v.Check(len(c.Result) <= MaxResultBytes, "result", bytes(len(c.Result)), "at most 51200 bytes")
	case Reject:
		v.Check((c.CellID == "") == (c.InstanceGUID == ""), "instance_guid", c.InstanceGUID, "set if and only if cell_id is")
		v.Check(c.Reason != "", "reason", "", "a reason")
	case Fail:
		v.Check(c.Reason != "", "reason", "", "a reason")
	case CellMissing:
		v.Check(c.CellID != "", "cell_id", "", "a cell")
	case Cancel, Resolve, Delete, RequestAgain, ExpirePending, DemoteResolving, RequestCallback, ExpireCompleted:
	default:
		v.Check(false, "command", "", "a command of this package, by value")
	}
	if !recordable(now) {
		v.Check(false, "now", now, "a time between 1970 and 2262")
	}
	return v.Err()
}

func checkContainer(v *executor.Validator, cell, instance string) {
	v.Check(cell != "", "cell_id", "", "a cell")
	v.Check(instance != "", "instance_guid", "", "an instance guid")
}

var (
	beginning = time.Unix(0, 0)
	ending    = time.Unix(0, math.MaxInt64)
)

// recordable reports whether t can be told in nanoseconds since 1970, and is
// not taken for the zero time then.
func recordable(t time.Time) bool { return t.After(beginning) && t.Before(ending) }

// bytes shows a length where the text is too long to show.
func bytes(n int) string { return fmt.Sprintf("%d bytes", n) }
