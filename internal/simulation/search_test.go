package simulation

import (
	"fmt"
	"testing"
)

// What comes of a history is made up here: each meets something new.
func TestASearchTurnsOffFromWhatHasMetSomethingNewAndIsTheSameEachTime(t *testing.T) {
	choose := func() (list []string, turned int) {
		s := NewSearch(7, scenarios)
		for n := range 100 {
			c := s.Next()
			if len(c.History.Turns) > 0 {
				turned++
			}
			if len(c.History.Turns) > maxTurns {
				t.Fatalf("%s turns too often", c.Repeat())
			}
			list = append(list, c.Repeat())
			news := Met{Row{tableSlots, "nothing", fmt.Sprint(n)}: 0}
			if got := s.Learn(c, Played{Steps: 300, Met: news}); got != 1 {
				t.Fatalf("%d are new, want 1", got)
			}
			if got := s.Learn(c, Played{Steps: 300, Met: news}); got != 0 {
				t.Fatalf("%d are new again", got)
			}
		}
		return list, turned
	}
	first, turned := choose()
	again, _ := choose()
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Error("the same search chooses otherwise")
	}
	if turned < 40 || turned > 90 {
		t.Errorf("%d of 100 histories turn", turned)
	}
}
