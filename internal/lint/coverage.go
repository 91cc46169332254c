package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Coverage sums up the pure files of one package.
type Coverage struct {
	Path       string
	Statements int
	Covered    int
	Uncovered  []string // blocks, as file:line.column,line.column
}

// Percent is the share of covered statements, 100 if there are none.
func (c Coverage) Percent() float64 {
	if c.Statements == 0 {
		return 100
	}
	return 100 * float64(c.Covered) / float64(c.Statements)
}

// ReadCoverage reads the profile of `go test -coverprofile` and returns the
// pure packages in it in the order of Pure.
func ReadCoverage(profile string) ([]Coverage, error) {
	found := make(map[string]*Coverage)
	for n, line := range strings.Split(strings.TrimSpace(profile), "\n") {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		var statements, count int
		block, figures, _ := strings.Cut(line, " ")
		if _, err := fmt.Sscanf(figures, "%d %d", &statements, &count); err != nil {
			return nil, fmt.Errorf("line %d is not of a coverage profile: %q", n+1, line)
		}
		file, _, _ := strings.Cut(block, ":")
		pkg, inModule := relative(path.Dir(file))
		if !inModule || !IsPure(pkg, path.Base(file)) {
			continue
		}
		c := found[pkg]
		if c == nil {
			c = &Coverage{Path: pkg}
			found[pkg] = c
		}
		c.Statements += statements
		if count > 0 {
			c.Covered += statements
		} else {
			c.Uncovered = append(c.Uncovered, strings.TrimPrefix(block, Module+"/"))
		}
	}
	var list []Coverage
	for _, p := range Pure {
		if c := found[p.Path]; c != nil {
			slices.Sort(c.Uncovered)
			list = append(list, *c)
		}
	}
	return list, nil
}
