package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite testdata and docs/cli.md")

// A session is a file of testdata/sessions. Its lines are
//
//	# a comment
//	> what happens in the world, see world.do
//	$ a command line, with '...' around words that have spaces
//	< a line of the command's standard input
//
// and below each command what came of it: lines of standard output after "| ",
// of standard error after "! ", and "= CODE" unless that is 0.

// play carries out a session and returns it with what came of it. Every command
// gets the extra words too.
func play(t *testing.T, w *world, r *remote, text string, extra []string, ran func(line []string, r ran)) string {
	t.Helper()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var out strings.Builder
	for len(lines) > 0 {
		line := lines[0]
		lines = lines[1:]
		switch {
		case line == "", strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
		case strings.HasPrefix(line, "> "):
			fmt.Fprintln(&out, line)
			w.do(split(line[2:]))
		case strings.HasPrefix(line, "$ "):
			fmt.Fprintln(&out, line)
			stdin := ""
			for len(lines) > 0 && strings.HasPrefix(lines[0], "<") {
				fmt.Fprintln(&out, lines[0])
				stdin += strings.TrimPrefix(lines[0][1:], " ") + "\n"
				lines = lines[1:]
			}
			words := append(split(line[2:]), extra...)
			result := w.run(r, stdin, words...)
			if ran != nil {
				ran(words, result)
			}
			out.WriteString(prefixed("| ", result.stdout))
			out.WriteString(prefixed("! ", result.stderr))
			if result.code != 0 {
				fmt.Fprintf(&out, "= %d\n", result.code)
			}
		}
	}
	return out.String()
}

// prefixed puts a prefix before each line. A last line without an end shows as
// such.
func prefixed(prefix, text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		// Escape sequences are shown, not played.
		line = strings.ReplaceAll(line, "\x1b", "␛")
		out.WriteString(strings.TrimRight(prefix+strings.TrimSuffix(line, "\n"), " "))
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("%")
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// split makes words of a line.
func split(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

func sessions(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/sessions/*.txt")
	if err != nil || len(list) == 0 {
		t.Fatalf("no sessions: %v", err)
	}
	return list
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCommandsAnswerAsTheSessionsShow(t *testing.T) {
	for _, name := range sessions(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			w := newWorld(t)
			text := read(t, name)
			got := play(t, w, w.local(), text, nil, nil)
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			sameLines(t, text, got)
		})
	}
}

func TestFollowingALogGoesOnWhereItWasWhenItsCellIsBack(t *testing.T) {
	w := newWorld(t)
	got := play(t, w, w.overHTTP(), `$ lrp create -f ../specs/greeter.json --wait
> writes cell-1-1 stdout one\ntwo\nthree\n
> cut cell-1
$ logs greeter/0
> cut cell-1
> frames 2
$ logs greeter/0 --follow
`, nil, nil)
	_, got, _ = strings.Cut(got, "$ logs greeter/0\n")
	sameLines(t, `| one
| two%
! diegoctl logs: cell cell-1: Logs: the list was cut off after 1 items: no answer came: unexpected EOF
!   does the daemon of the cell run? diegoctl cells shows which are present
= 5
> cut cell-1
> frames 2
$ logs greeter/0 --follow
| one
| two
| three
! --- greeter/0: cell cell-1: Logs: the list was cut off after 1 items: no answer came: unexpected EOF; waiting for it
`, got)
}

func TestSessionsAreTheSameOverHTTP(t *testing.T) {
	for _, name := range sessions(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			w := newWorld(t)
			text := read(t, name)
			sameLines(t, text, play(t, w, w.overHTTP(), text, nil, nil))
		})
	}
}

// sameLines tells the first difference with what stands around it.
func sameLines(t *testing.T, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from := max(0, i-3)
	t.Errorf("line %d differs; -update rewrites the file\nwant\n%s\ngot\n%s", i+1,
		strings.Join(a[from:min(len(a), i+8)], "\n"), strings.Join(b[from:min(len(b), i+8)], "\n"))
}

// tree is diegoctl without a world.
func tree() *cobra.Command {
	return (&process{env: func(string) string { return "" }}).root()
}

// commandOf is the name of the command that a line is for, such as "lrp list".
func commandOf(line []string) string {
	if strings.HasPrefix(line[0], "__complete") {
		return line[0]
	}
	cmd, _, _ := tree().Find(line)
	return nameOf(cmd)
}

func nameOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "diegoctl"), " ")
}

// leaves are the commands that do something, in the order of help.
func leaves(cmd *cobra.Command) (list []*cobra.Command) {
	for _, below := range cmd.Commands() {
		if below.HasSubCommands() {
			list = append(list, leaves(below)...)
		} else {
			list = append(list, below)
		}
	}
	return list
}

func commandNames() (names []string) {
	for _, cmd := range leaves(tree()) {
		names = append(names, nameOf(cmd))
	}
	return names
}

func TestEveryAnswerForProgramsIsOneDocumentPerLine(t *testing.T) {
	documents, documented := map[string]int{}, map[string]bool{}
	for _, name := range commandNames() {
		if name != "help" && name != "logs" && name != "lock hold" && name != "console" && name != "exec" && name != "cp" && !strings.HasPrefix(name, "completion") { // they write no JSON, or see exec_test.go
			documented[name] = true
		}
	}
	for _, name := range sessions(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			w := newWorld(t)
			play(t, w, w.local(), read(t, name), []string{"-o", "json"}, func(line []string, r ran) {
				name := commandOf(line)
				if r.code == exitUsage || !documented[name] || slices.Contains(line, "-h") || slices.Contains(line, "--help") {
					return
				}
				for text := range strings.Lines(r.stdout) {
					var doc map[string]any
					if err := json.Unmarshal([]byte(text), &doc); err != nil || !strings.HasSuffix(text, "\n") {
						t.Errorf("%q says %q: %v", line, text, err)
					}
					documents[name]++
				}
			})
		})
	}
	for name := range documented {
		if documents[name] == 0 {
			t.Errorf("no session shows what %q says to programs", name)
		}
	}
}

func TestTheSessionsShowEveryCommandAndExitCode(t *testing.T) {
	commandsSeen, codes := map[string]bool{}, map[int]bool{}
	for _, name := range sessions(t) {
		w := newWorld(t)
		play(t, w, w.local(), read(t, name), nil, func(line []string, r ran) {
			commandsSeen[commandOf(line)] = commandsSeen[commandOf(line)] || r.code == 0
			codes[r.code] = true
		})
	}
	for _, name := range commandNames() {
		if !commandsSeen[name] && !strings.HasPrefix(name, "completion") && name != "console" && name != "exec" && name != "cp" { // see shell_test.go, console_test.go and exec_test.go
			t.Errorf("no session has %q succeed", name)
		}
	}
	for _, code := range []int{exitOK, exitFailed, exitUsage, exitNotFound, exitRefused, exitInvalid, exitInterrupted} {
		if !codes[code] {
			t.Errorf("no session ends a command with %d", code)
		}
	}
}
