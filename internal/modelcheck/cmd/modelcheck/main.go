// Modelcheck walks through all histories of small worlds of rollouts, deeper than
// the tests do.
//
//	go run ./internal/modelcheck/cmd/modelcheck
//	go run ./internal/modelcheck/cmd/modelcheck -world drain,silence -disturbances 2
//	go run ./internal/modelcheck/cmd/modelcheck -all -disturbances 1 -states 10000000
//
// It prints how far it is, and for each world the number of states and the time. The
// exit status is 1 if a property is violated; then it tells the history with the
// fewest disturbances that shows it.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/internal/modelcheck"
)

func main() {
	only := flag.String("world", "", "walk through these worlds only: `NAME`,NAME")
	disturbances := flag.Int("disturbances", -1, "how many disturbances a history has, in place of the worlds' own number")
	all := flag.Bool("all", false, "let all kinds of disturbances happen in each world")
	states := flag.Int("states", 0, "end a walk after so many `states`, some 150 bytes each; 0: no limit")
	flag.Parse()

	worlds := modelcheck.Worlds()
	var names []string
	for _, w := range worlds {
		names = append(names, w.Name)
	}
	if *only != "" {
		wanted := strings.Split(*only, ",")
		for _, name := range wanted {
			if !slices.Contains(names, name) {
				fail(2, "there is no world %q; there are %s", name, strings.Join(names, ", "))
			}
		}
		worlds = slices.DeleteFunc(worlds, func(w modelcheck.World) bool { return !slices.Contains(wanted, w.Name) })
	}
	for _, w := range worlds {
		if *disturbances >= 0 {
			w.Disturbances = *disturbances
		}
		if *all {
			w.Without = nil
		}
		walk(w, *states)
	}
}

func walk(w modelcheck.World, states int) {
	began := time.Now()
	say := func(f modelcheck.Found) {
		fmt.Printf("%s seconds=%.1f\n", f, time.Since(began).Seconds())
	}
	said := began
	found, err := modelcheck.Search{World: &w, Rules: modelcheck.RealRules(), MaxStates: states, Say: func(f modelcheck.Found) {
		if time.Since(said) >= 20*time.Second {
			said = time.Now()
			say(f)
		}
	}}.Run()
	if err != nil {
		fail(1, "%v", err)
	}
	say(found)
	if found.Violation != "" {
		fail(1, "%s", found.Story)
	}
}

func fail(status int, format string, values ...any) {
	fmt.Fprintf(os.Stderr, "modelcheck: "+format+"\n", values...)
	os.Exit(status)
}
