package memcell

import "time"

// A Clock is virtual time: it stands still until Advance moves it. It is for one
// goroutine.
type Clock struct{ now time.Time }

// NewClock returns a clock that begins on 1 January 2026 at noon UTC.
func NewClock() *Clock { return &Clock{time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)} }

// Now is the current virtual time.
func (c *Clock) Now() time.Time { return c.now }

// Advance moves the clock ahead by d.
func (c *Clock) Advance(d time.Duration) { c.now = c.now.Add(d) }
