package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Kind says what a value may be.
type Kind struct {
	// Name stands for the value in help.
	Name string
	// Check returns what would be right, or "" if the value is. It may be nil.
	Check func(string) string
	// Values completes it. It may be nil.
	Values Values
	// Files are completed by the shell.
	Files bool
}

// Values returns what an argument after args may be, or nil.
type Values func(cmd *cobra.Command, args []string) []string

// The kinds of values that need no server to be completed.
var (
	Switch    = &Kind{} // takes no value
	Text      = &Kind{Name: "TEXT"}
	File      = &Kind{Name: "FILE", Files: true}
	Directory = &Kind{Name: "DIRECTORY", Files: true}
	Number    = &Kind{Name: "N", Check: func(text string) string {
		if n, err := strconv.Atoi(text); err != nil || n < 0 {
			return "a whole number that is not negative"
		}
		return ""
	}}
	Duration = &Kind{Name: "DURATION", Check: func(text string) string {
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			return "a duration, such as 30s, 5m or 1h30m"
		}
		return ""
	}}
)

// OneOf is a kind with a fixed list of values.
func OneOf(name string, words ...string) *Kind {
	return &Kind{
		Name:   name,
		Values: func(*cobra.Command, []string) []string { return words },
		Check: func(text string) string {
			if slices.Contains(words, text) {
				return ""
			}
			return "one of " + strings.Join(words, ", ")
		},
	}
}

// A Flag describes a flag.
type Flag struct {
	Name, Short string
	Kind        *Kind
	// Default is the value without the flag and without Env.
	Default string
	Help    string
	// Env is the environment variable whose value counts without the flag.
	Env string
	// Many flags may be repeated.
	Many bool
	// Required flags must be given.
	Required bool
}

// With adds flags to cmd and returns it.
func With(cmd *cobra.Command, groups ...[]Flag) *cobra.Command {
	for _, f := range slices.Concat(groups...) {
		f.add(cmd, cmd.Flags())
	}
	return cmd
}

// WithPersistent adds flags to cmd and to everything below it. Those with an
// environment variable that is set have its value. The function that is
// returned tells, once the command line is parsed, whether such a value is
// wrong and counts.
func WithPersistent(cmd *cobra.Command, env func(string) string, list []Flag) (wrong func() error) {
	var checks []func() error
	for _, f := range list {
		added := f.add(cmd, cmd.PersistentFlags())
		text := ""
		if f.Env != "" {
			text = env(f.Env)
		}
		if text == "" {
			continue
		}
		if err := added.Value.Set(text); err != nil {
			checks = append(checks, func() error {
				if added.Changed {
					return nil
				}
				return Wrong("%s in the environment is %q; %v", f.Env, text, err)
			})
		}
	}
	return func() error {
		for _, check := range checks {
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	}
}

// add defines the flag in set, which belongs to cmd.
func (f *Flag) add(cmd *cobra.Command, set *pflag.FlagSet) *pflag.Flag {
	help := f.Help
	if f.Env != "" {
		help += " [" + f.Env + "]"
	}
	if f.Kind == Switch {
		set.BoolP(f.Name, f.Short, false, help)
		return set.Lookup(f.Name)
	}
	v := &value{kind: f.Kind, many: f.Many}
	if f.Default != "" {
		v.texts = []string{f.Default}
	}
	var into pflag.Value = v
	if f.Many {
		into = &repeated{v}
	}
	added := set.VarPF(into, f.Name, f.Short, help)
	if f.Required {
		_ = cmd.MarkFlagRequired(f.Name) // it exists
	}
	complete := Completes(f.Kind.Values)
	if f.Kind.Files {
		complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // it exists, and is new
	return added
}

// Completes completes arguments by their position; the last of the list also
// completes those that follow.
func Completes(list ...Values) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		var fitting []string
		if values := list[min(len(args), len(list)-1)]; values != nil {
			for _, text := range values(cmd, args) {
				if strings.HasPrefix(text, word) {
					fitting = append(fitting, text)
				}
			}
		}
		return fitting, cobra.ShellCompDirectiveNoFileComp
	}
}

// A value is what a flag was given. It implements [pflag.Value].
type value struct {
	kind  *Kind
	many  bool
	texts []string
}

// Set implements [pflag.Value].
func (v *value) Set(text string) error {
	if v.kind.Check != nil {
		if want := v.kind.Check(text); want != "" {
			return errors.New("want " + want)
		}
	}
	if !v.many {
		v.texts = nil
	}
	v.texts = append(v.texts, text)
	return nil
}

// String implements [pflag.Value].
func (v *value) String() string { return strings.Join(v.texts, ",") }

// Type implements [pflag.Value].
func (v *value) Type() string { return v.kind.Name }

// A repeated value may be given several times.
type repeated struct{ *value }

// GetSlice implements [cobra.SliceValue].
func (r *repeated) GetSlice() []string { return r.texts }

// List are the values of a flag that may be repeated.
func List(f *pflag.Flag) []string { return f.Value.(*repeated).texts }
