package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/diegosdk/diego/internal/version"
)

// This file says what diegoctl does, all of it from the table of commands.

const about = "diegoctl operates a Diego: long-running processes, tasks, and the cells that they run on."

// help writes help about what a command line names.
func (c *call) help(line []string) {
	if c.command != nil {
		writeHelp(c.out, c.command)
		return
	}
	for _, word := range line {
		if list := group(word); len(list) > 0 {
			writeList(c.out, list)
			return
		}
	}
	writeOverview(c.out)
}

func helpCommand(c *call) error {
	if len(c.args) == 0 {
		writeOverview(c.out)
		return nil
	}
	if command, left := find(c.args); command != nil && len(left) == 0 {
		writeHelp(c.out, command)
		return nil
	}
	if list := group(c.args[0]); len(list) > 0 && len(c.args) == 1 {
		writeList(c.out, list)
		return nil
	}
	return unknownCommand(c.args)
}

func writeOverview(w io.Writer) {
	fmt.Fprintf(w, "%s\n\nusage: diegoctl COMMAND [ARGUMENTS] [FLAGS]\n\n", about)
	writeList(w, commands())
	fmt.Fprintf(w, "\nflags of every command:\n%s", flagTable(globals))
	fmt.Fprintf(w, "\nexit codes:\n%s", codeTable())
}

func writeList(w io.Writer, list []command) {
	t := table{}
	for _, c := range list {
		if !c.hidden {
			t.rows = append(t.rows, []cell{text("  " + c.name), text(c.help)})
		}
	}
	io.WriteString(w, t.draw(0, false))
}

func writeHelp(w io.Writer, c *command) {
	fmt.Fprintf(w, "diegoctl %s: %s\n\nusage: diegoctl %s\n", c.name, c.help, c.synopsis())
	if c.more != "" {
		fmt.Fprintf(w, "\n%s\n", strings.Join(wrap(c.more, 80), "\n"))
	}
	if own := c.all()[:len(c.all())-len(globals)]; len(own) > 0 {
		fmt.Fprintf(w, "\nflags:\n%s", flagTable(own))
	}
	if len(c.examples) > 0 {
		fmt.Fprintln(w, "\nexamples:")
		for _, e := range c.examples {
			fmt.Fprintf(w, "  diegoctl %s\n", e)
		}
	}
	fmt.Fprintf(w, "\nflags of every command:\n%s", flagTable(globals))
}

func flagTable(list []flagSpec) string {
	t := table{}
	for _, f := range list {
		t.rows = append(t.rows, []cell{text("  -" + strings.TrimSpace(f.name+" "+f.takes())), text(f.describe())})
	}
	return t.draw(0, false)
}

// describe is the help of a flag with its default and its variable.
func (f *flagSpec) describe() string {
	help := f.help
	if f.def != "" {
		help += fmt.Sprintf(" (default %s)", f.def)
	}
	if f.env != "" {
		help += fmt.Sprintf(" [%s]", f.env)
	}
	return help
}

func codeTable() string {
	t := table{}
	for _, e := range exitCodes {
		t.rows = append(t.rows, []cell{text(fmt.Sprintf("  %d", e.code)), text(e.help)})
	}
	return t.draw(0, false)
}

func sayVersion(c *call) error {
	if c.forPrograms() {
		program, goVersion := version.Of()
		return c.emit(map[string]string{"version": program, "go": goVersion})
	}
	return version.Print(c.out, "diegoctl")
}

// Markdown is docs/cli.md.
func markdown() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# diegoctl\n\n<!-- Rendered from the table of commands by go generate ./examples/diegoctl. -->\n\n%s It is `examples/diegoctl`; `go build ./examples/diegoctl` makes it.\n\n", about)
	p("```\ndiegoctl COMMAND [ARGUMENTS] [FLAGS]\n```\n\n")
	p("Flags may stand anywhere. People get tables; with `-o json` programs get one JSON document per line, the same records that the API has. ")
	p("Commands that show a state show it again with `-watch` whenever something happens, in place on a terminal. ")
	p("Nothing is coloured, wrapped or cut unless the output is a terminal.\n\n")
	p("[Spec files](../examples/specs/README.md) are JSON. What is wrong with one is told with line, column and field, all of it at once:\n\n")
	p("```\nweb.json:9:5: action.run.user: want a text that is not empty\nweb.json:14:3: instnaces: unknown member; did you mean \"instances\"?\n```\n\n")
	p("## Commands\n\n| command | |\n|---|---|\n")
	for _, c := range commands() {
		if !c.hidden {
			p("| [`%s`](#%s) | %s |\n", c.name, strings.ReplaceAll(c.name, " ", "-"), c.help)
		}
	}
	p("\n## Flags of every command\n\n")
	markdownFlags(&b, globals)
	p("\n## Exit codes\n\n| code | |\n|---|---|\n")
	for _, e := range exitCodes {
		p("| %d | %s |\n", e.code, e.help)
	}
	for _, c := range commands() {
		if c.hidden {
			continue
		}
		p("\n## %s\n\n```\ndiegoctl %s\n```\n\n%s.\n", c.name, c.synopsis(), strings.ToUpper(c.help[:1])+c.help[1:])
		if c.more != "" {
			p("\n%s\n", c.more)
		}
		if own := c.all()[:len(c.all())-len(globals)]; len(own) > 0 {
			p("\n")
			markdownFlags(&b, own)
		}
		if len(c.examples) > 0 {
			p("\n```\n")
			for _, e := range c.examples {
				p("diegoctl %s\n", e)
			}
			p("```\n")
		}
	}
	return b.String()
}

func markdownFlags(w io.Writer, list []flagSpec) {
	fmt.Fprint(w, "| flag | variable | default | |\n|---|---|---|---|\n")
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + s + "`"
	}
	for _, f := range list {
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", strings.TrimSpace("-"+f.name+" "+f.takes()), code(f.env), code(f.def), f.help)
	}
}
