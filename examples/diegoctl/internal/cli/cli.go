// Package cli adds to cobra what every command of diegoctl needs: flags whose
// values have rules and environment variables (flag.go), arguments checked
// against the usage line, and errors that name the right command or flag.
package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/diegosdk/diego/internal/gnuflags"
	"github.com/diegosdk/diego/internal/spelling"
)

// A UsageError says that the command line is wrong.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// Wrong returns a [UsageError].
func Wrong(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Index names the argument that makes an instance of the GUID before it. Both
// may be given as one word, as lists show them: "web/0" is "web 0".
const Index = "INDEX"

// numbers names the arguments that are numbers.
var numbers = map[string]bool{"N": true, Index: true, "REVISION": true}

// Arguments checks args against the usage line of cmd, where "[NAME]" may be
// left out and "NAME..." may be repeated. It returns them with an instance
// taken apart. The error is a [*UsageError].
func Arguments(cmd *cobra.Command, args []string) ([]string, error) {
	var names []string
	for words := strings.Fields(cmd.Use)[1:]; len(words) > 0; words = words[1:] {
		if strings.HasPrefix(words[0], "-") {
			words = words[1:] // a required flag has a value
			continue
		}
		names = append(names, words[0])
	}
	if len(names) > 1 && len(args) > 0 && strings.Trim(names[1], "[]") == Index {
		if guid, index, both := strings.Cut(args[0], "/"); both {
			args = append([]string{guid, index}, args[1:]...)
		}
	}
	for i, arg := range args {
		if i >= len(names) {
			if len(names) == 0 || !strings.HasSuffix(names[len(names)-1], "...") {
				return nil, Wrong("unexpected argument %q", arg)
			}
			continue
		}
		name := strings.Trim(names[i], "[].")
		if arg == "" {
			return nil, Wrong("%s is empty", name)
		}
		if numbers[name] {
			if want := Number.Check(arg); want != "" {
				return nil, Wrong("%s is %q; want %s", name, arg, want)
			}
		}
	}
	if n := len(args); n < len(names) && !strings.HasPrefix(names[n], "[") {
		return nil, Wrong("%s is missing", strings.Trim(names[n], "."))
	}
	return args, nil
}

// Group makes cmd a command that does nothing but hold others.
func Group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.HasParent() {
			return cmd.Help()
		}
		return Wrong("a command is missing; there is %s", strings.Join(names(cmd), ", "))
	}
	return cmd
}

// Root finishes the root command, once everything is below it.
func Root(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	noFiles := cobra.ShellCompDirectiveNoFileComp
	root.CompletionOptions.DefaultShellCompDirective = &noFiles
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		var wrong *pflag.InvalidValueError
		switch {
		case !errors.As(err, &wrong):
			return err
		case wrong.GetFlag().Value.Type() == "bool":
			return Wrong("--%s is %q; want true or false", wrong.GetFlag().Name, wrong.GetValue())
		}
		return Wrong("--%s is %q; %v", wrong.GetFlag().Name, wrong.GetValue(), errors.Unwrap(wrong))
	})
	// A group runs only to say what is below it.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if not .HasSubCommands}}", 1))
	// Cobra's own commands exit with 0 about a command that does not exist.
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	Group(completion)
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, args []string) error {
		if cmd, rest, _ := root.Find(args); len(rest) > 0 {
			return unknown(cmd, rest[0])
		}
		return nil
	}
}

// Check looks for commands and flags in the command line that do not exist. It
// returns the command that the line is for, and a [*UsageError] or nil.
func Check(root *cobra.Command, line []string) (*cobra.Command, error) {
	cmd, rest, _ := root.Find(line)
	if len(line) > 0 && strings.HasPrefix(line[0], cobra.ShellCompRequestCmd) {
		return cmd, nil // the line is still being written
	}
	cmd.InitDefaultHelpFlag() // Flags then has all flags of the command
	cmd.InitDefaultVersionFlag()
	l := gnuflags.Scan(cmd.Flags(), rest)
	if cmd.HasSubCommands() && len(l.Words) > 0 && !slices.Contains(names(cmd), l.Words[0]) {
		return cmd, unknown(cmd, l.Words[0])
	}
	if len(l.Faults) == 0 {
		return cmd, nil
	}
	text := "there is no flag " + l.Faults[0].Flag
	if hint := l.Faults[0].Hint; hint != "" {
		text += "; " + hint
	}
	return cmd, Wrong("%s", text)
}

// unknown says which command below cmd may have been meant. Cobra's guesses are
// too many: "get" for "lst".
func unknown(cmd *cobra.Command, word string) error {
	_, path, _ := strings.Cut(cmd.CommandPath()+" ", " ")
	below := names(cmd)
	if guess := spelling.Nearest(word, below); guess != "" {
		return Wrong("there is no command %q; did you mean %q?", path+word, path+guess)
	}
	if cmd.HasParent() && len(below) > 0 {
		return Wrong("there is no command %q; there is %s", path+word, strings.Join(below, ", "))
	}
	return Wrong("there is no command %q", path+word)
}

// names are those of the commands below cmd.
func names(cmd *cobra.Command) (list []string) {
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			list = append(list, below.Name())
		}
	}
	return list
}
