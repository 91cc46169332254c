package simulation

import (
	"context"
	"sync"
)

// PlayAll plays the histories that next chooses, at most n at a time, until next
// has no more or learn returns false. It passes what came of each history to learn,
// in the order of the choices. Histories share nothing, so each of them is what it
// would be alone.
//
// next and learn are called in the caller's goroutine. Choices are made up to
// 4(n-1) histories ahead of what learn has got, so that a long history keeps no
// processor waiting. Each choice has the outcomes of the same histories before it,
// so the same n gives the same choices. PlayAll waits for the histories that have
// begun.
func PlayAll(ctx context.Context, n int, next func() (Choice, bool), learn func(Choice, Played, error) bool) {
	type game struct {
		choice Choice
		played Played
		err    error
		over   chan struct{}
	}
	ctx, cancel := context.WithCancel(ctx)
	ahead := 1 + 4*(n-1)
	begin := make(chan *game, ahead)
	var players sync.WaitGroup
	defer players.Wait()
	defer close(begin)
	defer cancel() // those that have not begun never will
	for range n {
		players.Go(func() {
			for g := range begin {
				if ctx.Err() == nil {
					g.played, g.err = g.choice.Scenario.Play(context.WithoutCancel(ctx), g.choice.History, nil)
				}
				close(g.over)
			}
		})
	}
	var games []*game // in the order of the choices
	for more := true; ; {
		for more && len(games) < ahead {
			g := &game{over: make(chan struct{})}
			if g.choice, more = next(); more {
				games = append(games, g)
				begin <- g
			}
		}
		if len(games) == 0 {
			return
		}
		g := games[0]
		games = games[1:]
		if <-g.over; !learn(g.choice, g.played, g.err) {
			return
		}
	}
}
