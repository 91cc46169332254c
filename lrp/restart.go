package lrp

import (
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
)

// NextRestart says when a crashed instance starts again: at a time or
// never.
type NextRestart struct {
	// At is the time; it is zero if Never.
	At time.Time
	// Never is true if the instance is given up.
	Never bool
}

// Due reports whether the time has come.
func (n NextRestart) Due(now time.Time) bool { return !n.Never && !now.Before(n.At) }

const (
	defaultImmediateRestarts = 3
	defaultMaxRestarts       = 200
	defaultMinBackoff        = 30 * time.Second
	defaultMaxBackoff        = 16 * time.Minute
	defaultResetAfter        = 5 * time.Minute

	// backoffFrom is the crash count whose wait is MinBackoff.
	backoffFrom = 3
)

// AtOnce reports whether an instance restarts at once after a crash. crashCount
// does not include that crash.
func (p RestartPolicy) AtOnce(crashCount int) bool {
	return crashCount < orDefault(p.ImmediateRestarts, defaultImmediateRestarts)
}

// Next returns when an instance starts again that became CRASHED with this
// crash count at since. The wait is MinBackoff · 2^(count−3), at least
// MinBackoff and at most MaxBackoff. Above MaxRestarts, the instance never
// starts again.
func (p RestartPolicy) Next(crashCount int, since time.Time) NextRestart {
	if limit := orDefault(p.MaxRestarts, defaultMaxRestarts); limit >= 0 && crashCount > limit {
		return NextRestart{Never: true}
	}
	wait, longest := orDefault(p.MinBackoff, defaultMinBackoff), orDefault(p.MaxBackoff, defaultMaxBackoff)
	if doublings := max(0, crashCount-backoffFrom); doublings < 63 && wait <= longest>>doublings {
		return NextRestart{At: since.Add(wait << doublings)}
	}
	return NextRestart{At: since.Add(longest)}
}

// Count returns the crash count for the decision about a crash at now: the
// record's, or 0 if the instance has been RUNNING for ResetAfter.
func (p RestartPolicy) Count(r *ActualLRP, now time.Time) int {
	if r.State == Running && now.Sub(r.RunningSince) >= orDefault(p.ResetAfter, defaultResetAfter) {
		return 0
	}
	return r.CrashCount
}

// Within returns the policy of one process of a control plane whose policy is
// bound. Fields that p does not set are those of bound, and so are fields that
// would make restarts more frequent. If p is nil, the result is bound.
func (p *RestartPolicy) Within(bound RestartPolicy) RestartPolicy {
	if p == nil || *p == (RestartPolicy{}) {
		return bound
	}
	within := bound.resolved()
	if p.ImmediateRestarts != 0 {
		within.ImmediateRestarts = min(within.ImmediateRestarts, p.ImmediateRestarts)
	}
	switch {
	case p.MaxRestarts == 0:
	case within.MaxRestarts < 0:
		within.MaxRestarts = p.MaxRestarts
	case p.MaxRestarts > 0:
		within.MaxRestarts = min(within.MaxRestarts, p.MaxRestarts)
	}
	within.MinBackoff = max(within.MinBackoff, p.MinBackoff)
	within.MaxBackoff = max(within.MaxBackoff, p.MaxBackoff, within.MinBackoff)
	within.ResetAfter = max(within.ResetAfter, p.ResetAfter)
	return within
}

// check reports the fields of a process's policy that are wrong for any control
// plane.
func (p *RestartPolicy) check(v *executor.Validator) {
	if p == nil {
		return
	}
	executor.NotNegative(v, "min_backoff_nanoseconds", p.MinBackoff)
	executor.NotNegative(v, "max_backoff_nanoseconds", p.MaxBackoff)
	executor.NotNegative(v, "reset_after_nanoseconds", p.ResetAfter)
	if p.MaxBackoff > 0 {
		executor.AtMost(v, "min_backoff_nanoseconds", p.MinBackoff, "max_backoff_nanoseconds", p.MaxBackoff)
	}
}

// CheckWithin reports to v the fields of p that bound does not allow because
// they would make restarts more frequent. Within ignores such fields.
func (p *RestartPolicy) CheckWithin(v *executor.Validator, bound RestartPolicy) {
	if p == nil {
		return
	}
	most, got := bound.resolved(), p.Within(bound)
	v.Check(p.ImmediateRestarts == 0 || p.ImmediateRestarts == got.ImmediateRestarts, "immediate_restarts", p.ImmediateRestarts,
		fmt.Sprintf("at most %d, the control plane's", max(0, most.ImmediateRestarts)))
	v.Check(p.MaxRestarts == 0 || p.MaxRestarts == got.MaxRestarts, "max_restarts", p.MaxRestarts,
		fmt.Sprintf("at most %d, the control plane's", most.MaxRestarts))
	atLeast := func(field string, value, got, least time.Duration) {
		v.Check(value == 0 || value == got, field, value, fmt.Sprintf("at least %v, the control plane's", least))
	}
	atLeast("min_backoff_nanoseconds", p.MinBackoff, got.MinBackoff, most.MinBackoff)
	atLeast("max_backoff_nanoseconds", p.MaxBackoff, got.MaxBackoff, most.MaxBackoff)
	atLeast("reset_after_nanoseconds", p.ResetAfter, got.ResetAfter, most.ResetAfter)
}

// resolved has the defaults in place of zeros. A default of MinBackoff is not
// above MaxBackoff.
func (p RestartPolicy) resolved() RestartPolicy {
	longest := orDefault(p.MaxBackoff, defaultMaxBackoff)
	return RestartPolicy{
		ImmediateRestarts: orDefault(p.ImmediateRestarts, defaultImmediateRestarts),
		MaxRestarts:       orDefault(p.MaxRestarts, defaultMaxRestarts),
		MinBackoff:        min(orDefault(p.MinBackoff, defaultMinBackoff), longest),
		MaxBackoff:        longest,
		ResetAfter:        orDefault(p.ResetAfter, defaultResetAfter),
	}
}

func orDefault[T comparable](value, def T) T {
	var zero T
	if value == zero {
		return def
	}
	return value
}
