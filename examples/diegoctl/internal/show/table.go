package show

import (
	"strings"
	"unicode/utf8"
)

// A Cell of a table is a text and how it looks.
type Cell struct {
	Text  string
	Style Style
}

// A Style is the parameter of an SGR sequence; empty is plain.
type Style string

// The styles.
const (
	Plain  Style = ""
	bold   Style = "1"
	Faint  Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Text is a plain cell.
func Text(s string) Cell { return Cell{Text: s} }

// Of is a cell in this style.
func (s Style) Of(text string) Cell { return Cell{text, s} }

// A table has rows of equally many cells, and perhaps a heading. Columns are as
// wide as their content. On a terminal the last column is wrapped at the edge.
// Elsewhere nothing is wrapped or cut, so that grep finds whole lines.
type table struct {
	heading []string
	rows    [][]Cell
}

const (
	gap = "  "
	// leastWrapped is how narrow a wrapped column may become.
	leastWrapped = 24
)

// draw writes the table. A width of 0 is no limit.
func (t *table) draw(width int, colour bool) string {
	if len(t.rows) == 0 {
		return ""
	}
	lines := make([][]Cell, 0, len(t.rows)+1)
	if t.heading != nil {
		head := make([]Cell, len(t.heading))
		for i, h := range t.heading {
			head[i] = bold.Of(h)
		}
		lines = append(lines, head)
	}
	lines = append(lines, t.rows...)
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i := range line {
			line[i].Text = Printable(line[i].Text)
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i].Text))
		}
	}
	last := len(widths) - 1
	indent := 0
	for _, w := range widths[:last] {
		indent += w + len(gap)
	}
	wrapAt := 0
	if width > 0 && indent+widths[last] > width {
		wrapAt = max(leastWrapped, width-indent)
	}
	var out strings.Builder
	for _, line := range lines {
		var s strings.Builder
		for i, c := range line[:last] {
			s.WriteString(c.Show(colour))
			s.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text)))
			s.WriteString(gap)
		}
		for i, part := range wrap(line[last].Text, wrapAt) {
			if i > 0 {
				s.WriteString("\n" + strings.Repeat(" ", indent))
			}
			s.WriteString(line[last].Style.Of(part).Show(colour))
		}
		out.WriteString(strings.TrimRight(s.String(), " "))
		out.WriteByte('\n')
	}
	return out.String()
}

// Show is the text of the cell, coloured or not.
func (c Cell) Show(colour bool) string {
	if !colour || c.Style == Plain || c.Text == "" {
		return c.Text
	}
	return "\x1b[" + string(c.Style) + "m" + c.Text + "\x1b[0m"
}

// wrap breaks a text at spaces into lines of at most width characters. A longer
// word is a line of its own.
func wrap(text string, width int) []string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// printableLines is Printable for a text of several lines, whose ends stay.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Printable is s without the characters that could move the cursor, or show text in
// another order.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if controls(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}
