package specfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/diegosdk/diego/executor"
)

// A node is one value of a document.
type node struct {
	line, column int
	// raw is the value in JSON.
	raw json.RawMessage
	// members are those of an object, in the order in which they stand there.
	members []member
	// elements are those of a list.
	elements []*node
}

type member struct {
	name         string
	line, column int // of the name
	value        *node
}

// plainSpaces replaces what JSON has between values besides spaces and line
// ends. The YAML parser counts columns wrong after a tab, and takes a carriage
// return for a line end.
var plainSpaces = strings.NewReplacer("\t", " ", "\r", " ")

// parse finds every value of the one object that the text is. The error is an
// [*Error] without a file.
func parse(data []byte) (*node, error) {
	list, err := parseAll(data)
	switch {
	case err != nil:
		return nil, err
	case list[0].raw[0] != '{':
		return nil, problemAt(list[0].line, list[0].column, "want an object")
	case len(list) > 1:
		return nil, problemAt(list[1].line, list[1].column, "want one document in the file")
	}
	return list[0], nil
}

// parseObjects finds every value of the objects that the text has: as documents,
// or as elements of lists that are documents. There is at least one. The error is
// an [*Error] without a file.
func parseObjects(data []byte) ([]*node, error) {
	list, err := parseAll(data)
	if err != nil {
		return nil, err
	}
	var objects []*node
	found := new(Error)
	for _, root := range list {
		elements := []*node{root}
		if root.raw[0] == '[' {
			elements = root.elements
		}
		for _, n := range elements {
			if n.raw[0] != '{' {
				found.want(n, "", "an object")
			}
			objects = append(objects, n)
		}
	}
	switch {
	case len(found.Problems) > 0:
		return nil, found
	case len(objects) == 0:
		return nil, problemAt(list[0].line, list[0].column, "the list is empty; want at least one object")
	}
	return objects, nil
}

// parseAll finds every value of a text, which has one document in JSON, or at
// least one in YAML. The error is an [*Error] without a file.
func parseAll(data []byte) ([]*node, error) {
	if len(data) > MaxBytes {
		return nil, problemAt(1, 1, "the file has %d bytes; want at most %d", len(data), MaxBytes)
	}
	if !utf8.Valid(data) {
		return nil, problemIn(data, bytes.IndexRune(data, utf8.RuneError), "not UTF-8")
	}
	text := string(data)
	// All JSON is YAML, but only a parser of JSON says what is wrong as JSON.
	if start := bytes.TrimSpace(data); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		var syntax *json.SyntaxError
		if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
			return nil, problemIn(data, min(int(syntax.Offset), len(data))-1, "%s", syntaxText(syntax))
		}
		text = plainSpaces.Replace(text)
	}
	tokens := lexer.Tokenize(text)
	if deep := beyondDepth(tokens); deep != nil {
		return nil, problemAt(deep.Position.Line, deep.Position.Column, "nested too deep; want at most %d levels", maxDepth)
	}
	var list []*node
	for _, part := range documents(tokens) {
		file, err := parser.Parse(part, 0, parser.AllowDuplicateMapKey())
		if err != nil {
			return nil, yamlProblem(err)
		}
		if len(file.Docs) != 1 || file.Docs[0].Body == nil {
			at := part[0].Position
			return nil, problemAt(at.Line, at.Column, "want an object")
		}
		n, err := newNode(file.Docs[0].Body)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	if len(list) == 0 {
		return nil, problemAt(1, 1, "the file is empty; want an object")
	}
	return list, nil
}

// documents are the tokens of each document that is not empty. The parser of
// several documents drops all that follow an empty one.
func documents(tokens token.Tokens) (list []token.Tokens) {
	var part token.Tokens
	content := false
	end := func() {
		if content {
			part[0].Prev, part[len(part)-1].Next = nil, nil
			list = append(list, part)
		}
		part, content = nil, false
	}
	for _, t := range tokens {
		switch t.Type {
		case token.DocumentHeaderType, token.DocumentEndType:
			end()
			continue
		case token.CommentType:
		default:
			content = true
		}
		part = append(part, t)
	}
	end()
	return list
}

// maxDepth is how deep lists and objects may be nested. The parser calls itself
// for each level, and takes the square of their number.
const maxDepth = 100

// beyondDepth is the first token that is certainly deeper than [maxDepth], or
// nil. A level is a bracket, an indentation, or a dash or question mark after
// others on its line.
func beyondDepth(tokens token.Tokens) *token.Token {
	brackets, line, marks := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, marks = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType:
			marks++
		}
		if max(brackets, t.Position.IndentLevel, marks) > maxDepth {
			return t
		}
	}
	return nil
}

// newNode makes a node of YAML. It refuses what JSON cannot say, and anchors:
// a few lines with aliases can stand for a document of any size.
func newNode(from ast.Node) (*node, error) {
	at := from.GetToken()
	n := &node{line: at.Position.Line, column: at.Position.Column}
	switch from := from.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.InfinityNode, *ast.NanNode:
		return nil, problemAt(n.line, n.column, "%s: anchors, aliases, tags, .inf and .nan are not accepted; want a plain value", at.Value)
	case *ast.SequenceNode:
		list := []json.RawMessage{}
		for _, value := range from.Values {
			element, err := newNode(value)
			if err != nil {
				return nil, err
			}
			if value.GetToken().Type == token.ImplicitNullType {
				element.line, element.column = n.line, n.column // its own may be beyond the text
			}
			n.elements, list = append(n.elements, element), append(list, element.raw)
		}
		n.raw = encoded(list)
	case ast.MapNode:
		n.raw = []byte("{")
		for values := from.MapRange(); values.Next(); {
			key := values.Key().GetToken()
			switch values.Key().(type) {
			case *ast.MergeKeyNode, *ast.MappingKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
				return nil, problemAt(key.Position.Line, key.Position.Column, "%s: want a plain name", key.Value)
			}
			value, err := newNode(values.Value())
			if err != nil {
				return nil, err
			}
			if values.Value().GetToken().Type == token.ImplicitNullType {
				value.line, value.column = key.Position.Line, key.Position.Column // its own may be beyond the text
			}
			if len(n.members) > 0 {
				n.raw = append(n.raw, ',')
			} else if at.Type == token.MappingValueType { // the colon after the first name
				n.line, n.column = key.Position.Line, key.Position.Column
			}
			n.members = append(n.members, member{key.Value, key.Position.Line, key.Position.Column, value})
			n.raw = append(append(append(n.raw, encoded(key.Value)...), ':'), value.raw...)
		}
		n.raw = append(n.raw, '}')
	case *ast.LiteralNode:
		n.raw = encoded(from.Value.Value)
	case ast.ScalarNode:
		quoted := at.Type == token.DoubleQuoteType || at.Type == token.SingleQuoteType
		if n.raw = json.RawMessage(at.Value); quoted || !json.Valid(n.raw) { // as in 0x1F
			n.raw = encoded(from.GetValue())
		}
	default:
		return nil, problemAt(n.line, n.column, "%s: want a value", at.Value)
	}
	return n, nil
}

// encoded is the JSON of a value that came out of YAML.
func encoded(value any) json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // such values have JSON
	return bytes.TrimSpace(text.Bytes())
}

// yamlProblem is an error of the YAML parser with its place.
func yamlProblem(err error) error {
	var located yaml.Error
	if !errors.As(err, &located) || located.GetToken() == nil {
		return problemAt(1, 1, "%v", err)
	}
	at := located.GetToken().Position
	return problemAt(at.Line, at.Column, "%s", located.GetMessage())
}

// syntaxText explains an error of encoding/json.
func syntaxText(err *json.SyntaxError) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.Contains(text, "after top-level value") {
		return text + "; want one document in the file, or a list of them where a file may have several"
	}
	if strings.Contains(text, "looking for beginning of object key") {
		return text + "; names are in double quotes, and no comma comes after the last member"
	}
	return text
}

// problemAt is an [*Error] with one problem.
func problemAt(line, column int, format string, args ...any) error {
	e := new(Error)
	e.add(line, column, "", format, args...)
	return e
}

// problemIn is an [*Error] with a problem at an offset.
func problemIn(data []byte, offset int, format string, args ...any) error {
	before := data[:max(offset, 0)]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return problemAt(1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(line), format, args...)
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

// collect adds all values to a map by the paths that a Validator gives them. If
// several values have one path because of a dot in a name, the first counts.
func (n *node) collect(path string, to map[string]*node) {
	if to[path] == nil {
		to[path] = n
	}
	for _, m := range n.members {
		m.value.collect(within(path, m.name), to)
	}
	for i, e := range n.elements {
		e.collect(at(path, i), to)
	}
}

// addInvalid adds the fields that a Validator has found in n, which has the path
// base. A field that is missing has the place of what should hold it.
func (e *Error) addInvalid(n *node, base string, invalid *executor.ValidationError) {
	nodes := map[string]*node{}
	n.collect("", nodes)
	for _, f := range invalid.Fields {
		path := f.Field
		for nodes[path] == nil {
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
		}
		where, field := nodes[path], base
		if f.Field != "" {
			field = within(base, f.Field)
		}
		f.Field = ""
		e.add(where.line, where.column, field, "%s", f)
	}
	e.Omitted += invalid.Omitted
}
