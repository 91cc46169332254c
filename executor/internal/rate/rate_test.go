package rate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor/internal/rate"
)

func TestARateAllowsABurstAndThenAPace(t *testing.T) {
	p := rate.Rate{Every: time.Second, Burst: 3}
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
		if got := p.Turn(now, step.n); got != step.want {
			t.Errorf("at %v %d turns wait %v, want %v", now, step.n, got, step.want)
		}
	}
}

// A pace that was slow for a while must not be paid for when it is not any more.
func TestARateOwesNoMoreThanItsLongestWait(t *testing.T) {
	p := rate.Rate{Every: time.Second, Burst: 1, Longest: time.Minute}
	now := time.Unix(1_700_000_000, 0)
	for i := range 10 {
		want := time.Minute
		if i == 0 {
			want = 0
		}
		if got := p.Turn(now, 500); got != want {
			t.Errorf("turn %d waits %v, want %v", i, got, want)
		}
		now = now.Add(want)
	}
	p.Every = time.Millisecond
	for i, want := range []time.Duration{time.Minute, 500 * time.Millisecond} {
		if got := p.Turn(now, 500); got != want {
			t.Errorf("turn %d of the faster pace waits %v, want %v", i, got, want)
		}
		now = now.Add(want)
	}
}

func TestWhoWaitsForATurnStopsWithTheContext(t *testing.T) {
	p := rate.Rate{Every: time.Hour, Burst: 1}
	if err := p.Wait(t.Context(), 1); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller has gone")
	cancel(gone)
	if err := p.Wait(ctx, 1); !errors.Is(err, gone) {
		t.Errorf("it ends with %v", err)
	}
}
