package transfer

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor/internal/rate"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestWhatIsCompressedForAllUploadsTogetherHasARate(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		shared := rate.Rate{Every: packEvery, Burst: packBurst}
		second := strings.Repeat("x", packBurst<<10)
		began := time.Now()
		over := make(chan time.Duration)
		for range 4 {
			go func() {
				if _, err := io.Copy(io.Discard, &rated{t.Context(), &shared, strings.NewReader(second)}); err != nil {
					t.Error(err)
				}
				over <- time.Since(began).Round(time.Second / 10)
			}()
		}
		var last time.Duration
		for range 4 {
			last = <-over
		}
		if last != 3*time.Second { // one second's worth is free
			t.Errorf("four seconds' worth takes %v, want 3s", last)
		}
		time.Sleep(time.Minute)
		began = time.Now()
		if _, err := io.Copy(io.Discard, &rated{t.Context(), &shared, strings.NewReader(second)}); err != nil || time.Since(began) != 0 {
			t.Errorf("after a rest a second's worth takes %v, %v", time.Since(began), err)
		}
	})
}
