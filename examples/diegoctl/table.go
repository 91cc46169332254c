package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file draws tables: columns as wide as what is in them, and the last one
// wrapped at the edge of a terminal. Nothing is ever wrapped or cut where the
// output is no terminal, so that a line stays a line for grep.

// A cell of a table is a text and how it looks.
type cell struct {
	text  string
	style style
}

// A style is the parameter of an SGR sequence; empty is plain.
type style string

const (
	plain  style = ""
	bold   style = "1"
	faint  style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

func text(s string) cell { return cell{text: s} }

// A table has a heading and rows of as many cells.
type table struct {
	heading []string
	rows    [][]cell
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
	lines := make([][]cell, 0, len(t.rows)+1)
	if t.heading != nil {
		head := make([]cell, len(t.heading))
		for i, h := range t.heading {
			head[i] = cell{h, bold}
		}
		lines = append(lines, head)
	}
	lines = append(lines, t.rows...)
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i := range line {
			line[i].text = printable(line[i].text)
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i].text))
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
			s.WriteString(c.show(colour))
			s.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)))
			s.WriteString(gap)
		}
		for i, part := range wrap(line[last].text, wrapAt) {
			if i > 0 {
				s.WriteString("\n" + strings.Repeat(" ", indent))
			}
			s.WriteString(cell{part, line[last].style}.show(colour))
		}
		out.WriteString(strings.TrimRight(s.String(), " "))
		out.WriteByte('\n')
	}
	return out.String()
}

func (c cell) show(colour bool) string {
	if !colour || c.style == plain || c.text == "" {
		return c.text
	}
	return "\x1b[" + string(c.style) + "m" + c.text + "\x1b[0m"
}

// wrap breaks a text at spaces into lines of at most width characters, where it
// has spaces.
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

// printable keeps text that somebody else has chosen from moving the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}
