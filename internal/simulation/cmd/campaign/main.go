// Campaign plays the scenarios of the simulation, seed after seed, until one
// fails or enough were played.
//
//	go run ./internal/simulation/cmd/campaign -seeds 1000
//	go run ./internal/simulation/cmd/campaign -for 30m -first 5001
//
// It prints what it does once a minute and, at the end, how many simulated
// hours it has seen. The exit status is 1 if a history has failed, whose seed
// replays it. A history that fails is reduced to fewer cells, faults and steps,
// and told as a story.
//
//	go run ./internal/simulation/cmd/campaign -scenario anything -cells reps -first 43 -seeds 1 -keep told-twice
//
// writes it to testdata/regressions/told-twice.txt, which the tests play.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/diegosdk/diego/internal/simulation"
	"github.com/diegosdk/diego/internal/simulation/bugs"
)

func main() {
	first := flag.Uint64("first", 1, "the first seed")
	seeds := flag.Int("seeds", 25, "how many seeds to play of each scenario")
	limit := flag.Duration("for", 0, "how long to play, in place of -seeds")
	only := flag.String("scenario", "", "play this scenario only")
	cells := flag.String("cells", "", "play on these cells only: models or reps")
	r := reduction{}
	flag.DurationVar(&r.limit, "reduce", time.Minute, "how long to look for a shorter history that fails in the same way; 0: not at all")
	flag.StringVar(&r.keep, "keep", "", "write the history that fails to `NAME`.txt among the regressions that the tests play")
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
				h := simulation.Drawn(seed, kind == "reps")
				played, err := s.Play(context.Background(), h, nil)
				simulated += played.Simulated
				histories++
				if err != nil {
					fail(s, kind, seed, n+1, time.Since(began), err)
					if err := r.reduce(simulation.Record{Scenario: s, History: h}, err); err != nil {
						fmt.Fprintln(os.Stderr, "campaign:", err)
					}
					os.Exit(1)
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
	fmt.Printf("failed: checker=%s seeds=%d seconds=%.1f scenario=%s cells=%s seed=%d\n", simulation.CheckerOf(err), seeds, took.Seconds(), s.Name, cells, seed)
	fmt.Println(err)
	fmt.Printf("repeat with: go test ./internal/simulation -run '/%s/%s/' -simulation.seed=%d\n", s.Name, cells, seed)
}

// A reduction is what becomes of a history that fails.
type reduction struct {
	limit time.Duration
	keep  string
}

// reduce prints the shortest history that it finds as a story, and keeps it.
func (r *reduction) reduce(record simulation.Record, cause error) error {
	if r.limit > 0 {
		found, err := record.Scenario.Reduce(context.Background(), record.History, simulation.Limits{
			For: r.limit, Progress: func(line string) { fmt.Println("reducing:", line) },
		})
		if err != nil {
			return err
		}
		record.History, cause = found.History, found.Err
		fmt.Printf("\nThe story:\n\n")
		_, _ = record.Scenario.Play(context.Background(), record.History, func(line string) { fmt.Println(line) })
		fmt.Printf("%v\n\n%s", cause, record)
	}
	if r.keep == "" {
		return nil
	}
	root, err := bugs.Root()
	if err != nil {
		return err
	}
	path := filepath.Join(root, "internal", "simulation", "testdata", "regressions", r.keep+".txt")
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%s is there already; choose another name, or remove it first", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	comment := "# " + strings.ReplaceAll(cause.Error(), "\n", "\n# ") + "\n"
	if err := os.WriteFile(path, []byte(comment+record.String()), 0o644); err != nil {
		return err
	}
	fmt.Println("kept in", path)
	return nil
}
