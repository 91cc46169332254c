package specfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/diegosdk/diego/internal/spelling"

	"github.com/diegosdk/diego/executor"
)

// This file knows where in a text each value is.

// A node is one value of a document.
type node struct {
	offset int
	raw    json.RawMessage
	// members are those of an object, in the order in which they stand there.
	members []member
	// elements are those of a list.
	elements []*node
}

type member struct {
	name   string
	offset int // of the name
	value  *node
}

// An offsetError is a problem at a byte of the text.
type offsetError struct {
	offset int
	text   string
}

func (e *offsetError) Error() string { return e.text }

// parse finds every value of the one object that the text is.
func parse(data []byte) (*node, error) {
	if len(data) > MaxBytes {
		return nil, &offsetError{text: fmt.Sprintf("the file has %d bytes; want at most %d", len(data), MaxBytes)}
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return nil, &offsetError{i, "not UTF-8"}
		}
		i += n
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &offsetError{text: "the file is empty; want a JSON object"}
	}
	// This finds every error of syntax, nesting without limit included; what
	// follows meets none.
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			text := syntaxText(syntax)
			if spelling.YAML.Match(data) {
				text += "; this looks like YAML, and spec files are JSON (yq -o json makes one of the other)"
			}
			return nil, &offsetError{min(max(int(syntax.Offset)-1, 0), len(data)-1), text}
		}
		return nil, err
	}
	p := &parser{data: data, in: json.NewDecoder(bytes.NewReader(data))}
	root, err := p.value()
	if err != nil {
		return nil, err
	}
	if root.raw[0] != '{' {
		return nil, &offsetError{root.offset, "want a JSON object"}
	}
	return root, nil
}

// syntaxText tells what is wrong without the words of a library.
func syntaxText(err *json.SyntaxError) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.Contains(text, "after top-level value") {
		return text + "; want one document in the file"
	}
	if strings.Contains(text, "looking for beginning of object key") {
		return text + "; names are in double quotes, and no comma comes after the last member"
	}
	return text
}

type parser struct {
	data []byte
	in   *json.Decoder
}

// start is where the next token begins.
func (p *parser) start() int {
	at := int(p.in.InputOffset())
	for at < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[at]) >= 0 {
		at++
	}
	return at
}

func (p *parser) value() (*node, error) {
	n := &node{offset: p.start()}
	token, err := p.in.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		for p.in.More() {
			m := member{offset: p.start()}
			name, err := p.in.Token()
			if err != nil {
				return nil, err
			}
			m.name, _ = name.(string)
			if m.value, err = p.value(); err != nil {
				return nil, err
			}
			n.members = append(n.members, m)
		}
		_, err = p.in.Token()
	case json.Delim('['):
		for p.in.More() {
			element, err := p.value()
			if err != nil {
				return nil, err
			}
			n.elements = append(n.elements, element)
		}
		_, err = p.in.Token()
	}
	n.raw = json.RawMessage(p.data[n.offset:p.in.InputOffset()])
	return n, err
}

// within is the path of a member.
func within(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// at is the path of an element.
func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// offsets are those of all values by the paths that a Validator gives them. Of
// values with the same path, which takes a name with a dot in it, the first
// counts.
func (n *node) offsets(path string, to map[string]int) {
	if _, taken := to[path]; !taken {
		to[path] = n.offset
	}
	for _, m := range n.members {
		m.value.offsets(within(path, m.name), to)
	}
	for i, e := range n.elements {
		e.offsets(at(path, i), to)
	}
}

// offsetOf is the offset of the value with this path, or of what should have
// held it.
func offsetOf(offsets map[string]int, path string) int {
	for path != "" {
		if offset, ok := offsets[path]; ok {
			return offset
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return offsets[""]
}

// position is the line and the column of an offset, counted from 1.
func position(data []byte, offset int) (line, column int) {
	before := data[:min(offset, len(data))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// located gives the fields that err names their lines.
func located(name string, data []byte, err error) error {
	out := &Error{File: name}
	add := func(offset int, field, text string) {
		line, column := position(data, offset)
		out.Problems = append(out.Problems, Problem{Line: line, Column: column, Field: field, Text: text})
	}
	var misplaced *offsetError
	var found *problems
	var invalid *executor.ValidationError
	switch {
	case errors.As(err, &misplaced):
		add(misplaced.offset, "", misplaced.text)
	case errors.As(err, &found):
		for _, p := range found.list {
			add(p.offset, p.path, p.text)
		}
		out.Omitted = found.omitted
	case errors.As(err, &invalid):
		offsets := map[string]int{}
		if root, err := parse(data); err == nil {
			root.offsets("", offsets)
		}
		for _, f := range invalid.Fields {
			field := f.Field
			f.Field = ""
			add(offsetOf(offsets, field), field, f.String())
		}
		out.Omitted = invalid.Omitted
	default:
		add(0, "", err.Error())
	}
	slices.SortStableFunc(out.Problems, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return out
}
