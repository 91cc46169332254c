package rep

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

// The clock is read a little later after one tick than after the next.
func TestRunAnnouncesTheCellInTimeHoweverLateATickIsHandled(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		announcer := &timedAnnouncer{}
		var reads atomic.Int64
		s := newStage(t, func(o *Options) {
			o.Announcer = announcer
			o.Now = func() time.Time { return time.Now().Add(time.Duration(reads.Add(7)%10) * time.Millisecond) }
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		_ = s.Run(ctx)
		for i, at := range announcer.at[1:] {
			if gap := at.Sub(announcer.at[i]); gap > DefaultAnnounceInterval+20*time.Millisecond {
				t.Errorf("between announcement %d and the next are %v", i, gap)
			}
		}
		if len(announcer.at) < 100 {
			t.Errorf("the cell was announced %d times", len(announcer.at))
		}
	})
}

// A timedAnnouncer notes when it was asked.
type timedAnnouncer struct {
	fakeAnnouncer
	at []time.Time
}

func (a *timedAnnouncer) Tick(context.Context) error { a.at = append(a.at, time.Now()); return nil }
