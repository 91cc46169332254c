package executor

// A State is a container's state (000 §Container State).
type State uint8

// The states of a container. There is no zero state: a State read from
// outside is one of these or an error.
const (
	Reserved State = iota + 1
	Initializing
	Created
	Running
	Completed
)

// RunResult says how a COMPLETED container ended (000 §RunResult). Stopped
// excludes Failed and FailureReason.
type RunResult struct {
	// Failed is true if the recipe ended with a failure.
	Failed bool `json:"failed,omitempty"`
	// FailureReason says why; it is set only with Failed.
	FailureReason string `json:"failure_reason,omitempty"`
	// Stopped is true if the container was explicitly stopped.
	Stopped bool `json:"stopped,omitempty"`
	// Retryable is true if the failure came before the work began, so that
	// doing it elsewhere does not do it twice.
	Retryable bool `json:"retryable,omitempty"`
	// Expired is true if the container was a reservation that nobody used in
	// time. It comes with Failed and Retryable and is never a crash.
	Expired bool `json:"expired,omitempty"`
}
