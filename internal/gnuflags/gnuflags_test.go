package gnuflags_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/diegosdk/diego/internal/gnuflags"
)

func flags() *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.StringP("file", "f", "", "")
	set.String("for", "", "")
	set.String("output", "", "")
	set.Bool("wait", false, "")
	return set
}

func TestALongFlagWithOneHyphenIsRefusedWithTheRightForm(t *testing.T) {
	for line, name := range map[string]string{
		"-wait":            "wait",
		"-for 5m":          "for", // or pflag takes it for -f or
		"-for=5m":          "for",
		"a -f x -wait":     "wait",
		"--wait -output x": "output",

		"--wait --for 5m":   "",
		"-f -wait":          "", // a value
		"--for -wait":       "",
		"--for=x - -- -for": "",
		"-fx -unknown -3":   "",
	} {
		err := gnuflags.OneHyphen(flags(), strings.Fields(line))
		want := ""
		if name != "" {
			want = "there is no flag -" + name + "; long flags have two hyphens: --" + name
		}
		if err != nil && err.Error() != want || err == nil && want != "" {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

func TestAnUnknownFlagIsToldWithTheOneThatWasMeant(t *testing.T) {
	for line, want := range map[string]string{
		"--otput x": "unknown flag: --otput; did you mean --output?",
		"--nothing": "unknown flag: --nothing",
		"-x":        "unknown shorthand flag: 'x' in -x",
		"--for":     "flag needs an argument: --for",
	} {
		set := flags()
		if got := gnuflags.Explain(set, set.Parse(strings.Fields(line))); got != want {
			t.Errorf("%q is explained as %q, want %q", line, got, want)
		}
	}
}
