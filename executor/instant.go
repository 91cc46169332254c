package executor

import "time"

// Times of records are kept as nanoseconds since 1970 UTC, and no time as 0.

// Recordable reports whether t can be kept: it lies between 1970 and 2262, the
// first and the last instant that nanoseconds in 64 bits reach.
func Recordable(t time.Time) bool {
	n := t.UnixNano()
	return n > 0 && time.Unix(0, n).Equal(t)
}

// Nanoseconds is the recorded form of t, which is zero or Recordable.
func Nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Instant is the time with that recorded form, in UTC.
func Instant(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}
