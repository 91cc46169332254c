// Package show writes answers, for people as tables and for programs as JSON.
package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// A Printer writes answers.
type Printer struct {
	Out io.Writer
	// Programs get one JSON document per line instead of tables.
	Programs bool
	// Width is that of the terminal in characters; 0 is no limit.
	Width  int
	Colour bool
}

// A View is what a command shows.
type View struct {
	// About comes first, as lines of a name and a value.
	About [][2]string
	// Heading is that of the table that follows.
	Heading []string
	rows    []row
	// Empty is shown where the table has no rows.
	Empty string
	// Doc, unless it is nil, is what programs get instead of the rows' documents.
	Doc any
	// Notes come last, a paragraph each.
	Notes []string
}

// A row is a line of a table.
type row struct {
	doc   any
	cells []Cell
}

// Add adds a row to the table; doc is what programs get of it.
func (v *View) Add(doc any, cells ...Cell) { v.rows = append(v.rows, row{doc, cells}) }

// AddAbout adds a line before the table unless value is empty.
func (v *View) AddAbout(name, value string) {
	if value != "" {
		v.About = append(v.About, [2]string{name, value})
	}
}

// Show writes a view.
func (p *Printer) Show(v *View) error {
	if p.Programs {
		if v.Doc != nil {
			return p.Emit(v.Doc)
		}
		for _, r := range v.rows {
			if err := p.Emit(r.doc); err != nil {
				return err
			}
		}
		return nil
	}
	about, list := &table{}, &table{heading: v.Heading}
	for _, line := range v.About {
		about.rows = append(about.rows, []Cell{Faint.Of(line[0]), Text(line[1])})
	}
	for _, r := range v.rows {
		list.rows = append(list.rows, r.cells)
	}
	body := list.draw(p.Width, p.Colour)
	if len(v.rows) == 0 && v.Empty != "" {
		body = v.Empty + "\n"
	}
	var out bytes.Buffer
	out.WriteString(about.draw(p.Width, p.Colour))
	if out.Len() > 0 && body != "" {
		out.WriteByte('\n')
	}
	out.WriteString(body)
	for _, note := range v.Notes {
		out.WriteByte('\n')
		for _, line := range wrap(printableLines(note), p.Width) {
			fmt.Fprintln(&out, line)
		}
	}
	_, err := p.Out.Write(out.Bytes())
	return err
}

// Line writes one row without a heading.
func (p *Printer) Line(cells ...Cell) error {
	line := table{rows: [][]Cell{cells}}
	_, err := io.WriteString(p.Out, line.draw(p.Width, p.Colour))
	return err
}

// Emit writes one document on one line, without characters that could change what a
// terminal shows or does.
func (p *Printer) Emit(doc any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return err
	}
	_, err := p.Out.Write(EscapeJSON(line.Bytes()))
	return err
}

// Say writes a sentence for people, or doc for programs.
func (p *Printer) Say(doc any, format string, args ...any) error {
	if p.Programs {
		return p.Emit(doc)
	}
	_, err := fmt.Fprintln(p.Out, printableLines(fmt.Sprintf(format, args...)))
	return err
}
