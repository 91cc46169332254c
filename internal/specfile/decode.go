package specfile

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/spelling"
)

// This file compares a document with the Go type that it is to become, so that
// every difference is told with its place and not only the first one.

// A problem is a difference between a value and its type.
type problem struct {
	offset     int
	path, text string
}

// problems are at most executor.MaxFieldErrors.
type problems struct {
	list    []problem
	omitted int
}

func (p *problems) Error() string { return "the file has other members than are wanted" }

func (p *problems) add(offset int, path, format string, args ...any) {
	if len(p.list) == executor.MaxFieldErrors {
		p.omitted++
		return
	}
	p.list = append(p.list, problem{offset, path, fmt.Sprintf(format, args...)})
}

func (p *problems) want(n *node, path, what string) {
	p.add(n.offset, path, "%s: want %s", shown(n.raw), what)
}

// decode reads a T. The error is an *offsetError or a *problems.
func decode[T any](data []byte) (T, error) {
	var out T
	root, err := parse(data)
	if err != nil {
		return out, err
	}
	found := new(problems)
	found.compare(root, reflect.TypeFor[T](), "", false)
	if len(found.list) > 0 {
		return out, found
	}
	err = json.Unmarshal(root.raw, &out)
	return out, err
}

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	actionType = reflect.TypeFor[executor.Action]()
	tagType    = reflect.TypeFor[executor.ModificationTag]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// compare adds what is wrong with n as a t. inAction is true below an action.
func (p *problems) compare(n *node, t reflect.Type, path string, inAction bool) {
	null := string(n.raw) == "null"
	switch {
	case t == rawType:
	case t.Kind() == reflect.Pointer:
		if !null {
			p.compare(n, t.Elem(), path, inAction)
		}
	case t == actionType && !inAction:
		before := len(p.list) + p.omitted
		p.object(n, t, path, true)
		if len(p.list)+p.omitted == before {
			p.action(n, path)
		}
	case reflect.PointerTo(t).Implements(textType):
		var text string
		if null || json.Unmarshal(n.raw, &text) != nil {
			p.want(n, path, "a text")
		} else if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			p.text(n, path, err)
		}
	case t.Kind() == reflect.Struct && t != tagType:
		p.object(n, t, path, inAction)
	case t.Kind() == reflect.Map:
		if null {
			return
		}
		if n.raw[0] != '{' {
			p.want(n, path, "an object")
			return
		}
		p.twice(n, path)
		for _, m := range n.members {
			p.compare(m.value, t.Elem(), within(path, m.name), inAction)
		}
	case t.Kind() == reflect.Slice:
		if null {
			return
		}
		if n.raw[0] != '[' {
			p.want(n, path, "a list")
			return
		}
		for i, e := range n.elements {
			p.compare(e, t.Elem(), at(path, i), inAction)
		}
	default:
		if null || json.Unmarshal(n.raw, reflect.New(t).Interface()) != nil {
			p.want(n, path, wanted(t))
		}
	}
}

// object compares the members of n with the fields of t.
func (p *problems) object(n *node, t reflect.Type, path string, inAction bool) {
	if n.raw[0] != '{' {
		p.want(n, path, "an object")
		return
	}
	p.twice(n, path)
	known := fields(t)
	for _, m := range n.members {
		field, ok := known[m.name]
		if ok {
			p.compare(m.value, field, within(path, m.name), inAction)
			continue
		}
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		text := "unknown member"
		if guess := spelling.Nearest(m.name, names); guess != "" {
			text += fmt.Sprintf("; did you mean %q?", guess)
		} else if len(names) <= maxListed {
			text += "; want one of " + strings.Join(names, ", ")
		}
		p.add(m.offset, within(path, m.name), "%s", text)
	}
}

// twice adds the members of n that come again.
func (p *problems) twice(n *node, path string) {
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if seen[m.name] {
			p.add(m.offset, within(path, m.name), "given twice")
		}
		seen[m.name] = true
	}
}

// action adds what only the decoder of actions knows: how many kinds there may
// be, and how deep they may nest.
func (p *problems) action(n *node, path string) {
	err := new(executor.Action).UnmarshalJSON(n.raw)
	var invalid *executor.ValidationError
	if !errors.As(err, &invalid) {
		return
	}
	offsets := map[string]int{}
	n.offsets("", offsets)
	for _, f := range invalid.Fields {
		field := f.Field
		f.Field = ""
		whole := path
		if field != "" {
			whole = within(path, field)
		}
		p.add(offsetOf(offsets, field), whole, "%s", f)
	}
}

// text adds why a text is none of those that a type knows.
func (p *problems) text(n *node, path string, err error) {
	var invalid *executor.ValidationError
	if errors.As(err, &invalid) && len(invalid.Fields) == 1 {
		p.want(n, path, invalid.Fields[0].Limit)
		return
	}
	p.add(n.offset, path, "%v", err)
}

// fields are the types of a struct's members by name, those of embedded structs
// included. Like encoding/json, a name counts where it is nested least.
func fields(t reflect.Type) map[string]reflect.Type {
	out := make(map[string]reflect.Type)
	depth := make(map[string]int)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || f.Anonymous && name == "" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if d, ok := depth[name]; !ok || len(f.Index) < d {
			out[name], depth[name] = f.Type, len(f.Index)
		}
	}
	return out
}

// wanted is what a value has to be to fit a Go type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Struct:
		return "a modification tag"
	case reflect.Uint, reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64))
	}
	return "a whole number"
}

const (
	maxShown  = 40 // bytes of a value
	maxListed = 12 // names of members
)

// shown is a value as it is told to people.
func shown(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	if len(raw) > maxShown {
		return strings.ToValidUTF8(string(raw[:maxShown]), "") + "…"
	}
	return string(raw)
}
