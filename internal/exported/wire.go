package exported

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
)

// wireName is how the calls over HTTP are written down.
const wireName = "wire"

// Wire describes all calls over HTTP, one line for each member of arguments and
// answers and of the types in them, with its value where everything is set:
//
//	/v1/bbs/claim_lrp POST
//	/v1/bbs/claim_lrp arguments.claim lrp.Claim
//	lrp.Claim definition_id "definition_id"
//	urn:diego:problem:validation 400
//
// So a member that is renamed, is gone or is encoded in another way changes a line.
func Wire() ([]string, error) {
	w := wire{described: map[reflect.Type]bool{}}
	for _, c := range httpapi.Calls() {
		w.lines = append(w.lines, c.Path+" "+c.Method)
		if !c.Feed {
			w.describe(c.Path, "arguments", c.Arguments)
		}
		w.describe(c.Path, "answer", c.Answer)
	}
	for _, k := range httpapi.ProblemKinds() {
		w.lines = append(w.lines, fmt.Sprintf("%s %d", k.Type, k.Status))
	}
	slices.Sort(w.lines)
	return slices.Compact(w.lines), w.err
}

type wire struct {
	lines     []string
	described map[reflect.Type]bool
	err       error
}

// describe writes the lines of a type, which are about subject.
func (w *wire) describe(subject, path string, t reflect.Type) {
	values := []any{Full(t)}
	if t == actionType {
		values = values[:0]
		for _, a := range Full(t).(executor.Action).Parallel.Actions {
			values = append(values, a)
		}
	}
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			w.err = errors.Join(w.err, fmt.Errorf("%s: %w", subject, err))
			return
		}
		w.walk(subject, path, t, text, subject == t.String())
	}
}

// walk writes the lines of a JSON text of a type. A type with a name that others
// see is described once, by itself.
func (w *wire) walk(subject, path string, t reflect.Type, text json.RawMessage, itself bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	at := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch {
	case t.Kind() == reflect.Struct && text[0] == '{' && token.IsExported(t.Name()) && t.NumField() > 0 && !itself:
		w.lines = append(w.lines, fmt.Sprintf("%s %s %v", subject, path, t))
		if !w.described[t] {
			w.described[t] = true
			w.describe(t.String(), "", t)
		}
	case t != rawType && text[0] == '{' && string(text) != "{}":
		fields := map[string]reflect.Type{}
		if t.Kind() == reflect.Struct {
			for _, f := range reflect.VisibleFields(t) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				fields[name] = f.Type
			}
		}
		for name, member := range decoded[map[string]json.RawMessage](text) {
			of := fields[name]
			if t.Kind() == reflect.Map {
				of = t.Elem()
			} else if of == nil {
				of = rawType // made by the type itself
			}
			w.walk(subject, at(name), of, member, false)
		}
	case t.Kind() == reflect.Slice && text[0] == '[':
		for _, element := range decoded[[]json.RawMessage](text) {
			w.walk(subject, path+"[]", t.Elem(), element, false)
		}
	default:
		w.lines = append(w.lines, fmt.Sprintf("%s %s %s", subject, path, text))
	}
}

// decoded reads text that was just encoded.
func decoded[T any](text json.RawMessage) (out T) {
	_ = json.Unmarshal(text, &out)
	return out
}

// Full returns a value of a type with as much set as can be set at the same
// time.
func Full(t reflect.Type) any {
	v := reflect.New(t).Elem()
	fill(v, "", nil)
	return v.Interface()
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	actionType   = reflect.TypeFor[executor.Action]()
	selectorType = reflect.TypeFor[executor.Selector]()
	textType     = reflect.TypeFor[encoding.TextMarshaler]()
)

// fill sets a value, which a member of that name holds, within the types of outer.
func fill(v reflect.Value, name string, outer []reflect.Type) {
	t := v.Type()
	switch {
	case t == timeType:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
		return
	case t == durationType:
		v.SetInt(int64(time.Minute))
		return
	case t == rawType:
		v.Set(reflect.ValueOf(json.RawMessage(`"any JSON"`)))
		return
	case t == selectorType:
		s, _ := executor.ParseSelector("key=value")
		v.Set(reflect.ValueOf(s))
		return
	case t == actionType:
		fillAction(v, outer)
		return
	case t.Implements(textType) && v.CanInt(), t.Implements(textType) && v.CanUint():
		fillEnum(v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !slices.Contains(outer, t.Elem()) {
			v.Set(reflect.New(t.Elem()))
			fill(v.Elem(), name, outer)
		}
	case reflect.Struct:
		fillStruct(v, slices.Concat(outer, []reflect.Type{t}))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		key, element := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		fill(key, "key", outer)
		fill(element, name, outer)
		v.SetMapIndex(key, element)
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[byte]() {
			v.SetBytes([]byte("bytes"))
			return
		}
		if t.Elem() != actionType && slices.Contains(outer, t.Elem()) {
			return
		}
		v.Set(reflect.MakeSlice(t, 1, 1))
		fill(v.Index(0), name, outer)
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		if v.CanInt() {
			v.SetInt(1)
		} else if v.CanUint() {
			v.SetUint(1)
		}
	}
}

func fillStruct(v reflect.Value, outer []reflect.Type) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() {
			fill(v.Field(i), name, outer)
		}
	}
}

// fillEnum sets the last value that has a text.
func fillEnum(v reflect.Value) {
	for n := range int64(64) {
		next := reflect.New(v.Type()).Elem()
		if next.CanInt() {
			next.SetInt(n)
		} else {
			next.SetUint(uint64(n))
		}
		if _, err := next.Interface().(encoding.TextMarshaler).MarshalText(); err == nil {
			v.Set(next)
		}
	}
}

// fillAction makes an action of every kind; one action has one kind. Within an
// action it is the first kind.
func fillAction(v reflect.Value, outer []reflect.Type) {
	inner := slices.Concat(outer, []reflect.Type{actionType})
	var all []executor.Action
	for i := range v.NumField() {
		var a executor.Action
		f := reflect.ValueOf(&a).Elem().Field(i)
		f.Set(reflect.New(f.Type().Elem()))
		if slices.Contains(outer, actionType) {
			fillStruct(f.Elem(), inner)
			v.Set(reflect.ValueOf(a))
			return
		}
		fillStruct(f.Elem(), inner)
		all = append(all, a)
	}
	v.Set(reflect.ValueOf(executor.Action{Parallel: &executor.ParallelAction{Actions: all}}))
}
