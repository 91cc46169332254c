package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/internal/spelling"
)

// This file reads command lines. Flags may stand anywhere, with one hyphen or
// two, and have their value after a space or "=".

// A usageError says that the command line is wrong.
type usageError struct {
	// about is the command, nil if it is not known which.
	about *command
	text  string
}

func (e *usageError) Error() string { return e.text }

func wrongUse(about *command, format string, args ...any) error {
	return &usageError{about, fmt.Sprintf(format, args...)}
}

// errHelp is returned for a command line that asks for help.
var errHelp = errors.New("help is wanted")

// parsed is a command line.
type parsed struct {
	command *command
	args    []string
	// flags are the values of those that were given.
	flags map[string]string
}

// parse reads a command line. p.command is set if it is known, whatever the
// error.
func parse(line []string) (p parsed, err error) {
	p.flags = map[string]string{}
	// Global flags may stand before the command.
	var words []string
	rest := line
	for len(rest) > 0 && isFlag(rest[0]) {
		if rest, err = p.flag(globals, rest); err != nil {
			return p, err
		}
	}
	// The words up to the next flag name the command.
	for i := 0; i < len(rest) && i < 2 && !isFlag(rest[i]); i++ {
		words = append(words, rest[i])
	}
	if len(words) == 0 {
		if p.on("help") || len(rest) == 0 {
			return p, errHelp
		}
		return p, wrongUse(nil, "%s stands before the command", rest[0])
	}
	command, left := find(words)
	if command == nil {
		if p.on("help") || len(rest) > len(words) && isHelp(rest[len(words)]) {
			return p, helpAbout(words)
		}
		return p, unknownCommand(words)
	}
	p.command = command
	rest = rest[len(words)-len(left):]
	flags := command.all()
	for len(rest) > 0 {
		switch {
		case rest[0] == "--":
			p.args = append(p.args, rest[1:]...)
			rest = nil
		case isFlag(rest[0]):
			if rest, err = p.flag(flags, rest); err != nil {
				return p, err
			}
		default:
			p.args = append(p.args, rest[0])
			rest = rest[1:]
		}
	}
	if p.on("help") {
		return p, errHelp
	}
	p.args = command.splitInstance(p.args)
	return p, p.check()
}

// splitInstance lets an instance be named as lists show it: "web/0" is "web 0".
func (c *command) splitInstance(args []string) []string {
	if len(args) == 0 || len(c.args) < 2 || c.args[1].name != instanceIndex {
		return args
	}
	guid, index, both := strings.Cut(args[0], "/")
	if !both {
		return args
	}
	return append([]string{guid, index}, args[1:]...)
}

// isFlag reports whether a word is a flag. A hyphen alone is standard input,
// and one with a digit a number.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word != "--"
}

func isHelp(word string) bool { return word == "-h" || word == "-help" || word == "--help" }

// flag takes one flag off the line.
func (p *parsed) flag(known []flagSpec, line []string) (rest []string, err error) {
	name, value, has := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line[0], "-"), "-"), "=")
	rest = line[1:]
	if name == "h" {
		name = "help"
	}
	f := lookup(known, name)
	if f == nil {
		text := fmt.Sprintf("there is no flag -%s", name)
		names := make([]string, len(known))
		for i := range known {
			names[i] = known[i].name
		}
		if name == "version" {
			text += "; diegoctl version says which one this is"
		} else if guess := spelling.Nearest(name, names); guess != "" {
			text += fmt.Sprintf("; did you mean -%s?", guess)
		}
		return rest, wrongUse(p.command, "%s", text)
	}
	switch {
	case f.kind == kindSwitch && !has:
		value = "true"
	case f.kind == kindSwitch:
		if on, err := strconv.ParseBool(value); err != nil {
			return rest, wrongUse(p.command, "-%s is %q; want true or false", name, value)
		} else {
			value = strconv.FormatBool(on)
		}
	case !has:
		if len(rest) == 0 {
			return rest, wrongUse(p.command, "-%s needs a value: %s", name, f.takes())
		}
		value, rest = rest[0], rest[1:]
	}
	if f.kind.check != nil {
		if want := f.kind.check(value); want != "" {
			return rest, wrongUse(p.command, "-%s is %q; want %s", name, value, want)
		}
	}
	if before, given := p.flags[name]; given && f.many {
		value = before + "\n" + value
	}
	p.flags[name] = value
	return rest, nil
}

func lookup(flags []flagSpec, name string) *flagSpec {
	for i := range flags {
		if flags[i].name == name {
			return &flags[i]
		}
	}
	return nil
}

// check says what is missing and what is too much.
func (p *parsed) check() error {
	c := p.command
	for _, f := range c.flags {
		if f.required && p.flags[f.name] == "" {
			return wrongUse(c, "-%s %s is missing: %s", f.name, f.takes(), f.help)
		}
	}
	for i, word := range p.args {
		if i >= len(c.args) {
			if last := len(c.args) - 1; last < 0 || !c.args[last].many {
				return wrongUse(c, "%q is too much", word)
			}
			continue
		}
		a := c.args[i]
		if word == "" {
			return wrongUse(c, "%s is empty", a.name)
		}
		if a.kind.check != nil {
			if want := a.kind.check(word); want != "" {
				return wrongUse(c, "%s is %q; want %s", a.name, word, want)
			}
		}
	}
	if n := len(p.args); n < len(c.args) && !c.args[n].optional {
		return wrongUse(c, "%s is missing", c.args[n].name)
	}
	return nil
}

func (p *parsed) on(name string) bool { return p.flags[name] == "true" }

// helpAbout is help about a group of commands, such as "lrp".
func helpAbout(words []string) error {
	if len(group(words[0])) > 0 {
		return errHelp
	}
	return unknownCommand(words)
}

// group are the commands whose first word is the given one.
func group(word string) (list []command) {
	for _, c := range commands() {
		if first, _, two := strings.Cut(c.name, " "); two && first == word {
			list = append(list, c)
		}
	}
	return list
}

// unknownCommand says what there is instead.
func unknownCommand(words []string) error {
	var names, seconds []string
	for _, c := range commands() {
		if c.hidden {
			continue
		}
		names = append(names, c.name)
		if first, second, _ := strings.Cut(c.name, " "); first == words[0] {
			seconds = append(seconds, second)
		}
	}
	if len(seconds) > 0 {
		if len(words) == 1 {
			return wrongUse(nil, "%s what? there is %s", words[0], strings.Join(seconds, ", "))
		}
		text := fmt.Sprintf("there is no command %q", strings.Join(words, " "))
		if guess := spelling.Nearest(words[1], seconds); guess != "" {
			return wrongUse(nil, "%s; did you mean %q?", text, words[0]+" "+guess)
		}
		return wrongUse(nil, "%s; there is %s", text, strings.Join(seconds, ", "))
	}
	// What was typed may be one word of a command of two, or several.
	text := fmt.Sprintf("there is no command %q", words[0])
	if guess := spelling.Nearest(strings.Join(words, " "), names); guess != "" {
		return wrongUse(nil, "there is no command %q; did you mean %q?", strings.Join(words, " "), guess)
	}
	var firsts []string
	for _, name := range names {
		first, _, _ := strings.Cut(name, " ")
		firsts = append(firsts, first)
	}
	if guess := spelling.Nearest(words[0], firsts); guess != "" {
		return wrongUse(nil, "%s; did you mean %q?", text, guess)
	}
	return wrongUse(nil, "%s", text)
}

func parseNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	return n, err
}

// The values of flags. A value that was given has been checked.

func (c *call) flag(name string) string {
	if value, given := c.flags[name]; given {
		return value
	}
	f := lookup(globals, name)
	if c.command != nil {
		f = lookup(c.command.all(), name)
	}
	if f == nil {
		return "" // a flag of other commands
	}
	if f.env != "" {
		if value := c.env(f.env); value != "" {
			return value
		}
	}
	return f.def
}

// checkEnvironment checks the values that come from variables.
func (c *call) checkEnvironment() error {
	for _, f := range c.command.all() {
		_, given := c.flags[f.name]
		if f.env == "" || given || f.kind.check == nil || c.env(f.env) == "" {
			continue
		}
		if want := f.kind.check(c.env(f.env)); want != "" {
			return wrongUse(c.command, "%s in the environment is %q; want %s", f.env, c.env(f.env), want)
		}
	}
	return nil
}

func (c *call) given(name string) bool { _, given := c.flags[name]; return given }

func (c *call) on(name string) bool { return c.flag(name) == "true" }

func (c *call) list(name string) []string {
	if c.flag(name) == "" {
		return nil
	}
	return strings.Split(c.flag(name), "\n")
}

func (c *call) number(name string) int {
	n, _ := parseNumber(c.flag(name))
	return n
}

func (c *call) duration(name string) time.Duration {
	d, _ := time.ParseDuration(c.flag(name))
	return d
}

// arg is an argument by position, or empty.
func (c *call) arg(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

func (c *call) argNumber(i int) int {
	n, _ := parseNumber(c.arg(i))
	return n
}
