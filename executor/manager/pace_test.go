package manager

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAPaceAllowsABurstAndThenARate(t *testing.T) {
	p := pace{every: time.Second, burst: 3}
	now := time.Unix(1_700_000_000, 0)
	for _, step := range []struct {
		after time.Duration
		n     int
		want  time.Duration
	}{
		{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, // the burst
		{0, 1, time.Second}, {0, 1, 2 * time.Second}, // in their order
		{2 * time.Second, 1, time.Second},
		{time.Hour, 2, 0}, {0, 1, 0}, {0, 1, time.Second}, // a long pause allows no more than a burst
		{time.Hour, 5, 0}, {0, 1, 3 * time.Second}, // more than a burst at once is waited for afterwards
	} {
		now = now.Add(step.after)
		if got := p.turn(now, step.n); got != step.want {
			t.Errorf("at %v %d turns wait %v, want %v", now, step.n, got, step.want)
		}
	}
}

func TestWhoWaitsForATurnStopsWithTheContext(t *testing.T) {
	p := pace{every: time.Hour, burst: 1}
	if err := p.wait(t.Context(), 1); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller has gone")
	cancel(gone)
	if err := p.wait(ctx, 1); !errors.Is(err, gone) {
		t.Errorf("it ends with %v", err)
	}
}

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
