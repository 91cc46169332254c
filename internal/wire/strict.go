package wire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/diegosdk/diego/executor"
)

// decodeStrictly reads one JSON value. Every fault of the text is a validation
// error. So is every member that the type of in lacks: a misspelt name must not be
// ignored.
func decodeStrictly(text []byte, in any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(in); err != nil {
		return fault(err, len(text))
	}
	if _, err := decoder.Token(); err != io.EOF {
		return invalid("", "", "one JSON value and nothing after it")
	}
	var v executor.Validator
	unknownMembers(&v, bytes.TrimSpace(text), reflect.TypeOf(in), "")
	return v.Err()
}

// fault makes a validation error of a decoder's error.
func fault(err error, length int) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, executor.ErrInvalid):
		return err
	case errors.As(err, &kind):
		return invalid(kind.Field, kind.Value, "a "+kind.Type.String())
	case errors.As(err, &syntax):
		return invalid("", fmt.Sprintf("byte %d", syntax.Offset), "JSON: "+err.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("", fmt.Sprintf("%d bytes", length), "a whole JSON value")
	}
	return invalid("", "", err.Error())
}

func invalid(field, value, limit string) error {
	var v executor.Validator
	v.Check(false, field, value, limit)
	return v.Err()
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// unknownMembers notes the members of a valid JSON text that t lacks.
func unknownMembers(v *executor.Validator, text json.RawMessage, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	holdsObject := bytes.IndexByte(text, '{') >= 0
	if t == rawType || reflect.PointerTo(t).Implements(textType) || !holdsObject {
		return
	}
	switch {
	case t.Kind() == reflect.Struct && text[0] == '{':
		known := members(t)
		object := decoded[map[string]json.RawMessage](text)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			field, ok := known[name]
			if !ok {
				v.Check(false, within(path, name), "", "a known member")
				continue
			}
			unknownMembers(v, object[name], field, within(path, name))
		}
	case t.Kind() == reflect.Map && text[0] == '{':
		object := decoded[map[string]json.RawMessage](text)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			unknownMembers(v, object[name], t.Elem(), within(path, name))
		}
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && text[0] == '[':
		for i, element := range decoded[[]json.RawMessage](text) {
			unknownMembers(v, element, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// decoded reads text that is known to be such a value.
func decoded[T any](text json.RawMessage) (out T) {
	_ = json.Unmarshal(text, &out)
	return out
}

func within(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// known holds the members of the types that have been asked for.
var known sync.Map // of reflect.Type to map[string]reflect.Type

// members are the JSON members of a struct, with those of embedded structs.
func members(t reflect.Type) map[string]reflect.Type {
	if m, ok := known.Load(t); ok {
		return m.(map[string]reflect.Type)
	}
	m := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "", !f.IsExported(), name == "-":
		case name == "":
			m[f.Name] = f.Type
		default:
			m[name] = f.Type
		}
	}
	known.Store(t, m)
	return m
}
