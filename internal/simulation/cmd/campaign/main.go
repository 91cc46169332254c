// Campaign plays the scenarios of the simulation, seed after seed, until one
// fails or enough were played.
//
//	go run ./internal/simulation/cmd/campaign -seeds 1000
//	go run ./internal/simulation/cmd/campaign -for 30m -first 5001
//
// It prints what it does once a minute and, at the end, how many simulated
// hours it has seen. The exit status is 1 if a history has failed, whose seed
// replays it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/diegosdk/diego/internal/simulation"
)

func main() {
	first := flag.Uint64("first", 1, "the first seed")
	seeds := flag.Int("seeds", 25, "how many seeds to play of each scenario")
	limit := flag.Duration("for", 0, "how long to play, in place of -seeds")
	only := flag.String("scenario", "", "play this scenario only")
	cells := flag.String("cells", "", "play on these cells only: models or reps")
	flag.Parse()
	debug.SetGCPercent(simulation.GCPercent)

	began := time.Now()
	said := began
	var simulated time.Duration
	histories := 0
	more := func(n int) bool {
		if *limit > 0 {
			return time.Since(began) < *limit
		}
		return n < *seeds
	}
	for n := 0; more(n); n++ {
		seed := *first + uint64(n)
		for _, s := range simulation.Scenarios() {
			for _, kind := range []string{"models", "reps"} {
				if *only != "" && *only != s.Name || *cells != "" && *cells != kind {
					continue
				}
				played, err := s.Play(context.Background(), simulation.Drawn(seed, kind == "reps"), nil)
				simulated += played.Simulated
				histories++
				if err != nil {
					fail(s, kind, seed, n+1, time.Since(began), err)
				}
			}
		}
		if time.Since(said) > time.Minute {
			said = time.Now()
			fmt.Printf("seed %d: %d histories, %.0f simulated hours in %.0f s\n", seed, histories, simulated.Hours(), time.Since(began).Seconds())
		}
	}
	fmt.Printf("passed: %d histories, %.0f simulated hours in %.0f s\n", histories, simulated.Hours(), time.Since(began).Seconds())
}

// fail says which history has failed, on a line that the command bugs reads, and
// why.
func fail(s simulation.Scenario, cells string, seed uint64, seeds int, took time.Duration, err error) {
	checker := "history"
	if v := (*simulation.Violation)(nil); errors.As(err, &v) {
		checker = v.Checker
	}
	fmt.Printf("failed: checker=%s seeds=%d seconds=%.1f scenario=%s cells=%s seed=%d\n", checker, seeds, took.Seconds(), s.Name, cells, seed)
	fmt.Println(err)
	fmt.Printf("repeat with: go test ./internal/simulation -run '/%s/%s/' -simulation.seed=%d\n", s.Name, cells, seed)
	os.Exit(1)
}
