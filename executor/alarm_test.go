package executor_test

import (
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

func TestAnAlarmRemembersTheEarliestMomentAhead(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := executor.Alarm{Now: now}
	for _, c := range []struct {
		at      time.Duration
		reached bool
		next    time.Duration // 0: none
	}{
		{-time.Hour, true, 0}, {0, true, 0}, {time.Hour, false, time.Hour}, {time.Minute, false, time.Minute},
		{time.Hour, false, time.Minute}, {1, false, 1}, {-1, true, 1},
	} {
		if got := a.Reached(now.Add(c.at)); got != c.reached {
			t.Errorf("%s from now is reached: %t, want %t", c.at, got, c.reached)
		}
		if c.next == 0 && !a.Next.IsZero() || c.next != 0 && !a.Next.Equal(now.Add(c.next)) {
			t.Errorf("after %s the next moment is %v, want %s from now", c.at, a.Next, c.next)
		}
	}
}
