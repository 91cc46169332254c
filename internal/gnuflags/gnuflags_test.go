package gnuflags_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/diegosdk/diego/internal/gnuflags"
)

func TestFlagsThatDoNotExistAreFoundWithWhatWasMeant(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.StringP("file", "f", "", "")
	set.String("for", "", "")
	set.String("output", "", "")
	set.Bool("wait", false, "")
	two := "long flags have two hyphens"
	tests := []struct {
		line, words string
		faults      []gnuflags.Fault
	}{
		{"-wait", "", []gnuflags.Fault{{"-wait", two + ": --wait"}}},
		{"-for 5m", "", []gnuflags.Fault{{"-for", two + ": --for"}}}, // pflag takes it for -f or
		{"-for=5m a", "a", []gnuflags.Fault{{"-for", two + ": --for"}}},
		{"a -f x -wait", "a", []gnuflags.Fault{{"-wait", two + ": --wait"}}},
		{"-otput x", "x", []gnuflags.Fault{{"-otput", two + "; did you mean --output?"}}},
		{"--otput=x -nothing", "", []gnuflags.Fault{{"--otput", "did you mean --output?"}, {"-nothing", two}}},
		{"scale web -3", "scale web", []gnuflags.Fault{{"-3", ""}}},
		{"--nothing -x", "", []gnuflags.Fault{{"--nothing", ""}, {"-x", ""}}},

		{"--wait a --for 5m b", "a b", nil},
		{"-f -wait", "", nil}, // a value
		{"--for -wait", "", nil},
		{"--for=x - -- -for --b", "- -for --b", nil},
		{"-fx --wait=false", "", nil},
		{"-f", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			l := gnuflags.Scan(set, strings.Fields(tt.line))
			if diff := cmp.Diff(tt.faults, l.Faults); diff != "" || strings.Join(l.Words, " ") != tt.words {
				t.Errorf("the words are %q, want %q; the flags differ:\n%s", l.Words, tt.words, diff)
			}
			if again := gnuflags.Scan(set, l.Known); again.Faults != nil || tt.faults == nil && strings.Join(l.Known, " ") != tt.line {
				t.Errorf("without the faults there is %q", l.Known)
			}
		})
	}
}
