// Command covergate fails when the statements of a pure package's pure files
// are covered by less than 95 % of its own tests' coverage profile.
//
//	covergate -list      prints the pure packages and those of lint.WithoutRace, for go test
//	covergate PROFILE    judges the profile that go test wrote for them
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/diegosdk/diego/internal/lint"
)

const least = 95.0 // percent

func main() {
	list := flag.Bool("list", false, "print the packages to test without the race detector")
	flag.Parse()
	if *list {
		for _, p := range lint.Pure {
			fmt.Println("./" + p.Path)
		}
		for _, path := range lint.WithoutRace {
			fmt.Println("./" + path)
		}
		return
	}
	if err := judge(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "covergate:", err)
		os.Exit(1)
	}
}

func judge(profile string) error {
	content, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	packages, err := lint.ReadCoverage(string(content))
	if err != nil {
		return fmt.Errorf("%s: %w", profile, err)
	}
	var failed error
	for _, p := range packages {
		fmt.Printf("%-10s %5.1f %% of %d statements in pure files\n", p.Path, p.Percent(), p.Statements)
		if p.Percent() < least {
			failed = errors.New("pure packages need 95 %; not covered are the blocks above")
			for _, block := range p.Uncovered {
				fmt.Println("  ", block)
			}
		}
	}
	return failed
}
