package metrics_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/metrics"
)

// These are the rules of promtool check metrics, and one for few series.
func TestNamesOfMetricsAreAsPrometheusUsersExpect(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	abbreviated := regexp.MustCompile(`_(ms|us|ns|s|sec|min|millis|milliseconds|kb|mb|gb|kilobytes|megabytes)(_|$)`)
	seen := map[string]bool{}
	for _, f := range metrics.All {
		switch {
		case !name.MatchString(f.Name), abbreviated.MatchString(f.Name), seen[f.Name]:
			t.Errorf("%s: a unit that is not a base unit, or a name that is taken", f.Name)
		case strings.HasSuffix(f.Name, "_total") != (f.Kind == metrics.Counter):
			t.Errorf("%s is a %s; counters end in _total, and nothing else does", f.Name, f.Kind)
		case strings.HasSuffix(f.Name, "_count"), strings.HasSuffix(f.Name, "_sum"), strings.HasSuffix(f.Name, "_bucket"), strings.HasSuffix(f.Name, "_info"):
			t.Errorf("%s ends like a part of another type", f.Name)
		case f.Help == "" || metrics.Help(f.Name) != f.Help:
			t.Errorf("%s has the help %q", f.Name, metrics.Help(f.Name))
		case slices.ContainsFunc(f.Labels, func(l string) bool { return strings.Contains(l, "guid") || strings.Contains(l, "index") || l == "le" }):
			t.Errorf("%s has a series for each of any number of things: %q", f.Name, f.Labels)
		}
		seen[f.Name] = true
	}
}
