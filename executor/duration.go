package executor

import (
	"fmt"
	"math"
	"time"
)

// MaxMilliseconds is the longest time that a field in milliseconds may hold,
// about 292 years: more does not fit a time.Duration.
const MaxMilliseconds = math.MaxInt64 / int64(time.Millisecond)

// milliseconds converts a validated field. What is out of range is clamped,
// so that a bad record never turns a long time into a negative one.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), MaxMilliseconds)) * time.Millisecond
}

// milliseconds checks a field that holds a time of at least least.
func (v *Validator) milliseconds(field string, ms, least int64) {
	v.Check(least <= ms && ms <= MaxMilliseconds, field, ms,
		fmt.Sprintf("%d to %d milliseconds", least, MaxMilliseconds))
}
