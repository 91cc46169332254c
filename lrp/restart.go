package lrp

import "time"

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

// AtOnce reports whether an instance with this crash count, without the crash
// that is being decided, restarts at once.
func (p RestartPolicy) AtOnce(crashCount int) bool {
	return crashCount < orDefault(p.ImmediateRestarts, defaultImmediateRestarts)
}

// Next is when an instance that has been CRASHED with this count since then
// starts again: after MinBackoff · 2^(count−3), at most MaxBackoff; above
// MaxRestarts, never.
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

// Count is the crash count for the decision about a crash at now: the record's,
// or 0 if the instance has been running for long enough.
func (p RestartPolicy) Count(r *ActualLRP, now time.Time) int {
	if r.State == Running && now.Sub(r.RunningSince) >= orDefault(p.ResetAfter, defaultResetAfter) {
		return 0
	}
	return r.CrashCount
}

func orDefault[T comparable](value, def T) T {
	var zero T
	if value == zero {
		return def
	}
	return value
}
