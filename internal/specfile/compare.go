package specfile

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/spelling"
)

// decode makes a T of a document that can be one, or tells every difference
// from the type. The error is an [*Error].
func decode[T any](root *node) (T, error) {
	var out T
	found := new(Error)
	found.compare(root, reflect.TypeFor[T](), "", false)
	if len(found.Problems) > 0 {
		return out, found
	}
	err := json.Unmarshal(root.raw, &out)
	return out, err
}

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	actionType = reflect.TypeFor[executor.Action]()
	tagType    = reflect.TypeFor[executor.ModificationTag]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (e *Error) want(n *node, path, what string) {
	e.add(n.line, n.column, path, "%s: want %s", shown(n.raw), what)
}

// compare adds what is wrong with n as a t. inAction is true below an action.
func (e *Error) compare(n *node, t reflect.Type, path string, inAction bool) {
	null := string(n.raw) == "null"
	switch {
	case t == rawType:
	case t.Kind() == reflect.Pointer:
		if !null {
			e.compare(n, t.Elem(), path, inAction)
		}
	case t == actionType && !inAction:
		before := len(e.Problems) + e.Omitted
		e.object(n, t, path, true)
		if len(e.Problems)+e.Omitted == before {
			e.action(n, path)
		}
	case reflect.PointerTo(t).Implements(textType):
		var text string
		if null || json.Unmarshal(n.raw, &text) != nil {
			e.want(n, path, "a text")
		} else if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			e.text(n, path, err)
		}
	case t.Kind() == reflect.Struct && t != tagType:
		e.object(n, t, path, inAction)
	case t.Kind() == reflect.Map:
		if null {
			return
		}
		if n.raw[0] != '{' {
			e.want(n, path, "an object")
			return
		}
		e.twice(n, path)
		for _, m := range n.members {
			e.compare(m.value, t.Elem(), within(path, m.name), inAction)
		}
	case t.Kind() == reflect.Slice:
		if null {
			return
		}
		if n.raw[0] != '[' {
			e.want(n, path, "a list")
			return
		}
		for i, element := range n.elements {
			e.compare(element, t.Elem(), at(path, i), inAction)
		}
	default:
		if null || json.Unmarshal(n.raw, reflect.New(t).Interface()) != nil {
			e.want(n, path, wanted(t))
		}
	}
}

// object compares the members of n with the fields of t.
func (e *Error) object(n *node, t reflect.Type, path string, inAction bool) {
	if n.raw[0] != '{' {
		e.want(n, path, "an object")
		return
	}
	e.twice(n, path)
	known := fields(t)
	for _, m := range n.members {
		field, ok := known[m.name]
		if ok {
			e.compare(m.value, field, within(path, m.name), inAction)
			continue
		}
		names := slices.Sorted(maps.Keys(known))
		text := "unknown member"
		if guess := spelling.Nearest(m.name, names); guess != "" {
			text += fmt.Sprintf("; did you mean %q?", guess)
		} else if len(names) <= maxListed {
			text += "; want one of " + strings.Join(names, ", ")
		}
		e.add(m.line, m.column, within(path, m.name), "%s", text)
	}
}

// twice adds the members of n that come again.
func (e *Error) twice(n *node, path string) {
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if seen[m.name] {
			e.add(m.line, m.column, within(path, m.name), "given twice")
		}
		seen[m.name] = true
	}
}

// action adds what only the decoder of actions knows: how many kinds there may
// be, and how deep they may nest.
func (e *Error) action(n *node, path string) {
	err := new(executor.Action).UnmarshalJSON(n.raw)
	var invalid *executor.ValidationError
	if errors.As(err, &invalid) {
		e.addInvalid(n, path, invalid)
	}
}

// text adds why a text is none of those that a type knows.
func (e *Error) text(n *node, path string, err error) {
	var invalid *executor.ValidationError
	if errors.As(err, &invalid) && len(invalid.Fields) == 1 {
		e.want(n, path, invalid.Fields[0].Limit)
		return
	}
	e.add(n.line, n.column, path, "%v", err)
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
