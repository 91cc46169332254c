package simulation

import "time"

// A Clock stands still until it is told to go on.
type Clock struct{ now time.Time }

// NewClock begins at noon.
func NewClock() *Clock { return &Clock{time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time { return c.now }

// Advance lets d pass.
func (c *Clock) Advance(d time.Duration) { c.now = c.now.Add(d) }
