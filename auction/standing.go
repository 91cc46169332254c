package auction

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrPaused is the error of cells that are left out of rounds for a while. It
// is always wrapped in a [*PausedError].
var ErrPaused = errors.New("left out for a while")

// A PausedError says why a cell was not asked, and until when.
type PausedError struct {
	// Reason is Silent or Failing.
	Reason CellReason
	// Until is when the cell is asked again.
	Until time.Time
	// Failures is how many hand-overs to the cell have failed in a row, and Last
	// is the error of the last.
	Failures int
	Last     string
}

func (e *PausedError) Error() string {
	why := "it has missed a deadline"
	if e.Reason == Failing {
		why = fmt.Sprintf("the last %d hand-overs of work to it have failed", e.Failures)
	}
	if e.Last != "" {
		why += "; the last failure: " + e.Last
	}
	return fmt.Sprintf("left out until %s: %s", e.Until.UTC().Format(time.RFC3339), why)
}

// Unwrap returns ErrPaused.
func (e *PausedError) Unwrap() error { return ErrPaused }

// A standing is what a Runner remembers about a cell's behaviour. The zero
// value belongs to a cell that has never failed.
type standing struct {
	// silentUntil is when a cell that has missed a deadline is asked again, and misses how
	// many it has missed since it last reported its state.
	silentUntil time.Time
	misses      int
	// failures is how many hand-overs have failed since the last success, and last
	// is the error of the last.
	failures int
	last     string
	// weight is the sum of these failures at the time at, where each counts half
	// after every half-life.
	weight float64
	at     time.Time
}

// failed is the standing after a failed hand-over: the cell did not answer, or
// it took nothing.
func (s standing) failed(now time.Time, halfLife time.Duration, how string) standing {
	age := max(0, now.Sub(s.at))
	s.weight = 1 + s.weight*math.Exp2(-age.Seconds()/halfLife.Seconds())
	s.failures++
	s.last, s.at = how, now
	return s
}

// missed is the standing after a missed deadline. The cell is left out for a moment at first,
// and for twice as long each time, up to longest: a busy cell may be late once.
func (s standing) missed(now time.Time, first, longest time.Duration) standing {
	s.silentUntil = now.Add(min(longest, first<<min(s.misses, 16)))
	s.misses++
	return s
}

// answered is the standing after a report of the cell's state.
func (s standing) answered() standing {
	s.misses = 0
	return s
}

// took is the standing after a hand-over of which the cell took something.
func (s standing) took() standing { return standing{silentUntil: s.silentUntil, misses: s.misses} }

// failingUntil is when the failures no longer weigh more than one. A single
// failure weighs one when it happens, so it pauses no cell.
func (s standing) failingUntil(halfLife time.Duration) time.Time {
	if s.weight <= 1 {
		return s.at
	}
	return s.at.Add(time.Duration(math.Log2(s.weight) * float64(halfLife)))
}

// paused returns why the cell is left out at the given time, or nil.
func (s standing) paused(now time.Time, halfLife time.Duration) *PausedError {
	if now.Before(s.silentUntil) {
		return &PausedError{Reason: Silent, Until: s.silentUntil, Failures: s.failures, Last: s.last}
	}
	if until := s.failingUntil(halfLife); halfLife > 0 && now.Before(until) {
		return &PausedError{Reason: Failing, Until: until, Failures: s.failures, Last: s.last}
	}
	return nil
}

// choose decides which cells are left out of a round, and why, by their
// numbers; nil means that the cell is asked.
//
// No cell is left out for failing if that would concern more than half of the
// cells: then the work itself is at fault. No cell is left out at all if none
// would remain.
func choose(standings []standing, now time.Time, halfLife time.Duration) []*PausedError {
	paused := make([]*PausedError, len(standings))
	count := map[CellReason]int{}
	for i := range standings {
		if paused[i] = standings[i].paused(now, halfLife); paused[i] != nil {
			count[paused[i].Reason]++
		}
	}
	if 2*count[Failing] > len(standings) {
		count[Failing] = 0
	}
	for i, p := range paused {
		if p != nil && (count[p.Reason] == 0 || count[Silent]+count[Failing] == len(standings)) {
			paused[i] = nil
		}
	}
	return paused
}
