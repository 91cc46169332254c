package storagetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Equal reports whether two records, or lists of them, are equal by the contract
// of a Store: an empty value equals nil, and JSON inside a record may be formatted
// differently. Times must be the same instants, and in UTC.
func Equal(a, b any) bool { return equal(reflect.ValueOf(a), reflect.ValueOf(b)) }

var (
	rawMessage = reflect.TypeFor[json.RawMessage]()
	instant    = reflect.TypeFor[time.Time]()
)

func equal(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Type() {
	case rawMessage:
		var x, y any
		ex, ey := json.Unmarshal(a.Bytes(), &x), json.Unmarshal(b.Bytes(), &y)
		return ex == nil && ey == nil && reflect.DeepEqual(x, y) || reflect.DeepEqual(a.Interface(), b.Interface())
	case instant:
		return a.Interface() == b.Interface()
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		return equal(a.Elem(), b.Elem())
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for _, k := range a.MapKeys() {
			if v := b.MapIndex(k); !v.IsValid() || !equal(a.MapIndex(k), v) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

// show is for messages: JSON reads better than pointers.
func show(v any) string {
	if data, err := json.Marshal(v); err == nil {
		const most = 4000
		if len(data) > most {
			return string(data[:most]) + "…"
		}
		return string(data)
	}
	return fmt.Sprintf("%+v", v)
}
