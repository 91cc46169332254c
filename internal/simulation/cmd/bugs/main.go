// Bugs puts the bugs of the catalogue into the simulation, one after another,
// and says which checker catches each, after how many seeds and seconds.
//
//	go run ./internal/simulation/cmd/bugs
//	go run ./internal/simulation/cmd/bugs -only no-tag-comparison -v
//
// The exit status is 1 if a bug survives that should not.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/diegosdk/diego/internal/simulation/bugs"
)

func main() {
	only := flag.String("only", "", "bugs whose name contains this")
	seeds := flag.Int("seeds", 25, "how many seeds of each scenario to play at most")
	limit := flag.Duration("limit", 10*time.Minute, "how long to play at most")
	verbose := flag.Bool("v", false, "print the end of the story as well")
	flag.Parse()
	if err := run(*only, *seeds, *limit, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "bugs:", err)
		os.Exit(1)
	}
}

func run(only string, seeds int, limit time.Duration, verbose bool) error {
	root, err := bugs.Root()
	if err != nil {
		return err
	}
	all, err := bugs.All()
	if err != nil {
		return err
	}
	var survived []string
	played := 0
	for _, b := range all {
		if !strings.Contains(b.Name, only) {
			continue
		}
		played++
		r, err := b.Run(context.Background(), root, seeds, limit)
		if err != nil {
			return err
		}
		fmt.Println(r)
		if verbose {
			fmt.Println(r.Output)
		}
		if r.Checker == "" && b.Survives == "" {
			survived = append(survived, b.Name)
		}
	}
	fmt.Printf("%d bugs, %d survived that should not\n", played, len(survived))
	if len(survived) > 0 {
		return fmt.Errorf("these bugs survive and need a checker or a fault: %s", strings.Join(survived, ", "))
	}
	return nil
}
