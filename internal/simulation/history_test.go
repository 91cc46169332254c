package simulation

import (
	"context"
	"slices"
	"testing"
)

func scenario(t *testing.T, name string) Scenario {
	t.Helper()
	for _, s := range scenarios {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no scenario %q", name)
	return Scenario{}
}

// The same History gives the same events: its faults strike at the same points.
func TestAHistoryIsTheSameEachTimeAndWhenItsFaultsAreNamed(t *testing.T) {
	for _, real := range []bool{false, true} {
		h := History{Seed: 3, Real: real}
		s := scenario(t, "anything")
		first, err := s.Play(context.Background(), h, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Play(context.Background(), h, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(first.Struck, again.Struck) || first.Simulated != again.Simulated {
			t.Errorf("real %t: the history has %d faults in %s at first and %d in %s then", real, len(first.Struck), first.Simulated, len(again.Struck), again.Simulated)
		}
		h.Only = first.Struck
		if again, err = s.Play(context.Background(), h, nil); err != nil || !slices.Equal(first.Struck, again.Struck) {
			t.Errorf("real %t: with its faults named, %d instead of %d strike (%v)", real, len(again.Struck), len(first.Struck), err)
		}
	}
}

func TestASkippedStepAndAFaultThatIsLeftOutDoNotTakePlace(t *testing.T) {
	s := scenario(t, "anything")
	h := History{Seed: 3, Only: []Point{{Step: 60, Kind: Mischief}, {Step: 70, Kind: Mischief}}, Skip: []int{71}}
	played, err := s.Play(context.Background(), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := h.Only[:1]; !slices.Equal(played.Struck, want) {
		t.Errorf("%v strike, want %v", played.Struck, want)
	}
}

// The rules cannot tell one store from another, so neither can a story. The seed
// is odd: stores that remember slots read at different times.
func TestAHistoryIsTheSameOnBothStores(t *testing.T) {
	for _, name := range []string{"anything", "fall-back"} {
		var stories [2][]string
		for i, sqlite := range []bool{false, true} {
			h := History{Seed: 3, Real: true, SQLite: sqlite}
			if _, err := scenario(t, name).Play(context.Background(), h, func(line string) { stories[i] = append(stories[i], line) }); err != nil {
				t.Fatalf("%s on SQLite %t: %v", name, sqlite, err)
			}
		}
		for i, line := range stories[0] {
			if i >= len(stories[1]) || stories[1][i] != line {
				t.Fatalf("%s: line %d is %q in memory, and on SQLite %q", name, i+1, line, stories[1][i:min(i+1, len(stories[1]))])
			}
		}
		if len(stories[0]) < 1000 {
			t.Errorf("%s: the story has %d lines", name, len(stories[0]))
		}
	}
}

// Up to a turn, a history is the one that does not turn.
func TestAHistoryIsTheSameUpToItsTurn(t *testing.T) {
	s := scenario(t, "anything")
	before := func(p Played) (list []Point) {
		for _, point := range p.Struck {
			if point.Step < 100 {
				list = append(list, point)
			}
		}
		return list
	}
	straight, err := s.Play(t.Context(), History{Seed: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	turned, err := s.Play(t.Context(), History{Seed: 3, Turns: []Turn{{100, 17}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before(straight), before(turned)) || slices.Equal(straight.Struck, turned.Struck) {
		t.Errorf("%d faults strike before the turn, and %d without it; in all %d and %d", len(before(turned)), len(before(straight)), len(turned.Struck), len(straight.Struck))
	}
}
