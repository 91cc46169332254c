package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/diegosdk/diego/internal/gnuflags"
)

// ErrHelp says that somebody asked for help instead of a run.
var ErrHelp = errors.New("help was asked for")

// ErrHelpAll wraps ErrHelp. It says that the help is to describe all settings,
// also those in groups.
var ErrHelpAll = fmt.Errorf("%w, with all settings", ErrHelp)

// ErrVersion says that somebody asked for the version instead of a run.
var ErrVersion = errors.New("the version was asked for")

const commandLine = "command line"

// A givenFlag is a setting that the command line gives.
type givenFlag struct {
	field *field
	value string
}

// A settingFlag is a setting as a flag. It implements [pflag.Value].
type settingFlag struct{ *field }

// String implements [pflag.Value]. The help has the default in its text.
func (settingFlag) String() string { return "" }

// Set implements [pflag.Value]. It is not called: see loader.flags.
func (settingFlag) Set(string) error { return nil }

// Type implements [pflag.Value]: it stands for the value in help.
func (f settingFlag) Type() string { return f.kind() }

// flagSet has a flag for each field, and the flags that are not settings. If all
// is false, fields in groups are hidden.
func flagSet(fields []*field, all bool) *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	set.BoolP("help", "h", false, "print this help")
	if slices.ContainsFunc(fields, func(f *field) bool { return f.group != "" }) {
		set.Bool("help-all", false, "print the help of all settings")
	}
	set.Bool("version", false, "print the version")
	set.String("config", "", "read settings from this `FILE`")
	for _, f := range fields {
		added := set.VarPF(settingFlag{f}, strings.TrimPrefix(f.flag(), "--"), "", f.describe())
		added.Hidden = f.group != "" && !all
		if f.value.Kind() == reflect.Bool {
			added.NoOptDefVal = "true"
		}
	}
	return set
}

// flags reads the command line. It returns the settings in it without setting
// them, because they come after those of the file, which the command line
// names.
func (l *loader) flags(args []string) (given []givenFlag, err error) {
	set := flagSet(l.fields, true)
	line := gnuflags.Scan(set, args)
	for _, f := range line.Faults {
		l.problem(commandLine, f.Flag, "", "no such setting; "+cmp.Or(f.Hint, "-h lists them"))
	}
	for _, word := range line.Words {
		l.problem(commandLine, word, "", "want flags only, such as --config FILE; -h lists them")
	}
	err = set.ParseAll(line.Known, func(f *pflag.Flag, value string) error {
		if setting, ok := f.Value.(settingFlag); ok {
			given = append(given, givenFlag{setting.field, value})
			return nil
		}
		return f.Value.Set(value)
	})
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &missing):
		name := "--" + missing.GetSpecifiedName()
		l.problem(commandLine, name, "", "has no value; write "+name+" VALUE")
	case err != nil:
		l.problem(commandLine, err.Error(), "", "-h lists the flags")
	}
	if all, _ := set.GetBool("help-all"); all {
		return nil, ErrHelpAll
	}
	if help, _ := set.GetBool("help"); help {
		return nil, ErrHelp
	}
	if version, _ := set.GetBool("version"); version {
		return nil, ErrVersion
	}
	l.file, _ = set.GetString("config")
	return given, nil
}

// set sets a field from the command line. If a flag is given several times, the
// last one counts.
func (l *loader) set(g givenFlag) {
	f := g.field
	f.where = commandLine
	if want := f.parse(g.value); want != "" {
		l.problem(commandLine, f.flag(), f.shown(g.value), want)
		f.wrong = true
	}
}

// Help describes the settings: name, type, meaning, default and limits. Without
// all it only counts those in groups.
func Help(w io.Writer, name, summary string, settings any, all bool) {
	fields := describe(reflect.ValueOf(settings).Elem())
	fmt.Fprintf(w, "%s: %s\n\nSettings come from flags and from a JSON file; flags win. In the file the name\nof a flag has underscores: --log-level is \"log_level\".\n\n", name, summary)
	io.WriteString(w, flagSet(fields, all).FlagUsagesWrapped(helpWidth))
	var groups []string
	sizes := map[string]int{}
	for _, f := range fields {
		if f.group != "" && sizes[f.group] == 0 {
			groups = append(groups, f.group)
		}
		sizes[f.group]++
	}
	if len(groups) == 0 || all {
		return
	}
	fmt.Fprint(w, "\nFurther settings, which --help-all describes:\n")
	for _, group := range groups {
		fmt.Fprintf(w, "  %-24s %d\n", group, sizes[group])
	}
}

// helpWidth is the width of the help in characters.
const helpWidth = 100

// describe is the help of a setting, with its default and limits.
func (f *field) describe() string {
	var notes []string
	switch {
	case f.byDefault != "":
		notes = append(notes, "default "+f.byDefault)
	case f.required:
		notes = append(notes, "required")
	}
	if len(f.oneof) > 0 {
		notes = append(notes, strings.Join(f.oneof, ", "))
	}
	if limits := strings.TrimSpace(f.limits()); limits != "" {
		notes = append(notes, limits)
	}
	if len(notes) == 0 {
		return f.help
	}
	return f.help + " (" + strings.Join(notes, "; ") + ")"
}

// kind stands for the value in help.
func (f *field) kind() string {
	switch f.value.Interface().(type) {
	case bool:
		return "bool"
	case string:
		return "TEXT"
	case time.Duration:
		return "DURATION"
	case []string:
		return "A,B"
	case map[string]string:
		return "A=1,B=2"
	}
	return "NUMBER"
}
