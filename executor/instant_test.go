package executor_test

import (
	"math"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

func TestATimeIsKeptAsItsNanosecondsAndNoTimeAsZero(t *testing.T) {
	east := time.FixedZone("east", 3600)
	for _, c := range []struct {
		name       string
		at         time.Time
		recordable bool
		kept       int64
	}{
		{"no time", time.Time{}, false, 0},
		{"1970 itself, whose form is that of no time", time.Unix(0, 0), false, 0},
		{"the first instant", time.Unix(0, 1), true, 1},
		{"a time in another zone", time.Date(2026, 1, 1, 1, 0, 0, 5, east), true, 1767225600000000005},
		{"the last instant", time.Unix(0, math.MaxInt64), true, math.MaxInt64},
		{"an instant later", time.Unix(0, math.MaxInt64).Add(1), false, math.MinInt64},
		{"before 1970", time.Unix(0, -1), false, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := executor.Recordable(c.at); got != c.recordable {
				t.Errorf("recordable: %t, want %t", got, c.recordable)
			}
			if got := executor.Nanoseconds(c.at); got != c.kept {
				t.Errorf("kept as %d, want %d", got, c.kept)
			}
			if c.recordable || c.at.IsZero() {
				if got := executor.Instant(c.kept); !got.Equal(c.at) || got.Location() != time.UTC {
					t.Errorf("read as %v, want %v in UTC", got, c.at)
				}
			}
		})
	}
}
