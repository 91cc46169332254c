// Campaign plays the scenarios of the simulation, seed after seed, until one
// fails or enough were played.
//
//	go run ./internal/simulation/cmd/campaign -seeds 1000
//	go run ./internal/simulation/cmd/campaign -for 30m -first 5001
//	go run ./internal/simulation/cmd/campaign -for 30m -search
//
// It plays as many histories at a time as there are processors (-parallel), and
// judges them in the order of their seeds: the first that fails is the same for
// any number.
//
// With -search, histories that have met something new are kept, and others turn off
// from them. What was met is known a few histories later, so another -parallel
// chooses other histories. At the end it prints which rows of the tables were never
// met.
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
	"runtime"
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
	directed := flag.Bool("search", false, "let what was met choose the histories; -seeds is in rounds of all scenarios")
	met := flag.String("met", "", "with -search: write each history that meets a row which neither the tests nor a file of `DIR` meets to a file there")
	parallel := flag.Int("parallel", runtime.GOMAXPROCS(0), "how many histories to play at a time")
	turns := flag.String("turns", "", "let every history turn, as STEP:SEED,STEP:SEED")
	flag.Parse()
	debug.SetGCPercent(simulation.GCPercent)

	if *parallel < 1 {
		fmt.Fprintf(os.Stderr, "campaign: -parallel is %d; it is at least 1\n", *parallel)
		os.Exit(2)
	}
	turned, err := simulation.ParseTurns(*turns)
	if err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(2)
	}
	var among []simulation.Scenario
	for _, s := range simulation.Scenarios() {
		if *only == "" || *only == s.Name {
			among = append(among, s)
		}
	}
	if len(among) == 0 {
		fmt.Fprintf(os.Stderr, "campaign: there is no scenario %q; internal/simulation/scenario.go lists them\n", *only)
		os.Exit(2)
	}

	c := campaign{began: time.Now(), said: time.Now(), search: simulation.NewSearch(*first, among), parallel: *parallel, reduction: r}
	for _, s := range among {
		for _, real := range []bool{false, true} {
			choice := simulation.Choice{Scenario: s, History: simulation.Drawn(*first, real)}
			choice.History.Turns = turned
			if *cells == "" || *cells == choice.Cells() {
				c.round = append(c.round, choice)
			}
		}
	}
	if len(c.round) == 0 {
		fmt.Fprintf(os.Stderr, "campaign: there are no cells %q, only models and reps\n", *cells)
		os.Exit(2)
	}
	if *met != "" {
		if err := c.knows(*met); err != nil {
			fmt.Fprintln(os.Stderr, "campaign:", err)
			os.Exit(2)
		}
	}
	chosen := 0
	if err := c.play(func() (choice simulation.Choice, more bool) {
		seed := chosen / len(c.round)
		if *limit > 0 && time.Since(c.began) >= *limit || *limit == 0 && seed >= *seeds {
			return choice, false
		}
		choice = c.round[chosen%len(c.round)]
		choice.History = simulation.Drawn(*first+uint64(seed), choice.History.Real)
		choice.History.Turns = turned
		for *directed {
			if choice = c.search.Next(); *cells == "" || *cells == choice.Cells() {
				break
			}
		}
		chosen++
		return choice, true
	}); err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(1)
	}
	c.report()
	c.never()
}

// A campaign is what was played so far.
type campaign struct {
	began, said time.Time
	// histories were played, and known of them only to find out what they meet.
	histories, known int
	simulated        time.Duration
	search           *simulation.Search
	// round are the histories of the first seed, and parallel is how many to play
	// at a time.
	round     []simulation.Choice
	parallel  int
	reduction reduction
	// keeps is the directory for histories that meet a row of missing, or "".
	keeps   string
	missing map[simulation.Row]bool
}

// knows plays the histories of the tests and of dir, and keeps those that come later
// and meet other rows in dir.
func (c *campaign) knows(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	var known []simulation.Choice
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		r, err := simulation.ParseRecord(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		known = append(known, simulation.Choice{Scenario: r.Scenario, History: r.History})
	}
	for seed := range simulation.UsualSeeds {
		for _, s := range simulation.Scenarios() {
			for _, real := range []bool{false, true} {
				known = append(known, simulation.Choice{Scenario: s, History: simulation.Drawn(uint64(seed)+1, real)})
			}
		}
	}
	if err := c.play(func() (k simulation.Choice, more bool) {
		if more = len(known) > 0; more {
			k, known = known[0], known[1:]
		}
		return k, more
	}); err != nil {
		return err
	}
	c.known = c.histories
	c.missing = map[simulation.Row]bool{}
	for _, r := range c.search.Met().Missing() {
		c.missing[r] = true
	}
	c.keeps = dir
	fmt.Printf("%d rows are missing\n", len(c.missing))
	return os.MkdirAll(dir, 0o755)
}

// keepMet writes the history to a file if it has met a row that was missing.
func (c *campaign) keepMet(record simulation.Record, cells string, met simulation.Met) error {
	var rows []string
	for _, r := range met.Rows() {
		if c.missing[r] {
			rows = append(rows, "# "+r.String()+"\n")
			delete(c.missing, r)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	name := fmt.Sprintf("%s-%s-%d", record.Scenario.Name, cells, record.History.Seed)
	for _, t := range record.History.Turns {
		name += fmt.Sprintf("-%d", t.Step)
	}
	path := filepath.Join(c.keeps, name+".txt")
	fmt.Printf("kept in %s, %d rows are missing:\n%s", path, len(c.missing), strings.Join(rows, ""))
	return os.WriteFile(path, []byte(strings.Join(rows, "")+record.String()), 0o644)
}

// play plays what next chooses. A history that fails ends the program. The error
// says why a history could not be kept.
func (c *campaign) play(next func() (simulation.Choice, bool)) (err error) {
	var failed *simulation.Record
	var cause error
	simulation.PlayAll(context.Background(), c.parallel, next, func(choice simulation.Choice, played simulation.Played, violated error) bool {
		c.histories++
		c.simulated += played.Simulated
		record := simulation.Record{Scenario: choice.Scenario, History: choice.History}
		if violated != nil {
			fail(choice, 1+(c.histories-c.known-1)/len(c.round), time.Since(c.began), violated)
			failed, cause = &record, violated
			return false
		}
		c.search.Learn(choice, played)
		if c.keeps != "" {
			err = c.keepMet(record, choice.Cells(), played.Met)
		}
		if time.Since(c.said) > time.Minute {
			c.said = time.Now()
			c.report()
		}
		return err == nil
	})
	if failed != nil {
		if err := c.reduction.reduce(*failed, cause); err != nil {
			fmt.Fprintln(os.Stderr, "campaign:", err)
		}
		os.Exit(1)
	}
	return err
}

func (c *campaign) report() {
	rows, unmet := len(simulation.Rows()), len(c.search.Met().Unmet())
	fmt.Printf("passed: %d histories, %.0f simulated hours in %.0f s, %d of %d rows met\n",
		c.histories, c.simulated.Hours(), time.Since(c.began).Seconds(), rows-unmet, rows)
}

// never prints the rows that were never met, and those that were never met shortly
// after a fault of some kind.
func (c *campaign) never() {
	met := c.search.Met()
	odds := simulation.Rows()
	for _, r := range met.UnmetPoints() {
		fmt.Printf("never met: %s\n", r)
	}
	for _, r := range met.Unmet() {
		if simulation.Elsewhere(r) == "" {
			fmt.Printf("never met: %s (%s)\n", r, odds[r])
		}
	}
	for _, r := range met.Rows() {
		if kinds := met[r].Without(); len(kinds) > 0 {
			fmt.Printf("never met after a fault of kind %s: %s\n", strings.Join(kinds, ", "), r)
		}
	}
}

// fail says which history has failed, on a line that the command bugs reads, and
// why.
func fail(c simulation.Choice, seeds int, took time.Duration, err error) {
	fmt.Printf("failed: checker=%s seeds=%d seconds=%.1f scenario=%s cells=%s seed=%d turns=%s\n",
		simulation.CheckerOf(err), seeds, took.Seconds(), c.Scenario.Name, c.Cells(), c.History.Seed, simulation.FormatTurns(c.History.Turns))
	fmt.Println(err)
	fmt.Println("repeat with:", c.Repeat())
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
