package executor

import "time"

// An Alarm compares moments with the present and remembers the earliest one
// that lies ahead. A decision that depends on the time through an Alarm alone
// stays the same until then. One goroutine at a time may use an Alarm.
type Alarm struct {
	// Now is the present.
	Now time.Time
	// Next is the earliest moment that Reached was asked about and that lies
	// ahead; zero if there was none.
	Next time.Time
}

// Reached reports whether at is not in the future.
func (a *Alarm) Reached(at time.Time) bool {
	if !a.Now.Before(at) {
		return true
	}
	if a.Next.IsZero() || at.Before(a.Next) {
		a.Next = at
	}
	return false
}
