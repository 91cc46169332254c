package auction

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestACellIsLeftOutWhileItsFailuresWeighMoreThanOne(t *testing.T) {
	const halfLife = 2 * time.Minute
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	// In a history, f is a hand-over that failed, s is one that succeeded, and a dot
	// is a minute without one.
	for _, tt := range []struct {
		history string
		paused  time.Duration // from the end of the history
	}{
		{"", 0},
		{"f", 0},
		{"ff", 2 * time.Minute},
		{"ff..", 0},
		{"fff", 3*time.Minute + 10*time.Second},
		{"ff..f", 2 * time.Minute},
		{"ffs", 0},
		{"ffsf", 0},
		{"f..f", time.Minute + 10*time.Second},
		{"f....................f", 0},
	} {
		t.Run(fmt.Sprintf("%q", tt.history), func(t *testing.T) {
			var s standing
			now := start
			for _, step := range tt.history {
				switch step {
				case 'f':
					s = s.failed(now, halfLife, "evacuating")
				case 's':
					s = s.took()
				default:
					now = now.Add(time.Minute)
				}
			}
			got := time.Duration(0)
			if p := s.paused(now, halfLife); p != nil {
				got = p.Until.Sub(now)
			}
			if got.Round(10*time.Second) != tt.paused {
				t.Errorf("paused for %v, want about %v", got, tt.paused)
			}
			if p := s.paused(now, -1); p != nil {
				t.Errorf("paused although failures do not count: %v", p)
			}
		})
	}
}

func TestNoMoreThanHalfOfTheCellsAreLeftOutForFailingAndNeverAll(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	failing := standing{}.failed(now, time.Minute, "x").failed(now, time.Minute, "x")
	silent := standing{silentUntil: now.Add(time.Second)}
	for _, tt := range []struct{ good, failing, silent, asked int }{
		{0, 0, 0, 0}, {1, 0, 0, 1}, {0, 1, 0, 1}, {0, 0, 1, 1}, {1, 1, 0, 1}, {1, 2, 0, 3},
		{1, 0, 5, 1}, {0, 1, 1, 2}, {0, 2, 1, 2}, {2, 2, 1, 2}, {5, 4, 0, 5},
	} {
		var list []standing
		for range tt.good {
			list = append(list, standing{})
		}
		for range tt.failing {
			list = append(list, failing)
		}
		for range tt.silent {
			list = append(list, silent)
		}
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		asked := 0
		for _, p := range choose(list, now, time.Minute) {
			if p == nil {
				asked++
			}
		}
		if asked != tt.asked {
			t.Errorf("%+v: %d are asked", tt, asked)
		}
	}
}

// A busy cell may be late once, and there may be no other with room.
func TestACellThatMissesDeadlinesIsLeftOutForLongerEachTime(t *testing.T) {
	const first, longest = 2 * time.Second, 30 * time.Second
	now := time.Unix(1e9, 0)
	var s standing
	miss := func(want time.Duration) {
		t.Helper()
		s = s.missed(now, first, longest)
		if got := s.silentUntil.Sub(now); got != want {
			t.Errorf("after %d misses it is left out for %v, want %v", s.misses, got, want)
		}
	}
	for _, want := range []time.Duration{2, 4, 8, 16, 30, 30} {
		miss(want * time.Second)
	}
	if s = s.took(); s.misses != 6 {
		t.Errorf("work that it takes makes it %d misses", s.misses)
	}
	for range 100 { // the pause stays in its limits
		s = s.missed(now, first, longest)
	}
	miss(longest)
	s = s.answered()
	miss(first)
}
