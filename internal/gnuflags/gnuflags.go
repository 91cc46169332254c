// Package gnuflags explains mistakes in command lines whose flags are in GNU
// style, "--wait" and "-o json", as pflag reads them.
package gnuflags

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/diegosdk/diego/internal/spelling"
)

// OneHyphen returns an error if args have a long flag of the set with one
// hyphen. Pflag would take its letters for short flags: "-follow" for
// "-f ollow".
func OneHyphen(set *pflag.FlagSet, args []string) error {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		arg := args[i]
		name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		var f *pflag.Flag
		switch {
		case !strings.HasPrefix(arg, "-") || name == "":
			continue
		case strings.HasPrefix(arg, "--"):
			f = set.Lookup(name)
		case len(name) == 1:
			f = set.ShorthandLookup(name)
		case set.Lookup(name) != nil:
			return fmt.Errorf("there is no flag -%[1]s; long flags have two hyphens: --%[1]s", name)
		}
		if f != nil && f.NoOptDefVal == "" && !hasValue {
			i++ // its value
		}
	}
	return nil
}

// Explain says what an error of pflag is about, and which flag may have been
// meant.
func Explain(set *pflag.FlagSet, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err.Error()
	}
	return err.Error() + Meant(set, unknown.GetSpecifiedName())
}

// Meant is "; did you mean --NAME?" with the flag that is most like name, or
// empty if none is like it.
func Meant(set *pflag.FlagSet, name string) string {
	var known []string
	set.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if guess := spelling.Nearest(name, known); guess != "" {
		return fmt.Sprintf("; did you mean --%s?", guess)
	}
	return ""
}
