package executor_test

import (
	"encoding/json"
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

func TestATimestampIsRFC3339InUTCAndOldNumbersAreReadToo(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, c := range []struct {
		text string
		want time.Time
		// written is how the time is written again.
		written string
	}{
		{`"2026-01-02T03:04:05.000000006Z"`, at, `"2026-01-02T03:04:05.000000006Z"`},
		{`"2026-01-02T04:04:05.000000006+01:00"`, at, `"2026-01-02T03:04:05.000000006Z"`},
		{`"2026-01-02T03:04:05Z"`, at.Add(-6), `"2026-01-02T03:04:05Z"`},
		{"1767323045000000006", at, `"2026-01-02T03:04:05.000000006Z"`},
		{"0", time.Time{}, `"0001-01-01T00:00:00Z"`},
	} {
		var read executor.Timestamp
		if err := json.Unmarshal([]byte(c.text), &read); err != nil || time.Time(read) != c.want {
			t.Errorf("%s: read %v, %v, want %v", c.text, time.Time(read), err, c.want)
		}
		if written, err := json.Marshal(read); err != nil || string(written) != c.written {
			t.Errorf("%s: written %s, %v, want %s", c.text, written, err, c.written)
		}
	}
	kept := executor.Timestamp(at)
	for _, text := range []string{`"yesterday"`, `""`, "1.5", "9223372036854775808", "true", `{}`, `"2026-01-02"`} {
		if err := json.Unmarshal([]byte(text), &kept); err == nil || time.Time(kept) != at {
			t.Errorf("%s: read %v, %v", text, time.Time(kept), err)
		}
	}
	if text, err := json.Marshal(struct {
		At executor.Timestamp `json:"at,omitzero"`
	}{}); err != nil || string(text) != "{}" {
		t.Errorf("no time is %s, %v", text, err)
	}
	if _, err := json.Marshal(executor.Timestamp(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))); err == nil {
		t.Error("a year is written that RFC 3339 cannot hold")
	}
}

func TestAClockInUTCTellsTheSameTime(t *testing.T) {
	east := time.Date(2026, 1, 1, 1, 0, 0, 5, time.FixedZone("east", 3600))
	if got := executor.UTC(func() time.Time { return east })(); !got.Equal(east) || got.Location() != time.UTC {
		t.Errorf("%v", got)
	}
}
