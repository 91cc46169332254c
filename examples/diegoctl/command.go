package main

import (
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/storage"
)

// This file holds what commands are. Help, the parser of arguments, completion
// and docs/cli.md follow from this data and from nothing else.

// A command is one thing that diegoctl does.
type command struct {
	// name is one word or two, such as "lrp scale".
	name string
	args []arg
	// help is what it does, as one sentence without a full stop.
	help string
	// more is further paragraphs.
	more  string
	flags []flagSpec
	// examples are command lines without the program's name.
	examples []string
	// watchable commands show a state, and can show it again as it changes.
	watchable bool
	// hidden commands are for programs.
	hidden bool
	run    func(*call) error
}

// An arg is an argument by position.
type arg struct {
	name string
	kind *kind
	// optional arguments may be left out, many may be given several times.
	// Only the last argument of a command is either.
	optional, many bool
}

// A flagSpec is an argument by name.
type flagSpec struct {
	name string
	kind *kind
	// value is what it is called in help, if not as its kind.
	value string
	// def is the value without the flag.
	def  string
	help string
	// env is the variable that is asked before def.
	env string
	// many flags may be given several times; their values are lines.
	many bool
	// required flags must be given.
	required bool
}

// A kind says what an argument may be.
type kind struct {
	// value is its name in help; empty for a switch, which takes no value.
	value string
	// check returns what would be right, or "".
	check func(string) string
	// words are all values there are, or nil.
	words []string
	// complete are values that exist now, and may be nil.
	complete func(*call) []string
	// files are completed by the shell.
	files bool
}

var (
	kindSwitch   = &kind{}
	kindText     = &kind{value: "TEXT"}
	kindFile     = &kind{value: "FILE", files: true}
	kindNumber   = &kind{value: "N", check: checkNumber}
	kindTime     = &kind{value: "DURATION", check: checkDuration}
	kindProcess  = &kind{value: "GUID", complete: processGUIDs}
	kindTask     = &kind{value: "GUID", complete: taskGUIDs}
	kindAny      = &kind{value: "GUID", complete: allGUIDs}
	kindCell     = &kind{value: "CELL", complete: cellIDs}
	kindDomain   = &kind{value: "DOMAIN", complete: domainNames}
	kindLRPState = words("STATE", "UNCLAIMED", "CLAIMED", "RUNNING", "CRASHED")
	kindTState   = words("STATE", "PENDING", "RUNNING", "COMPLETED", "RESOLVING")
	kindStream   = words("STREAM", "stdout", "stderr", "health")
	kindShell    = words("SHELL", "bash", "zsh", "fish")
	kindEvent    = words("KIND", storage.EventKinds()...)
	kindOutput   = words("FORMAT", "table", "json")
	kindColor    = words("WHEN", "auto", "always", "never")
)

// words is a kind with a fixed list of values.
func words(value string, list ...string) *kind {
	return &kind{value: value, words: list, check: func(text string) string {
		if slices.Contains(list, text) {
			return ""
		}
		return "one of " + strings.Join(list, ", ")
	}}
}

func checkNumber(text string) string {
	if _, err := parseNumber(text); err != nil {
		return "a whole number that is not negative"
	}
	return ""
}

func checkDuration(text string) string {
	if d, err := time.ParseDuration(text); err != nil || d < 0 {
		return "a duration, such as 30s, 5m or 1h30m"
	}
	return ""
}

// globals are the flags of every command.
var globals = []flagSpec{
	{name: "bbs", kind: kindText, value: "URL", env: "DIEGO_BBS",
		help: "where the BBS is; several addresses with commas between them, for an active one and those that stand by (default: your own allinone)"},
	{name: "data", kind: kindFile, value: "DIRECTORY", env: "DIEGO_DATA",
		help: "without -bbs, the data directory of the allinone to ask (default: that of your own one)"},
	{name: "auctioneer", kind: kindText, value: "URL", env: "DIEGO_AUCTIONEER",
		help: "where the auctioneer is, as -bbs; for plan (default: where the BBS is)"},
	{name: "cert", kind: kindFile, env: "DIEGO_CERT", help: "the client's certificate, PEM"},
	{name: "key", kind: kindFile, env: "DIEGO_KEY", help: "the key of the certificate, PEM"},
	{name: "ca", kind: kindFile, env: "DIEGO_CA", help: "the certificates that servers are checked against, PEM"},
	{name: "timeout", kind: kindTime, env: "DIEGO_TIMEOUT", def: "15s", help: "how long a server may take to answer"},
	{name: "o", kind: kindOutput, env: "DIEGO_OUTPUT", def: "table",
		help: "table for people, or json: one document per line for programs"},
	{name: "color", kind: kindColor, def: "auto", help: "colour: auto means on a terminal unless NO_COLOR is set"},
	{name: "help", kind: kindSwitch, help: "help about the command"},
}

// watchFlags are those of watchable commands.
var watchFlags = []flagSpec{
	{name: "watch", kind: kindSwitch, help: "show it again whenever it changes, until interrupted"},
	{name: "interval", kind: kindTime, def: "2s", help: "with -watch, the longest time between two looks"},
}

// waitFlags are those of commands that can wait for what they have asked for.
var waitFlags = []flagSpec{
	{name: "wait", kind: kindSwitch, help: "wait until it is done"},
	{name: "for", kind: kindTime, def: "5m", help: "with -wait, how long to wait at most"},
}

// all are the flags of c, its own first.
func (c *command) all() []flagSpec {
	list := slices.Clone(c.flags)
	if c.watchable {
		list = append(list, watchFlags...)
	}
	return append(list, globals...)
}

// synopsis is the command line without the program's name.
func (c *command) synopsis() string {
	text := c.name
	for _, f := range c.flags {
		if f.required {
			text += " -" + f.name + " " + f.takes()
		}
	}
	for _, a := range c.args {
		name := a.name
		if a.many {
			name += "..."
		}
		if a.optional {
			name = "[" + name + "]"
		}
		text += " " + name
	}
	if len(c.flags) > 0 || c.watchable {
		text += " [flags]"
	}
	return text
}

// takes is what the flag's value is called.
func (f *flagSpec) takes() string {
	if f.value != "" {
		return f.value
	}
	return f.kind.value
}

// find returns the command that the words begin with, and the rest of them.
func find(words []string) (*command, []string) {
	list := commands()
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.Join(words[:n], " ")
		for i := range list {
			if list[i].name == name {
				return &list[i], words[n:]
			}
		}
	}
	return nil, words
}
