package lrp

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// Policy holds the knobs of [Step]. The zero value means the documented
// defaults.
type Policy struct {
	Restart RestartPolicy
	// StaleUnclaimed is how long a record is UNCLAIMED before its start is
	// requested again, and how long it is Stopping before the cell is told again
	// (default 30 s).
	StaleUnclaimed time.Duration
	// EvacuationTimeout is how long an EVACUATING record lives, at most, after its
	// cell last asked about the instance (default 10 min). It lives for less if
	// the cell gives itself less time.
	EvacuationTimeout time.Duration
	// RolloutGiveUp is how long a rollout waits for one index before it goes
	// on without it (default 10 min).
	RolloutGiveUp time.Duration
	// History is how many revisions before the active one a deployment keeps, with
	// their definitions (default 5; negative means none). The limit is MaxHistory.
	History int
}

// RestartPolicy says when a crashed instance starts again (000 §Crashes). The
// zero value means the documented defaults.
type RestartPolicy struct {
	// ImmediateRestarts is the number of crashes after which an instance
	// restarts at once (default 3; negative means none).
	ImmediateRestarts int `json:"immediate_restarts,omitempty"`
	// MaxRestarts is the crash count above which an instance is never
	// restarted (default 200; negative means it is restarted for ever).
	MaxRestarts int `json:"max_restarts,omitempty"`
	// MinBackoff is the wait at a crash count of 3 or less; it doubles with each
	// further crash (default 30 s). With three immediate restarts, the first crash
	// with a wait makes the count 4, so that wait is twice as long.
	MinBackoff time.Duration `json:"min_backoff_nanoseconds,omitempty"`
	// MaxBackoff is the longest wait (default 16 min).
	MaxBackoff time.Duration `json:"max_backoff_nanoseconds,omitempty"`
	// ResetAfter is how long an instance must have been RUNNING so that its next
	// crash counts from 0 (default 5 min).
	ResetAfter time.Duration `json:"reset_after_nanoseconds,omitempty"`
}

// For returns the policy for one process: p with the restart policy of d, as
// far as p's allows (see RestartPolicy.Within). d is nil if nothing is desired.
func (p Policy) For(d *Deployment) Policy {
	if d != nil {
		p.Restart = d.Restart.Within(p.Restart)
	}
	return p
}

// Allows refuses a change that gives a process a restart policy beyond p's. The
// error is an *[executor.ValidationError].
func (p Policy) Allows(c Change) error {
	var v executor.Validator
	if c.After != nil && (c.Before == nil || !sameRestarts(c.Before.Restart, c.After.Restart)) {
		c.After.Restart.CheckWithin(v.In("restart_policy"), p.Restart)
	}
	return v.Err()
}

// sameRestarts reports whether two policies are equal. An update may repeat a
// policy that was allowed when it was made.
func sameRestarts(a, b *RestartPolicy) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Validate checks that no time is negative, that History is at most MaxHistory,
// and that MinBackoff, if it is set, is not above MaxBackoff or the default of
// MaxBackoff.
func (p Policy) Validate(v *executor.Validator) {
	p.Restart.validate(v.In("restart"))
	executor.NotNegative(v, "stale_unclaimed", p.StaleUnclaimed)
	executor.NotNegative(v, "evacuation_timeout", p.EvacuationTimeout)
	executor.NotNegative(v, "rollout_give_up", p.RolloutGiveUp)
	v.Check(p.History <= MaxHistory, "history", p.History, "at most 10")
}

func (p RestartPolicy) validate(v *executor.Validator) {
	executor.NotNegative(v, "min_backoff", p.MinBackoff)
	executor.NotNegative(v, "max_backoff", p.MaxBackoff)
	executor.NotNegative(v, "reset_after", p.ResetAfter)
	executor.AtMost(v, "min_backoff", p.MinBackoff, "max_backoff", orDefault(p.MaxBackoff, defaultMaxBackoff))
}

const (
	defaultStaleUnclaimed    = 30 * time.Second
	defaultEvacuationTimeout = 10 * time.Minute
	defaultRolloutGiveUp     = 10 * time.Minute
)

// StaleFrom returns when the start of r should be requested again, because r
// has been UNCLAIMED for too long (000 §Convergence 5). ever is false for a
// record in another state, which is never stale.
func (p Policy) StaleFrom(r *ActualLRP) (at time.Time, ever bool) {
	if r.State != Unclaimed {
		return time.Time{}, false
	}
	return r.Since.Add(orDefault(p.StaleUnclaimed, defaultStaleUnclaimed)), true
}

// StopOverdueFrom returns when the cell should be told again to stop the
// instance of r, because the order may be lost. ever is false unless r is
// ORDINARY and Stopping: the cell of a SUSPECT record cannot be told.
func (p Policy) StopOverdueFrom(r *ActualLRP) (at time.Time, ever bool) {
	if r.Presence != Ordinary || r.Stopping.IsZero() {
		return time.Time{}, false
	}
	return r.Stopping.Add(orDefault(p.StaleUnclaimed, defaultStaleUnclaimed)), true
}
