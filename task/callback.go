package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
)

// A CallbackResponse is the body that a completion callback receives.
type CallbackResponse struct {
	TaskGUID      string    `json:"task_guid"`
	Failed        bool      `json:"failed"`
	FailureReason string    `json:"failure_reason"`
	Result        string    `json:"result"`
	Annotation    string    `json:"annotation,omitempty"`
	CreatedAt     time.Time `json:"-"` // see MarshalJSON
}

// CallbackResponse returns the body of the completion callback of a COMPLETED
// or RESOLVING task.
func (t *Task) CallbackResponse() CallbackResponse {
	return CallbackResponse{
		TaskGUID: t.GUID, Failed: t.Failed, FailureReason: t.FailureReason,
		Result: t.Result, Annotation: t.Annotation, CreatedAt: t.CreatedAt,
	}
}

type plainResponse CallbackResponse

type wireResponse struct {
	plainResponse
	CreatedAt executor.Timestamp `json:"created_at"`
}

// MarshalJSON fails on a CreatedAt that is not between 1970 and 2262.
func (r CallbackResponse) MarshalJSON() ([]byte, error) {
	var v executor.Validator
	checkTime(&v, "created_at", r.CreatedAt)
	if err := v.Err(); err != nil {
		return nil, err
	}
	return json.Marshal(wireResponse{plainResponse(r), executor.Timestamp(r.CreatedAt)})
}

// UnmarshalJSON reads what MarshalJSON writes. It replaces all of r, or fails
// and leaves r as it was.
func (r *CallbackResponse) UnmarshalJSON(data []byte) error {
	var w wireResponse
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*r = CallbackResponse(w.plainResponse)
	r.CreatedAt = time.Time(w.CreatedAt)
	return nil
}

// CallbackPolicy says how a completion callback is made. The zero value means
// the documented defaults. With them, a callback is over before
// Policy.StaleResolving. A negative duration means 0. A control plane refuses a
// negative Timeout, because it leaves an attempt no time for an answer.
type CallbackPolicy struct {
	// MaxAttempts is how often the callback is tried in a row (default 3;
	// negative means once).
	MaxAttempts int
	// Timeout is how long one attempt may take (default 8 s). The sender of the
	// request enforces it.
	Timeout time.Duration
	// MinBackoff is the wait after the first attempt (default 1 s); it
	// doubles with every attempt.
	MinBackoff time.Duration
	// MaxBackoff is the longest wait (default 4 s).
	MaxBackoff time.Duration
}

// WithDefaults returns p with its zero values replaced by their defaults.
func (p CallbackPolicy) WithDefaults() CallbackPolicy {
	return CallbackPolicy{
		MaxAttempts: max(cmp.Or(p.MaxAttempts, 3), 1),
		Timeout:     max(cmp.Or(p.Timeout, 8*time.Second), 0),
		MinBackoff:  max(cmp.Or(p.MinBackoff, time.Second), 0),
		MaxBackoff:  max(cmp.Or(p.MaxBackoff, 4*time.Second), 0),
	}
}

// Validate checks that MinBackoff, if it is set, is not above MaxBackoff or the
// default of MaxBackoff.
func (p CallbackPolicy) Validate(v *executor.Validator) {
	executor.AtMost(v, "min_backoff", p.MinBackoff, "max_backoff", p.WithDefaults().MaxBackoff)
}

// A CallbackAction is what to do after an attempt at a callback.
type CallbackAction uint8

const (
	// Delivered: send Delete.
	Delivered CallbackAction = iota + 1
	// TryAgain: call again after CallbackVerdict.Wait.
	TryAgain
	// LeaveIt: send nothing. The task stays RESOLVING, and can be polled, until
	// convergence requests its callback again or it expires.
	LeaveIt
)

var callbackActionNames = enum.Names[CallbackAction]{Delivered: "delivered", TryAgain: "try again", LeaveIt: "leave it"}

// String is "delivered", "try again" or "leave it".
func (a CallbackAction) String() string { return callbackActionNames.Of(a) }

// A CallbackVerdict says what to do after an attempt at a callback, and why.
type CallbackVerdict struct {
	Action CallbackAction
	// Wait is how long to wait before TryAgain.
	Wait   time.Duration
	Reason string
}

// A CallbackOutcome is the outcome of one attempt at a callback.
type CallbackOutcome struct {
	// Status is the HTTP status of the answer, after redirects; 0 means that no
	// answer came, because of a timeout, a broken connection or an unknown name.
	Status int
}

// A CallbackRule gives the meaning of answers with a status between From and
// To, both included. The first rule that matches counts.
type CallbackRule struct {
	From, To int
	Action   CallbackAction
	Reason   string
}

// A task is deleted only if the answer says that the consumer has the result or
// wants none.
var callbackRules = []CallbackRule{
	{0, 0, TryAgain, "no answer"},
	{200, 299, Delivered, "the consumer has the result"},
	{410, 410, Delivered, "the consumer says for good that it wants no result"},
	{408, 408, TryAgain, "the consumer did not get the request in time"},
	{425, 425, TryAgain, "the consumer asks for another attempt"},
	{429, 429, TryAgain, "the consumer asks for patience"},
	{500, 599, TryAgain, "the consumer is in trouble"},
	{300, 399, LeaveIt, "the consumer is elsewhere: correct the URL"},
	{400, 499, LeaveIt, "the consumer refuses the request as it is, so it is not repeated at once"},
}

var unknownStatus = CallbackRule{Action: LeaveIt, Reason: "the answer's status means nothing to HTTP"}

// CallbackRules returns the rules of [CallbackPolicy.Next] in order. Callers
// may change the copy.
func CallbackRules() []CallbackRule { return slices.Clone(callbackRules) }

// Next decides what to do after an attempt with this outcome. attempt is its
// number, counted from 1. When the attempts are used up, TryAgain becomes
// LeaveIt. A status that no rule has means LeaveIt.
func (p CallbackPolicy) Next(outcome CallbackOutcome, attempt int) CallbackVerdict {
	p = p.WithDefaults()
	rule := unknownStatus
	for _, r := range callbackRules {
		if r.From <= outcome.Status && outcome.Status <= r.To {
			rule = r
			break
		}
	}
	switch {
	case rule.Action != TryAgain:
		return CallbackVerdict{Action: rule.Action, Reason: rule.Reason}
	case attempt >= p.MaxAttempts:
		return CallbackVerdict{Action: LeaveIt, Reason: fmt.Sprintf("%s, %d times", rule.Reason, attempt)}
	}
	return CallbackVerdict{Action: TryAgain, Wait: p.wait(attempt), Reason: rule.Reason}
}

// Longest returns how long a callback may take with all its attempts and waits.
func (p CallbackPolicy) Longest() time.Duration {
	p = p.WithDefaults()
	longest := p.Timeout
	for attempt := 1; attempt < p.MaxAttempts; attempt++ {
		longest += p.wait(attempt) + p.Timeout
	}
	return longest
}

// wait is the wait after the attempt: MinBackoff·2^(attempt−1), at most
// MaxBackoff.
func (p CallbackPolicy) wait(attempt int) time.Duration {
	wait := p.MinBackoff
	for range attempt - 1 {
		if wait > p.MaxBackoff/2 {
			return p.MaxBackoff
		}
		wait *= 2
	}
	return min(wait, p.MaxBackoff)
}
