// Package bugs holds bugs that a simulation must catch: each one is a file of
// the directory catalogue, which says what to replace in the module's source.
// They are put into a build with an overlay, so the tree stays as it is.
//
// A bug's file looks like this; its name is the file's:
//
//	A commit does not compare tags.
//	source: W-05; storage.Store.Commit
//
//	== storage/memstore/memstore.go
//	-- case want != have:
//	++ case false:
//
// Lines that begin with -- are the text to be replaced, which must be there
// exactly once, and those with ++ the text in its place. A file and the pairs
// in it may repeat. A third heading, "survives:", is for a bug that no history
// can show, and says why.
package bugs

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed catalogue/*.txt
var catalogue embed.FS

// A Bug is a change to the module's source.
type Bug struct {
	Name string
	// Says is what the bug does, and Source where it comes from: an item of the
	// digest of the reference implementation, a rule, or an incident.
	Says, Source string
	// Survives says why no history shows the bug; empty for one that must be
	// caught.
	Survives string
	edits    []edit
}

// An edit replaces a text that is in a file exactly once.
type edit struct{ file, before, after string }

// All are the bugs of the catalogue, ordered by name. A file that is not a bug is
// an error.
func All() ([]Bug, error) {
	files, err := catalogue.ReadDir("catalogue")
	if err != nil {
		return nil, err
	}
	var all []Bug
	for _, f := range files {
		text, err := catalogue.ReadFile("catalogue/" + f.Name())
		if err != nil {
			return nil, err
		}
		b, err := parse(strings.TrimSuffix(f.Name(), ".txt"), string(text))
		if err != nil {
			return nil, fmt.Errorf("catalogue/%s: %w", f.Name(), err)
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b Bug) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func parse(name, text string) (Bug, error) {
	b := Bug{Name: name}
	file, last := "", ""
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var e *edit
		if len(b.edits) > 0 {
			e = &b.edits[len(b.edits)-1]
		}
		mark, rest := line, ""
		if len(line) >= 2 {
			mark, rest = line[:2], strings.TrimPrefix(line[2:], " ")
		}
		switch {
		case mark == "==":
			file = rest
		case mark == "--" && file != "":
			if last != "--" {
				b.edits = append(b.edits, edit{file: file})
				e = &b.edits[len(b.edits)-1]
			}
			e.before += rest + "\n"
		case mark == "++" && e != nil:
			e.after += rest + "\n"
		case strings.HasPrefix(line, "source: "):
			b.Source = strings.TrimPrefix(line, "source: ")
		case strings.HasPrefix(line, "survives: "):
			b.Survives = strings.TrimPrefix(line, "survives: ")
		case n == 0:
			b.Says = line
		case line != "":
			return b, fmt.Errorf("line %d means nothing: %q", n+1, line)
		}
		last = mark
	}
	if b.Says == "" || b.Source == "" || len(b.edits) == 0 {
		return b, fmt.Errorf("a bug has a sentence, a source and a replacement")
	}
	return b, nil
}

// Overlay writes the changed files below dir, and a file for the flag -overlay
// of the go command, whose path it returns. root is the module's directory. A
// replacement that does not fit the source of today is an error.
func (b Bug) Overlay(root, dir string) (path string, err error) {
	texts := map[string]string{}
	replace := map[string]string{}
	for i, e := range b.edits {
		real := filepath.Join(root, filepath.FromSlash(e.file))
		text, read := texts[real]
		if !read {
			data, err := os.ReadFile(real)
			if err != nil {
				return "", fmt.Errorf("bug %s: %w", b.Name, err)
			}
			text = string(data)
		}
		start, end, err := find(text, e.before)
		if err != nil {
			return "", fmt.Errorf("bug %s: %s: %w; correct catalogue/%s.txt after the source has changed:\n%s", b.Name, e.file, err, b.Name, e.before)
		}
		texts[real] = text[:start] + e.after + text[end:]
		replace[real] = filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(e.file)))
	}
	for real, text := range texts {
		if err := os.WriteFile(replace[real], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}

// find is where the lines of want are in text, with any indentation. They
// are whole lines, and there once.
func find(text, want string) (start, end int, err error) {
	lines, wanted := strings.SplitAfter(text, "\n"), strings.SplitAfter(want, "\n")
	wanted = wanted[:len(wanted)-1]
	found, at := 0, 0
	for i := range lines {
		same := i+len(wanted) <= len(lines)
		for j := 0; same && j < len(wanted); j++ {
			same = strings.TrimSpace(lines[i+j]) == strings.TrimSpace(wanted[j])
		}
		if same {
			found++
			start, end = at, at+len(strings.Join(lines[i:i+len(wanted)], ""))
		}
		at += len(lines[i])
	}
	if found != 1 {
		return 0, 0, fmt.Errorf("what it replaces is there %d times, and not once", found)
	}
	return start, end, nil
}
