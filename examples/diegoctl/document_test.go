package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const document = "../../docs/cli.md"

func TestTheDocumentIsFresh(t *testing.T) {
	if *update {
		if err := os.WriteFile(document, []byte(markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if read(t, document) != markdown() {
		t.Errorf("%s is stale; go generate ./examples/diegoctl renders it", document)
	}
}

// The page has each session after a line that names it.
func TestTheSessionsOfRolloutsAreThoseOfTheDocuments(t *testing.T) {
	const page = "../../docs/deployments.md"
	text := read(t, page)
	marker := regexp.MustCompile("(?m)^<!-- session ([a-z-]+) -->\n(?:\n```\n(?:[^`].*\n|\n)*```\n)?")
	named := map[string]bool{}
	fresh := marker.ReplaceAllStringFunc(text, func(block string) string {
		name := marker.FindStringSubmatch(block)[1]
		named[name] = true
		return "<!-- session " + name + " -->\n\n```\n" + strings.TrimRight(read(t, "testdata/sessions/"+name+".txt"), "\n") + "\n```\n"
	})
	for _, file := range sessions(t) {
		if name := strings.TrimSuffix(filepath.Base(file), ".txt"); strings.HasPrefix(name, "rollout-") && !named[name] {
			t.Errorf("%s lacks the session %s", page, name)
		}
	}
	switch {
	case *update:
		if err := os.WriteFile(page, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	case fresh != text:
		t.Errorf("%s has sessions that are not those of testdata; go generate ./examples/diegoctl renders them", page)
	}
}

// markdown is docs/cli.md.
func markdown() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	root := tree()
	own := slices.DeleteFunc(leaves(root), func(cmd *cobra.Command) bool { // cobra describes its own
		return cmd.Name() == "help" || cmd.Parent().Name() == "completion"
	})
	p("# diegoctl\n\n<!-- Rendered from the commands by go generate ./examples/diegoctl. -->\n\n%s It is `examples/diegoctl`; `go build ./examples/diegoctl` makes it.\n\n", about)
	p("```\ndiegoctl COMMAND [ARGUMENTS] [FLAGS]\n```\n\n")
	p("Flags may stand anywhere. Long flags have two hyphens. People get tables; with `-o json` programs get one JSON document per line, the same records that the API has. ")
	p("Commands that show a state show it again with `--watch` whenever something happens, in place on a terminal. ")
	p("Nothing is coloured, wrapped or cut unless the output is a terminal. ")
	p("`diegoctl completion` makes bash, zsh, fish and PowerShell complete commands, flags and the guids that exist now; `diegoctl completion bash --help` says how to install it.\n\n")
	p("[Spec files](../examples/specs/README.md) are YAML or JSON; for `apply` and `plan`, one may have several documents. Everything that is wrong with one is reported at once, with line, column and field:\n\n")
	p("```\nweb.yaml:9:5: action.run.user: want a text that is not empty\nweb.yaml:14:3: instnaces: unknown member; did you mean \"instances\"?\n```\n\n")
	p("## Commands\n\n| command | |\n|---|---|\n")
	for _, cmd := range own {
		p("| [`%s`](#%s) | %s |\n", nameOf(cmd), strings.ReplaceAll(nameOf(cmd), " ", "-"), cmd.Short)
	}
	p("\n## Flags of every command\n\n```\n%s```\n", root.PersistentFlags().FlagUsages())
	p("\n## Exit codes\n\n| code | |\n|---|---|\n")
	for _, e := range exitCodes {
		p("| %d | %s |\n", e.code, e.help)
	}
	for _, cmd := range own {
		text := cmd.Long
		if text == "" {
			text = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
		}
		p("\n## %s\n\n%s\n\n```\n%s\n", nameOf(cmd), text, cmd.UseLine())
		if flags := cmd.LocalFlags().FlagUsages(); flags != "" {
			p("\n%s", flags)
		}
		if cmd.Example != "" {
			p("\n%s\n", cmd.Example)
		}
		p("```\n")
	}
	return b.String()
}

func TestEveryCommandIsDescribed(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.HasParent() && cmd.Short == "" || !cmd.Runnable() {
			t.Errorf("%q has no description or does nothing", cmd.CommandPath())
		}
		if nothing := cmd.HasAvailableLocalFlags() && strings.Contains(cmd.LocalFlags().FlagUsages(), "   \n"); nothing {
			t.Errorf("%q has a flag without a description", cmd.CommandPath())
		}
		for _, below := range cmd.Commands() {
			check(below)
		}
	}
	check(tree())
}
