package task

import (
	"cmp"
	"time"

	"github.com/diegosdk/diego/executor"
)

// Policy holds the knobs of [Step]. The zero value means the documented
// defaults.
type Policy struct {
	// MaxRetries is how often a rejected task is tried again (default 3; negative
	// means never; values above 1<<30 count as 1<<30).
	MaxRetries int
	// StalePending is how long a task is PENDING, since its creation or its
	// last rejection, before its start is requested again (default 30 s).
	StalePending time.Duration
	// ExpirePending is how long after its creation a task that is still
	// PENDING fails (default 30 min).
	ExpirePending time.Duration
	// StaleCompleted is how long a task is COMPLETED before its callback is
	// requested again (default 30 s).
	StaleCompleted time.Duration
	// StaleResolving is how long a task is RESOLVING before it is put back to
	// COMPLETED (default 30 s). It should be longer than
	// CallbackPolicy.Longest, or a slow callback is made twice.
	StaleResolving time.Duration
	// ExpireCompleted is how long after it first was COMPLETED a task is
	// removed, whether or not anyone has seen it (default 2 min).
	ExpireCompleted time.Duration
}

// Validate checks that no time is negative.
func (p Policy) Validate(v *executor.Validator) {
	executor.NotNegative(v, "stale_pending", p.StalePending)
	executor.NotNegative(v, "expire_pending", p.ExpirePending)
	executor.NotNegative(v, "stale_completed", p.StaleCompleted)
	executor.NotNegative(v, "stale_resolving", p.StaleResolving)
	executor.NotNegative(v, "expire_completed", p.ExpireCompleted)
}

// maxRetries keeps rejection counts from overflowing.
const maxRetries = 1 << 30

func (p Policy) withDefaults() Policy {
	return Policy{
		MaxRetries:      min(max(cmp.Or(p.MaxRetries, 3), 0), maxRetries),
		StalePending:    cmp.Or(p.StalePending, 30*time.Second),
		ExpirePending:   cmp.Or(p.ExpirePending, 30*time.Minute),
		StaleCompleted:  cmp.Or(p.StaleCompleted, 30*time.Second),
		StaleResolving:  cmp.Or(p.StaleResolving, 30*time.Second),
		ExpireCompleted: cmp.Or(p.ExpireCompleted, 2*time.Minute),
	}
}
