// Package difference compares values field by field, in the form of their JSON.
package difference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/internal/specfile"
)

// A Field is one that differs. A list whose elements have names of their own, such
// as the environment, is compared by name; any other by position.
type Field struct {
	// Name is a path, such as "definition.env[GREETING].value" or "ports[1]". That
	// of a list is given if only the order of its elements differs.
	Name string `json:"field"`
	// Before and After are nil where there is no such field.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Secret fields have neither, because their values may be secret: those of
	// environment variables, the content of files, and passwords.
	Secret bool `json:"secret,omitempty"`
}

// secrets are the last names of fields whose values are not shown.
var secrets = []string{"value", "content", "image_password"}

// Of returns the fields in which after differs from before by what it means (see
// specfile.Meaning), in the order of their names. The error is that of a value
// without JSON.
func Of(before, after any) ([]Field, error) {
	a, err := specfile.Meaning(before)
	if err != nil {
		return nil, err
	}
	b, err := specfile.Meaning(after)
	if err != nil {
		return nil, err
	}
	var d differ
	d.compare("", a, b)
	return d.fields, nil
}

// None reports whether two values mean the same. One without JSON differs from all.
func None(a, b any) bool {
	fields, err := Of(a, b)
	return err == nil && len(fields) == 0
}

// String is the field in one line.
func (f Field) String() string {
	const most = 100 // characters of a value
	before, after := show.Cut(string(f.Before), most), show.Cut(string(f.After), most)
	switch {
	case f.Secret:
		return f.Name + ": differs, not shown"
	case f.Before == nil:
		return f.Name + ": " + after + ", new"
	case f.After == nil:
		return f.Name + ": " + before + ", removed"
	}
	return fmt.Sprintf("%s: %s → %s", f.Name, before, after)
}

// none is the value of a field that is not there. The null of JSON is nil.
type none struct{}

type differ struct{ fields []Field }

func (d *differ) compare(path string, a, b any) {
	mapA, isMapA := a.(map[string]any)
	mapB, isMapB := b.(map[string]any)
	listA, isListA := a.([]any)
	listB, isListB := b.([]any)
	switch parts := len(mapA) + len(mapB) + len(listA) + len(listB); {
	case parts == 0:
		d.leaf(path, a, b)
	case (isMapA || isNothing(a)) && (isMapB || isNothing(b)):
		d.members(path, mapA, mapB)
	case (isListA || isNothing(a)) && (isListB || isNothing(b)):
		d.elements(path, listA, listB)
	default: // of different kinds
		d.compare(path, a, none{})
		d.compare(path, none{}, b)
	}
}

func isNothing(v any) bool { return v == nil || v == none{} }

func (d *differ) members(path string, a, b map[string]any) {
	union := map[string]any{}
	maps.Copy(union, a)
	maps.Copy(union, b)
	for _, name := range slices.Sorted(maps.Keys(union)) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		d.compare(at, member(a, name), member(b, name))
	}
}

func member(m map[string]any, name string) any {
	if v, has := m[name]; has {
		return v
	}
	return none{}
}

func (d *differ) elements(path string, a, b []any) {
	namesA, byNameA := named(a)
	namesB, byNameB := named(b)
	if byNameA == nil || byNameB == nil {
		for i := range max(len(a), len(b)) {
			d.compare(path+"["+strconv.Itoa(i)+"]", element(a, i), element(b, i))
		}
		return
	}
	found := len(d.fields)
	for _, name := range namesA {
		d.compare(path+"["+name+"]", byNameA[name], member(byNameB, name))
	}
	for _, name := range namesB {
		if byNameA[name] == nil {
			d.compare(path+"["+name+"]", none{}, byNameB[name])
		}
	}
	if len(d.fields) == found && !slices.Equal(namesA, namesB) {
		d.leaf(path, namesA, namesB)
	}
}

func element(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return none{}
}

// named are the names of the elements, and by them what else the elements have.
// The map is nil if an element has no name, or two have the same.
func named(list []any) (names []string, rest map[string]any) {
	rest = map[string]any{}
	for _, e := range list {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if name == "" || rest[name] != nil {
			return nil, nil
		}
		others := maps.Clone(m)
		delete(others, "name")
		names, rest[name] = append(names, name), others
	}
	return names, rest
}

// leaf compares values without parts.
func (d *differ) leaf(path string, a, b any) {
	if before, after := text(a), text(b); !bytes.Equal(before, after) {
		d.add(path, before, after)
	}
}

func (d *differ) add(path string, before, after json.RawMessage) {
	f := Field{Name: path, Before: before, After: after}
	if slices.Contains(secrets, path[strings.LastIndexByte(path, '.')+1:]) {
		f = Field{Name: path, Secret: true}
	}
	d.fields = append(d.fields, f)
}

// text is a value in JSON, or nil if there is none.
func text(v any) json.RawMessage {
	if v == (none{}) {
		return nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it came out of JSON
	return bytes.TrimSpace(out.Bytes())
}
