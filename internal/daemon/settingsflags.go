package daemon

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
)

// ErrHelp says that somebody asked for help instead of a run.
var ErrHelp = errors.New("help was asked for")

// ErrVersion says that somebody asked for the version instead of a run.
var ErrVersion = errors.New("the version was asked for")

const commandLine = "command line"

// A givenFlag is a setting of the command line.
type givenFlag struct{ name, value string }

// flags takes the command line apart. The settings among it are returned: they
// count after those of the file, which it names.
func (l *loader) flags(args []string) (given []givenFlag, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, isFlag := strings.CutPrefix(arg, "-")
		if !isFlag || name == "" {
			l.problem(commandLine, arg, "", "want flags only, such as -config FILE; -h lists them")
			continue
		}
		name = strings.TrimPrefix(name, "-")
		name, value, hasValue := strings.Cut(name, "=")
		if name == "h" || name == "help" {
			return nil, ErrHelp
		}
		if name == "version" {
			return nil, ErrVersion
		}
		f := l.find(strings.ReplaceAll(name, "-", "_"))
		if name != "config" && (f == nil || strings.Contains(name, "_")) {
			l.problem(commandLine, "-"+name, "", l.unknown("-"+name, (*field).flag))
			// What follows may be its value.
			if !hasValue && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
				args = args[1:]
			}
			continue
		}
		if !hasValue && name != "config" && f.value.Kind() == reflect.Bool {
			value, hasValue = "true", true
		}
		if !hasValue {
			if len(args) == 0 {
				l.problem(commandLine, "-"+name, "", "has no value; write -"+name+" VALUE")
				continue
			}
			value, args = args[0], args[1:]
		}
		if name == "config" {
			l.file = value
		} else {
			given = append(given, givenFlag{f.name, value})
		}
	}
	return given, nil
}

// set takes a setting of the command line. The last of several counts.
func (l *loader) set(g givenFlag) {
	f := l.find(g.name)
	f.where = commandLine
	if want := f.parse(g.value); want != "" {
		l.problem(commandLine, f.flag(), f.shown(g.value), want)
		f.wrong = true
	}
}

// Help writes what the settings are: name, type, meaning, default and limits.
func Help(w io.Writer, name, summary string, settings any) {
	fmt.Fprintf(w, "%s: %s\n\nSettings come from flags and from a JSON file; flags win. In the file the name\nof a flag has underscores: -log-level is \"log_level\".\n\n", name, summary)
	fmt.Fprintf(w, "  -config FILE\n\tthe file with settings\n  -version\n\tsay which version this is, and end\n")
	for _, f := range describe(reflect.ValueOf(settings).Elem()) {
		fmt.Fprintf(w, "  %s %s\n\t%s", f.flag(), f.kind(), f.help)
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
		if len(notes) > 0 {
			fmt.Fprintf(w, " (%s)", strings.Join(notes, "; "))
		}
		fmt.Fprintln(w)
	}
}

// kind stands for the value in the help.
func (f *field) kind() string {
	switch f.value.Interface().(type) {
	case bool:
		return "[true|false]"
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
