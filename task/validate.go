package task

import (
	"fmt"
	"math"
	"net/url"
	"time"
	"unicode/utf8"

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
	d.RunInfo.Validate(v)
	executor.ValidatePlacementTags(v, d.PlacementTags)
	if d.CompletionCallbackURL != "" {
		u, err := url.Parse(d.CompletionCallbackURL)
		v.Check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "",
			"completion_callback_url", d.CompletionCallbackURL, "an http or https URL with a host")
	}
	executor.ValidateAnnotation(v, d.Annotation)
	executor.ValidateLabels(v, d.Labels)
	executor.ValidateMetricTags(v, d.MetricTags, d.MetricsGUID)
	executor.ValidateImageCredentials(v, d.ImageUsername, d.ImagePassword)
}

// Validate checks that [Step] can have made t, and that its definition is
// within its limits. Step refuses to decide about any other record. The error
// is an *InvariantError or an *executor.ValidationError.
func (t *Task) Validate() error {
	if rule := t.broken(); rule != "" {
		return &InvariantError{GUID: t.GUID, Rule: rule}
	}
	var v executor.Validator
	checkDesired(&v, t.GUID, t.Domain, &t.Definition)
	return v.Err()
}

func checkDesired(v *executor.Validator, guid, domain string, d *Definition) {
	v.GUID("task_guid", guid)
	v.Name("domain", domain)
	d.validate(v)
}

// broken is the only list of a record's invariants. It returns the one that t
// breaks, or "".
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
	case t.RejectionCount < 0, t.RejectionCount > maxRetries && !ended:
		return "a rejection count is at least 0, and at most 1<<30 while the task is tried again"
	case (t.RejectionCount > 0) != (t.RejectionReason != ""):
		return "a rejected task, and no other, has a rejection reason"
	case !executor.Recordable(t.CreatedAt), !executor.Recordable(t.UpdatedAt), ended && !executor.Recordable(t.FirstCompletedAt):
		return "a time is between 1970 and 2262"
	case (t.State == Pending || t.State == Running) && !t.FirstCompletedAt.IsZero():
		return "a task that has not ended was never COMPLETED"
	case t.ModificationTag.Epoch == 0, t.ModificationTag.Index < 0, t.ModificationTag.Index == math.MaxInt64:
		return "a task has a modification tag that can go on"
	}
	return ""
}

// checkCommand checks the arguments of a command, and now.
func checkCommand(c Command, now time.Time) error {
	var v executor.Validator
	switch c := c.(type) {
	case Desire:
		checkDesired(&v, c.GUID, c.Domain, &c.Definition)
		executor.ValidateSize(&v, &c.Definition, c.Definition.VolumeMountedFiles)
		executor.ValidateNewPlacementTags(&v, c.Definition.PlacementTags)
		v.OneLine("domain", c.Domain) // of new tasks only
	case Start:
		checkContainer(&v, c.CellID, c.InstanceGUID)
	case Complete:
		checkContainer(&v, c.CellID, c.InstanceGUID)
		if c.Failed != (c.FailureReason != "") {
			v.Check(false, "failure_reason", c.FailureReason, "a reason if failed, and none if not")
		}
		if c.Failed && c.Result != "" {
			v.Check(false, "result", bytes(len(c.Result)), "none if failed")
		}
		if len(c.Result) > MaxResultBytes {
			v.Check(false, "result", bytes(len(c.Result)), "at most 51200 bytes")
		}
		v.Check(utf8.ValidString(c.Result), "result", "", "text in UTF-8")
	case Reject:
		if c.CellID != "" || c.InstanceGUID != "" {
			checkContainer(&v, c.CellID, c.InstanceGUID)
		}
		v.Check(c.Reason != "", "reason", "", "a reason")
	case Fail:
		v.Check(c.Reason != "", "reason", "", "a reason")
	case CellMissing:
		v.Name("cell_id", c.CellID)
	case Cancel, Resolve, Delete, RequestAgain, ExpirePending, DemoteResolving, RequestCallback, ExpireCompleted:
	default:
		v.Check(false, "command", "", "a command of this package, by value")
	}
	if !executor.Recordable(now) {
		v.Check(false, "now", now, "a time between 1970 and 2262")
	}
	return v.Err()
}

func checkContainer(v *executor.Validator, cell, instance string) {
	v.Name("cell_id", cell)
	v.Name("instance_guid", instance)
}

// bytes gives the length of a text that is too long to show.
func bytes(n int) string { return fmt.Sprintf("%d bytes", n) }
