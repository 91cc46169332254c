// Package gnuflags finds flags that do not exist in command lines of GNU style,
// "--wait" and "-o json", before pflag reads them. Pflag stops at the first one,
// does not suggest what was meant, and reads "-follow" as "-f ollow".
package gnuflags

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/diegosdk/diego/internal/spelling"
)

// A Fault is a flag that does not exist.
type Fault struct {
	// Flag is the flag as it was given, without its value.
	Flag string
	// Hint says what was probably meant. It may be empty.
	Hint string
}

// Scan returns the words of args that are neither flags nor their values, and
// the flags that set does not have.
func Scan(set *pflag.FlagSet, args []string) (words []string, faults []Fault) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(words, args[i+1:]...), faults
		}
		flag, _, hasValue := strings.Cut(arg, "=")
		name := strings.TrimLeft(flag, "-")
		if !strings.HasPrefix(arg, "-") || name == "" {
			words = append(words, arg)
			continue
		}
		long := set.Lookup(name)
		known := long
		switch {
		case strings.HasPrefix(arg, "--"):
			if long == nil {
				faults = append(faults, Fault{flag, meant(set, name)})
			}
		case len(name) > 1 && long != nil:
			faults = append(faults, Fault{flag, "long flags have two hyphens: --" + name})
		case set.ShorthandLookup(name[:1]) == nil:
			hint := ""
			if len(name) > 1 && (name[0] < '0' || name[0] > '9') {
				hint = strings.TrimSuffix("long flags have two hyphens; "+meant(set, name), "; ")
			}
			faults = append(faults, Fault{flag, hint})
		case len(name) == 1:
			known = set.ShorthandLookup(name)
		}
		if known != nil && known.NoOptDefVal == "" && !hasValue {
			i++ // its value
		}
	}
	return words, faults
}

// meant asks for the flag that is most like name, or is empty if none is.
func meant(set *pflag.FlagSet, name string) string {
	var known []string
	set.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if guess := spelling.Nearest(name, known); guess != "" {
		return fmt.Sprintf("did you mean --%s?", guess)
	}
	return ""
}
