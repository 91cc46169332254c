package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A struct of settings describes itself: each field is one setting, those of
// embedded structs included. Its tags are
//
//	name     as in the file, such as "leader_ttl"; the flag is "--leader-ttl"
//	help     what it does, in a few words
//	default  what it is unless somebody sets it; empty means what the field is
//	         before Load
//	range    "1s..10m", "1..65535" or "1..": the accepted values, both included
//	oneof    the accepted texts, separated by spaces
//	unit     of a number, for people
//	required "true" if it must not be empty
//	secret   "true" if its value is shown to nobody
//
// An embedded struct may have the tags
//
//	group    what its settings concern; only --help-all describes them
//	prefix   what the names of its settings begin with, such as "cell_"
//
// The types are bool, string, int, int64, uint16, float64, time.Duration,
// []string and map[string]string. In the file a duration is a text such as
// "15s", a list is a list and a map is an object; as a flag both have commas:
// "a,b" and "a=1,b=2".

// A Checker is a struct of settings whose fields depend on one another. Check
// calls report for each setting that is wrong, with its name and what would be
// accepted.
type Checker interface {
	Check(report func(name, want string))
}

// An Excuser is a struct of settings that may say, once its fields are set,
// that it requires nothing and that Check is not to be called.
type Excuser interface {
	Excused() bool
}

// A Problem is one setting that is wrong.
type Problem struct {
	// Where is "file:line" or "command line".
	Where string
	// Name is the name of the setting in the file, or what was given in its
	// place.
	Name string
	// Value is the given value; empty if there was none.
	Value string
	// Want says what would be accepted.
	Want string
}

func (p Problem) String() string {
	text := p.Name
	if p.Where != "" {
		text = p.Where + ": " + p.Name
	}
	if p.Value != "" {
		text += ": " + p.Value
	}
	return text + ": " + p.Want
}

// A SettingsError lists all settings that are wrong: first those of the file in
// their order, then those of the command line, then those that are missing or
// contradict each other.
type SettingsError struct{ Problems []Problem }

func (e *SettingsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Load fills settings, a pointer to a struct as described above: first with the
// defaults, then from the file that --config names, then from the other flags.
// The error is a *SettingsError with everything that is wrong, ErrHelp,
// ErrHelpAll or ErrVersion if args ask for that, or the reason why the file
// cannot be read.
func Load(settings any, args []string) error {
	l := &loader{fields: describe(reflect.ValueOf(settings).Elem())}
	for _, f := range l.fields {
		if f.byDefault != "" {
			if want := f.parse(f.byDefault); want != "" {
				panic(fmt.Sprintf("the default of %s is %s: %s", f.name, f.byDefault, want))
			}
		}
	}
	given, err := l.flags(args)
	if err != nil {
		return err
	}
	ofFlags := l.problems
	l.problems = nil
	if l.file != "" {
		file, err := os.Open(l.file)
		if err != nil {
			return fmt.Errorf("the settings cannot be read: %w; --config names their file", err)
		}
		data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("the settings cannot be read: %w", err)
		}
		l.read(data)
	}
	l.problems = append(l.problems, ofFlags...)
	for _, g := range given {
		l.set(g)
	}
	l.finish(settings)
	if len(l.problems) > 0 {
		return &SettingsError{l.problems}
	}
	return nil
}

// A field is one setting.
type field struct {
	name, help, unit    string
	group               string // empty if -h describes the setting too
	byDefault, accepted string // accepted is the tag "range"
	oneof               []string
	required, secret    bool
	value               reflect.Value
	where               string // what has set it, or ""
	wrong               bool
}

func describe(v reflect.Value) (list []*field) {
	for i := range v.NumField() {
		t := v.Type().Field(i)
		if t.Anonymous {
			for _, f := range describe(v.Field(i)) {
				f.name = t.Tag.Get("prefix") + f.name
				f.group = cmp.Or(f.group, t.Tag.Get("group"))
				list = append(list, f)
			}
			continue
		}
		f := &field{
			name: t.Tag.Get("name"), help: t.Tag.Get("help"), unit: t.Tag.Get("unit"),
			byDefault: t.Tag.Get("default"), accepted: t.Tag.Get("range"), oneof: strings.Fields(t.Tag.Get("oneof")),
			required: t.Tag.Get("required") == "true", secret: t.Tag.Get("secret") == "true", value: v.Field(i),
		}
		if f.name == "" {
			panic("the setting " + t.Name + " has no name")
		}
		if f.byDefault == "" && !f.value.IsZero() {
			f.byDefault = f.text()
		}
		list = append(list, f)
	}
	return list
}

func (f *field) flag() string { return "--" + strings.ReplaceAll(f.name, "_", "-") }

// shown is a value as messages show it.
func (f *field) shown(value string) string {
	if f.secret && value != "" {
		return "(not shown)"
	}
	const most = 100
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return value
}

// A loader collects what is wrong.
type loader struct {
	fields   []*field
	file     string
	problems []Problem
}

func (l *loader) find(name string) *field {
	i := slices.IndexFunc(l.fields, func(f *field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return l.fields[i]
}

func (l *loader) problem(where, name, value, want string) {
	l.problems = append(l.problems, Problem{where, name, value, want})
}

// finish reports settings that are missing or contradict each other, except
// those that were reported before.
func (l *loader) finish(settings any) {
	if e, ok := settings.(Excuser); ok && e.Excused() {
		return
	}
	for _, f := range l.fields {
		if f.required && f.value.IsZero() && !f.wrong {
			l.problem(f.where, f.name, "", fmt.Sprintf("missing: want %s; set %q in the file or %s", f.want(), f.name, f.flag()))
			f.wrong = true
		}
	}
	if c, ok := settings.(Checker); ok {
		c.Check(func(name, want string) {
			f := l.find(name)
			if f == nil {
				panic("Check names " + name + ", which is not a setting")
			}
			if !f.wrong {
				l.problem(f.where, f.name, f.shown(f.text()), want)
			}
		})
	}
}

// text is the value as a flag would give it.
func (f *field) text() string {
	switch v := f.value.Interface().(type) {
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		var parts []string
		for name, value := range v {
			parts = append(parts, name+"="+value)
		}
		slices.Sort(parts)
		return strings.Join(parts, ",")
	case time.Duration:
		return v.String()
	default:
		return fmt.Sprint(v)
	}
}
