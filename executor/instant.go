package executor

import (
	"fmt"
	"strconv"
	"time"
)

// In memory a time is a time.Time in UTC. In JSON it is RFC 3339 in UTC, to
// the nanosecond. Binary encodings and databases hold its [Nanoseconds].

// UTC returns the clock with its times in UTC.
func UTC(clock func() time.Time) func() time.Time {
	return func() time.Time { return clock().UTC() }
}

// A Timestamp is the JSON form of a time: "2026-01-02T03:04:05.000000006Z". It
// also reads the nanoseconds since 1970 that earlier releases wrote, with 0 for
// no time.
type Timestamp time.Time

// IsZero is for the JSON option omitzero.
func (t Timestamp) IsZero() bool { return time.Time(t).IsZero() }

// MarshalJSON fails on a year that RFC 3339 cannot express.
func (t Timestamp) MarshalJSON() ([]byte, error) { return time.Time(t).UTC().MarshalJSON() }

// UnmarshalJSON fails on text that is neither RFC 3339 nor a whole number.
func (t *Timestamp) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if n, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*t = Timestamp(Instant(n))
		return nil
	}
	var at time.Time
	if err := at.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("%s is not a time such as \"2026-01-02T03:04:05Z\"", data)
	}
	*t = Timestamp(at.UTC())
	return nil
}

// Recordable reports whether t can be kept: it lies between 1970 and 2262, the
// first and the last instant that nanoseconds in 64 bits reach.
func Recordable(t time.Time) bool {
	n := t.UnixNano()
	return n > 0 && time.Unix(0, n).Equal(t)
}

// Nanoseconds returns the nanoseconds from 1970 to t, which is zero or
// Recordable; 0 stands for no time.
func Nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Instant returns the time with those [Nanoseconds], in UTC.
func Instant(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}
