package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Search chooses which histories to play. One that has met something new is kept,
// and others turn off from it on the way: they are the same up to some step, and go
// on by another seed. The same Search and the same outcomes give the same choices.
//
// A Search is for one goroutine.
type Search struct {
	random *rand.Rand
	// among are the scenarios to choose from.
	among []Scenario
	seed  uint64 // of the next history from the beginning
	turn  int    // how many of this seed were chosen
	kept  []Choice
	met   Met
}

// A Choice is a history to play.
type Choice struct {
	Scenario Scenario
	History  History
	steps    int // that it had
}

// Cells is "models" or "reps".
func (c Choice) Cells() string {
	if c.History.Real {
		return "reps"
	}
	return "models"
}

// Repeat is the command that plays the history again.
func (c Choice) Repeat() string {
	command := fmt.Sprintf("go test ./internal/simulation -run '/%s/%s/' -simulation.seed=%d", c.Scenario.Name, c.Cells(), c.History.Seed)
	if len(c.History.Turns) > 0 {
		command += " -simulation.turns=" + FormatTurns(c.History.Turns)
	}
	return command
}

// UsualSeeds is how many seeds of each scenario the tests play, from 1 on.
const UsualSeeds = 10

// maxTurns bounds how often a history turns.
const maxTurns = 8

// NewSearch begins with this seed. among are the scenarios to choose from, of which
// there is at least one.
func NewSearch(seed uint64, among []Scenario) *Search {
	return &Search{random: rand.New(rand.NewPCG(seed, 3)), among: among, seed: seed, met: Met{}}
}

// Next chooses a history: a new one, or one that turns off from one that was kept,
// mostly a late one.
func (s *Search) Next() Choice {
	if len(s.kept) == 0 || s.random.IntN(3) == 0 {
		c := Choice{Scenario: s.among[s.turn/2], History: Drawn(s.seed, s.turn%2 == 1)}
		if s.turn++; s.turn == 2*len(s.among) {
			s.turn = 0
			s.seed++
		}
		return c
	}
	c := s.kept[max(s.random.IntN(len(s.kept)), s.random.IntN(len(s.kept)))]
	at := settled + s.random.IntN(max(1, c.steps-settled))
	turns := slices.DeleteFunc(slices.Clone(c.History.Turns), func(t Turn) bool { return t.Step >= at })
	turns = turns[:min(len(turns), maxTurns-1)]
	c.History.Turns = append(turns, Turn{at, s.random.Uint64N(1e6)})
	return c
}

// Learn takes in what came of a choice, and returns how much of it is new.
func (s *Search) Learn(c Choice, p Played) (news int) {
	for r, with := range p.Met {
		before, known := s.met[r]
		if !known {
			news++
		}
		for k := range kinds {
			if with.Has(k) && !before.Has(k) {
				news++
			}
		}
		s.met[r] = before | with
	}
	if c.steps = p.Steps; news > 0 {
		s.kept = append(s.kept, c)
	}
	return news
}

// Met is what all histories so far have met.
func (s *Search) Met() Met { return s.met }
