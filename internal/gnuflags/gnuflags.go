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

// A Line is a command line that was scanned.
type Line struct {
	// Words are neither flags nor their values.
	Words []string
	// Known are all arguments but the flags that do not exist.
	Known []string
	// Faults are the flags that do not exist.
	Faults []Fault
}

// Scan finds the flags in args that set does not have.
func Scan(set *pflag.FlagSet, args []string) (l Line) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			l.Words, l.Known = append(l.Words, args[i+1:]...), append(l.Known, args[i:]...)
			return l
		}
		flag, _, hasValue := strings.Cut(arg, "=")
		name := strings.TrimLeft(flag, "-")
		if !strings.HasPrefix(arg, "-") || name == "" {
			l.Words, l.Known = append(l.Words, arg), append(l.Known, arg)
			continue
		}
		faults := len(l.Faults)
		long := set.Lookup(name)
		known := long
		switch {
		case strings.HasPrefix(arg, "--"):
			if long == nil {
				l.Faults = append(l.Faults, Fault{flag, meant(set, name)})
			}
		case len(name) > 1 && long != nil:
			l.Faults = append(l.Faults, Fault{flag, "long flags have two hyphens: --" + name})
		case set.ShorthandLookup(name[:1]) == nil:
			hint := ""
			if len(name) > 1 && (name[0] < '0' || name[0] > '9') {
				hint = strings.TrimSuffix("long flags have two hyphens; "+meant(set, name), "; ")
			}
			l.Faults = append(l.Faults, Fault{flag, hint})
		case len(name) == 1:
			known = set.ShorthandLookup(name)
		}
		end := i + 1
		if known != nil && known.NoOptDefVal == "" && !hasValue {
			end = min(end+1, len(args)) // its value
		}
		if len(l.Faults) == faults {
			l.Known = append(l.Known, args[i:end]...)
		}
		i = end - 1
	}
	return l
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
