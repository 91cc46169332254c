package executor

import "fmt"

// A RunResult says how a COMPLETED container ended (000 §RunResult). The zero
// value is success; Stopped excludes Failed and FailureReason.
type RunResult struct {
	// Failed is true if the recipe ended with a failure.
	Failed bool `json:"failed,omitempty"`
	// FailureReason says why, in at most MaxReasonBytes. It is set if Failed
	// is, and only then.
	FailureReason string `json:"failure_reason,omitempty"`
	// Stopped is true if the container was explicitly stopped, regardless of
	// what its processes did then.
	Stopped bool `json:"stopped,omitempty"`
	// Retryable is true if the failure came before the work began, so that
	// doing it elsewhere does not do it twice. It is set only with Failed.
	Retryable bool `json:"retryable,omitempty"`
	// Expired is true if the container was a reservation that nobody used in
	// time. It comes with Failed and Retryable and is never a crash.
	Expired bool `json:"expired,omitempty"`
}

// Succeeded returns the result of a recipe that ended well.
func Succeeded() RunResult { return RunResult{} }

// Failed returns the result of a recipe that failed once its work had begun. A
// reason that is too long is cut, and an empty one replaced.
func Failed(reason string) RunResult {
	if reason == "" {
		reason = "failed without saying why"
	}
	return RunResult{Failed: true, FailureReason: CutReason(reason)}
}

// Stopped returns the result of a container that was told to stop at any point
// of its life.
func Stopped() RunResult { return RunResult{Stopped: true} }

// NeverBegan returns the result of a container that failed before its work
// began: it could not be created, or something that it needs could not be
// fetched. The reason is treated as in [Failed].
func NeverBegan(reason string) RunResult {
	r := Failed(reason)
	r.Retryable = true
	return r
}

// Expired returns the result of a reservation that waited too long for its
// work.
func Expired() RunResult {
	r := NeverBegan("the reservation expired unused")
	r.Expired = true
	return r
}

// Validate checks that the fields do not contradict each other.
func (r RunResult) Validate(v *Validator) {
	v.Check(!r.Stopped || !r.Failed, "stopped", r.Stopped, "not with failed")
	v.Check(r.Failed == (r.FailureReason != ""), "failure_reason", r.FailureReason, "a reason if failed, and none if not")
	v.Check(r.FailureReason == CutReason(r.FailureReason), "failure_reason", r.FailureReason,
		fmt.Sprintf("at most %d bytes of UTF-8", MaxReasonBytes))
	v.Check(r.Failed || !r.Retryable, "retryable", r.Retryable, "only with failed")
	v.Check(r.Failed && r.Retryable || !r.Expired, "expired", r.Expired, "only with failed and retryable")
}
