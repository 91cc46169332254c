package simulation

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// A history that fails if two faults strike, and a step takes place, is reduced to
// these, however many others there are.
func TestAReducedHistoryHasOnlyWhatItNeedsToFail(t *testing.T) {
	needs := []Point{{Step: 70, Kind: Call, N: 3}, {Step: 120, Kind: Mischief}}
	const needed, last = 95, 200
	play := func(_ context.Context, h History) (Played, error) {
		p := Played{Steps: last}
		if h.cells() < 3 {
			return p, nil
		}
		for step := range last {
			for n := range 5 {
				for _, kind := range []Kind{Call, Mischief} {
					q := Point{step, kind, n}
					if !slices.Contains(h.Skip, step) && (h.Only == nil || slices.Contains(h.Only, q)) {
						p.Struck = append(p.Struck, q)
					}
				}
			}
		}
		if slices.Contains(h.Skip, needed) || !slices.Contains(p.Struck, needs[0]) || !slices.Contains(p.Struck, needs[1]) {
			return p, checkOnce.violated("another checker") // only a part of it
		}
		return p, checkStops.violated("it fails")
	}
	r, err := reduce(t.Context(), History{Seed: 1}, Limits{}, play)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cells != 3 || !slices.Equal(r.Only, needs) || CheckerOf(r.Err) != checkStops.Name {
		t.Errorf("it has %d cells and the faults %v, and fails with %v; want 3 cells and %v", r.Cells, r.Only, r.Err, needs)
	}
	if want := last - settled - 5; len(r.Skip) != want { // the steps of the faults, the ones after them, and the needed one
		t.Errorf("%d steps are left out, want %d", len(r.Skip), want)
	}
	if r.Plays > 300 {
		t.Errorf("that took %d histories", r.Plays)
	}
	few, err := reduce(t.Context(), History{Seed: 1}, Limits{Plays: 10}, play)
	if err != nil || few.Plays != 10 || few.Err == nil {
		t.Errorf("within 10 histories it plays %d and finds %v (%v)", few.Plays, few.Err, err)
	}
	if _, err := reduce(t.Context(), History{Seed: 1, Cells: 1}, Limits{}, play); err == nil {
		t.Error("a history that does not fail is reduced")
	}
}

// A fault that is left out may let a history end sooner. Steps that it no longer has are
// neither skipped nor counted.
func TestAReducedHistorySkipsOnlyStepsThatItHas(t *testing.T) {
	delays := Point{Step: 150, Kind: Mischief}
	play := func(_ context.Context, h History) (Played, error) {
		if h.cells() < 2 || slices.Contains(h.Skip, 95) {
			return Played{Steps: 200}, nil
		}
		if h.Only != nil || slices.Contains(h.Skip, delays.Step) {
			return Played{Steps: 100}, checkStops.violated("it fails")
		}
		return Played{Steps: 200, Struck: []Point{delays, {Step: 90, Kind: Call}}}, checkStops.violated("it fails")
	}
	said := ""
	r, err := reduce(t.Context(), History{Seed: 1, Skip: []int{120, 180}}, Limits{Progress: func(line string) { said = line }}, play)
	if err != nil {
		t.Fatal(err)
	}
	if want := "0 faults, 41 of 100 steps; done"; len(r.Skip) != 59 || slices.Max(r.Skip) > r.Played.Steps || !strings.HasSuffix(said, want) {
		t.Errorf("it skips %d steps, up to %d of %d, and says %q; want 59 steps and %q", len(r.Skip), slices.Max(r.Skip), r.Played.Steps, said, want)
	}
}

func TestAReducedHistoryHasTheTimeInWhichTheWorldComesRight(t *testing.T) {
	play := func(_ context.Context, h History) (Played, error) {
		return Played{Steps: 200, Healed: 150}, checkStops.violated("it fails")
	}
	r, err := reduce(t.Context(), History{Seed: 1}, Limits{}, play)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Skip) != 150-settled || slices.Max(r.Skip) != 150 {
		t.Errorf("it skips %d steps up to %d, want all from %d to 150", len(r.Skip), slices.Max(r.Skip), settled+1)
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	for _, h := range []History{
		{Seed: 43, Cells: 4, Only: []Point{{61, Mischief, 0}, {62, Call, 11}}, Skip: []int{41, 42, 43, 50}},
		{Seed: 1 << 63, Cells: 2, Real: true, SQLite: true, Only: []Point{}},
		{Seed: 5, Cells: 4},
		{Seed: 5, Cells: 4, Turns: []Turn{{60, 17}, {200, 3}}},
	} {
		text := Record{scenario(t, "calm"), h}.String()
		got, err := ParseRecord("# a comment\n" + text)
		if err != nil || got.String() != text || (got.History.Only == nil) != (h.Only == nil) {
			t.Errorf("%q is read as %q (%v)", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"seed 1":                            "scenario",
		"scenario nowhere":                  "no such scenario",
		"scenario calm\nseed x":             "line 2",
		"scenario calm\nstrike 1 thunder 0": "not a kind of faults",
		"scenario calm\nskip 1-999999999":   "at most",
		"scenario calm\ncells models 0":     "at least one cell",
		"scenario calm\nstrikes 1":          "means nothing",
	} {
		if _, err := ParseRecord(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want an error with %q", text, err, want)
		}
	}
}
