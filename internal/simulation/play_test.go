package simulation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
)

// Scenarios of models and of real cells, with a fall of the store and on SQLite.
func someChoices(t *testing.T) (list []Choice) {
	for _, name := range []string{"crash-loop", "fall-back"} {
		for _, real := range []bool{false, true} {
			list = append(list, Choice{Scenario: scenario(t, name), History: Drawn(5, real)})
		}
	}
	return append(list, Choice{Scenario: scenario(t, "outage"), History: Drawn(12, true)})
}

// each returns the choices one by one.
func each(choices []Choice) func() (Choice, bool) {
	return func() (c Choice, more bool) {
		if more = len(choices) > 0; more {
			c, choices = choices[0], choices[1:]
		}
		return c, more
	}
}

func TestHistoriesThatArePlayedAtOnceAreWhatTheyAreAlone(t *testing.T) {
	choices := someChoices(t)
	learnt := 0
	PlayAll(t.Context(), 4, each(choices), func(c Choice, p Played, err error) bool {
		if err != nil || c.Repeat() != choices[learnt].Repeat() {
			t.Fatalf("outcome %d is of %s (%v)", learnt, c.Repeat(), err)
		}
		alone, err := c.Scenario.Play(t.Context(), c.History, nil)
		if err != nil || !reflect.DeepEqual(p, alone) {
			t.Errorf("%s: %d steps with %d faults among others, alone %d with %d (%v)", c.Repeat(), p.Steps, len(p.Struck), alone.Steps, len(alone.Struck), err)
		}
		learnt++
		return true
	})
	if learnt != len(choices) {
		t.Errorf("%d of %d outcomes", learnt, len(choices))
	}
}

// The second choice fails, and nothing that comes later counts.
func TestTheFirstFailureIsTheSameHoweverManyHistoriesArePlayedAtOnce(t *testing.T) {
	broken := errors.New("it is broken")
	plays := Scenario{Name: "fine", play: scenario(t, "outage").play}
	fails := Scenario{Name: "broken", play: func(context.Context, *World) error { return broken }}
	for _, n := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var learnt []string
			PlayAll(t.Context(), n, each([]Choice{{Scenario: plays}, {Scenario: fails}, {Scenario: fails}}), func(c Choice, p Played, err error) bool {
				learnt = append(learnt, fmt.Sprint(c.Scenario.Name, errors.Is(err, broken)))
				return err == nil
			})
			if want := []string{"finefalse", "brokentrue"}; !reflect.DeepEqual(learnt, want) {
				t.Errorf("learnt %q, want %q", learnt, want)
			}
		})
	}
}

func TestASearchThatPlaysSeveralAtOnceChoosesTheSameEachTime(t *testing.T) {
	choose := func() (list []string) {
		s := NewSearch(3, []Scenario{scenario(t, "outage"), scenario(t, "crash-loop")})
		PlayAll(t.Context(), 2, func() (Choice, bool) {
			c := s.Next()
			list = append(list, c.Repeat())
			return c, len(list) <= 10
		}, func(c Choice, p Played, err error) bool {
			if err != nil {
				t.Error(err)
			}
			s.Learn(c, p)
			return true
		})
		return list
	}
	if first, again := choose(), choose(); !reflect.DeepEqual(first, again) {
		t.Errorf("the search chooses %q, and then %q", first, again)
	}
}
