// Package tabledocs renders the tables of this module as documentation, so
// that what people read is what the code does. `go generate ./...` writes the
// pages to docs/tables, and what every field does to docs/fields.md; a test fails
// when they are stale.
package tabledocs

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Page is one file of docs/tables.
type Page struct {
	Name string // such as "rep-lrp.md"
	Text string
}

// Pages renders everything, in the order of the index, which comes first.
func Pages() []Page {
	index := Page{Name: "README.md"}
	var text strings.Builder
	text.WriteString("# Tables\n\n" + generated + "\nEvery table is an array in the code; these pages show all its rows.\n\n")
	pages := []Page{index}
	for _, t := range tables() {
		fmt.Fprintf(&text, "- [%s](%s.md) ([CSV](%s.csv)): %d rows, `%s`\n", t.title, t.name, t.name, len(t.rows), t.source)
		pages = append(pages, Page{t.name + ".md", t.markdown()}, Page{t.name + ".csv", t.csv()})
	}
	text.WriteString("- [Older forms of the rep's tables](views.md)\n- [State machines](states.md)\n")
	pages[0].Text = text.String()
	return append(pages, Page{"views.md", viewsPage()}, Page{"states.md", statesPage()})
}

// Stale returns the names of the files in dir that are not as [Pages] has
// them: changed, missing, or left over.
func Stale(dir string) ([]string, error) {
	var stale []string
	known := map[string]bool{}
	for _, p := range Pages() {
		known[p.Name] = true
		have, err := os.ReadFile(filepath.Join(dir, p.Name))
		if err != nil || string(have) != p.Text {
			stale = append(stale, p.Name)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !known[e.Name()] {
			stale = append(stale, e.Name())
		}
	}
	slices.Sort(stale)
	return stale, nil
}

// generated is the first line of every page.
const generated = "<!-- Written by go generate from the tables in the code. Do not edit. -->\n"

// A table is one of the module's tables, ready to be written.
type table struct {
	name   string // of the files, without an extension
	title  string
	source string // what it is in the code, such as "rep.DecideLRP"
	intro  string
	head   []string
	rows   [][]string
}

func (t *table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n%s The table is `%s`.\n\n", t.title, generated, t.intro, t.source)
	writeMarkdown(&b, t.head, t.rows)
	return b.String()
}

func writeMarkdown(b *strings.Builder, head []string, rows [][]string) {
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
	}
	for _, row := range append([][]string{head, rule}, rows...) {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
}

func (t *table) csv() string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	// A bytes.Buffer takes every write.
	_ = w.WriteAll(append([][]string{t.head}, t.rows...))
	return b.String()
}
