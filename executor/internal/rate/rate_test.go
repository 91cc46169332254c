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
