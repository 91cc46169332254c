package manager

import (
	"testing"
	"time"
)

func TestLongPausesEndAtWholeSeconds(t *testing.T) {
	for _, test := range []struct{ after, pause, want time.Duration }{
		{0, 500 * time.Millisecond, 500 * time.Millisecond},
		{300 * time.Millisecond, 9999 * time.Millisecond, 9999 * time.Millisecond},
		{0, 10 * time.Second, 10 * time.Second},
		{300 * time.Millisecond, 10 * time.Second, 9700 * time.Millisecond},
		{999 * time.Millisecond, 30 * time.Second, 29001 * time.Millisecond},
		{0, 30*time.Second + 1, 30 * time.Second},
	} {
		now := time.Unix(1_700_000_000, 0).Add(test.after)
		if got := inStep(now, test.pause); got != test.want {
			t.Errorf("%v after a whole second, a pause of %v takes %v, want %v", test.after, test.pause, got, test.want)
		}
	}
}
