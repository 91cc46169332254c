package show

import (
	"fmt"
	"time"
)

// Age is how long ago t was, in at most two units: "12s", "3m5s", "40m", "2h",
// "5d". It is "-" for the zero time.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Short(now.Sub(t))
}

// Short is a duration in at most two units.
func Short(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, 0).Truncate(time.Second)
	two := func(big, small time.Duration, bigName, smallName string) string {
		text := fmt.Sprintf("%d%s", d/big, bigName)
		if rest := d % big / small; rest > 0 && d/big < 10 {
			text += fmt.Sprintf("%d%s", rest, smallName)
		}
		return text
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "m", "s")
	case d < day:
		return two(time.Hour, time.Minute, "h", "m")
	}
	return two(day, time.Hour, "d", "h")
}
