package simulation

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Record is a history of a scenario as a file holds it: lines of a word and its
// values, and comments after a #. What is left out has its default.
//
//	scenario anything
//	cells models 4
//	store memory
//	seed 43
//	skip 41-60
//	strike 61 mischief 0
//
// A record with the line "strike drawn" leaves no fault out.
type Record struct {
	Scenario Scenario
	History  History
}

// String is the record's file without comments.
func (r Record) String() string {
	var b strings.Builder
	cells, store := "models", "memory"
	if r.History.Real {
		cells = "reps"
	}
	if r.History.SQLite {
		store = "sqlite"
	}
	fmt.Fprintf(&b, "scenario %s\ncells %s %d\nstore %s\nseed %d\n", r.Scenario.Name, cells, r.History.cells(), store, r.History.Seed)
	if len(r.History.Turns) > 0 {
		fmt.Fprintf(&b, "turns %s\n", FormatTurns(r.History.Turns))
	}
	if len(r.History.Skip) > 0 {
		fmt.Fprintf(&b, "skip %s\n", spans(r.History.Skip))
	}
	if r.History.Only == nil {
		b.WriteString("strike drawn\n")
	}
	for _, p := range r.History.Only {
		fmt.Fprintf(&b, "strike %d %s %d\n", p.Step, p.Kind, p.N)
	}
	return b.String()
}

// maxSteps is more than any scenario has.
const maxSteps = 100_000

// spans writes numbers as "3 5-9".
func spans(numbers []int) string {
	numbers = slices.Sorted(slices.Values(numbers))
	var list []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if i == j {
			list = append(list, strconv.Itoa(numbers[i]))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	return strings.Join(list, " ")
}

// ParseRecord reads the file of a record. The error names the line.
func ParseRecord(text string) (Record, error) {
	r := Record{History: History{Only: []Point{}}}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if err := r.read(fields[0], fields[1:]); err != nil {
			return r, fmt.Errorf("line %d, %q: %w", n, lines.Text(), err)
		}
	}
	if r.Scenario.play == nil {
		return r, fmt.Errorf("it names no scenario")
	}
	return r, lines.Err()
}

func (r *Record) read(word string, values []string) (err error) {
	h := &r.History
	switch {
	case word == "scenario" && len(values) == 1:
		i := slices.IndexFunc(scenarios, func(s Scenario) bool { return s.Name == values[0] })
		if i < 0 {
			return fmt.Errorf("there is no such scenario")
		}
		r.Scenario = scenarios[i]
	case word == "cells" && len(values) == 2 && slices.Contains([]string{"models", "reps"}, values[0]):
		h.Real = values[0] == "reps"
		if h.Cells, err = strconv.Atoi(values[1]); err == nil && h.Cells < 1 {
			err = fmt.Errorf("want at least one cell")
		}
	case word == "store" && len(values) == 1 && slices.Contains([]string{"memory", "sqlite"}, values[0]):
		h.SQLite = values[0] == "sqlite"
	case word == "seed" && len(values) == 1:
		h.Seed, err = strconv.ParseUint(values[0], 10, 64)
	case word == "turns" && len(values) == 1:
		h.Turns, err = ParseTurns(values[0])
	case word == "skip":
		for _, span := range values {
			first, last, several := strings.Cut(span, "-")
			from, err := strconv.Atoi(first)
			if err != nil {
				return err
			}
			to := from
			if several {
				if to, err = strconv.Atoi(last); err != nil {
					return err
				}
			}
			if to-from > maxSteps {
				return fmt.Errorf("%s: a history has %d steps at most", span, maxSteps)
			}
			for step := from; step <= to; step++ {
				h.Skip = append(h.Skip, step)
			}
		}
	case word == "strike" && len(values) == 1 && values[0] == "drawn":
		h.Only = nil
	case word == "strike" && len(values) == 3:
		var p Point
		if p.Step, err = strconv.Atoi(values[0]); err != nil {
			return err
		}
		if p.Kind, err = ParseKind(values[1]); err != nil {
			return err
		}
		if p.N, err = strconv.Atoi(values[2]); err != nil {
			return err
		}
		h.Only = append(h.Only, p)
	default:
		err = fmt.Errorf("it means nothing; the words are scenario, cells, store, seed, turns, skip and strike")
	}
	return err
}
