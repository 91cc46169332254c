// Package enum names the constants of a type.
package enum

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
)

// Names are the names of the constants of T, by their numbers. A number without
// a name is not a constant. Names do not change, so goroutines may share them.
type Names[T ~uint8] []string

// Of is the name of v, or its type and number if it is no constant: "State(9)".
func (n Names[T]) Of(v T) string {
	if !n.has(v) {
		return fmt.Sprintf("%s(%d)", reflect.TypeFor[T]().Name(), uint8(v))
	}
	return n[v]
}

func (n Names[T]) has(v T) bool { return int(v) < len(n) && n[v] != "" }

// Marshal is the text of v, the value of a field. The error is an
// *executor.ValidationError.
func (n Names[T]) Marshal(field string, v T) ([]byte, error) {
	if !n.has(v) {
		return nil, n.unknown(field, n.Of(v))
	}
	return []byte(n[v]), nil
}

// Unmarshal sets v, the value of a field, to the constant with this name. The
// error is an *executor.ValidationError.
func (n Names[T]) Unmarshal(field string, v *T, text []byte) error {
	i := slices.Index(n, string(text))
	if i < 0 || len(text) == 0 {
		return n.unknown(field, string(text))
	}
	*v = T(i)
	return nil
}

// maxListed is how many names an error lists.
const maxListed = 4

func (n Names[T]) unknown(field, text string) error {
	known := slices.DeleteFunc(slices.Clone(n), func(name string) bool { return name == "" })
	limit := "a known " + field
	if last := len(known) - 1; last < maxListed {
		limit = strings.Join(known[:last], ", ") + " or " + known[last]
	}
	var v executor.Validator
	v.Check(false, field, text, limit)
	return v.Err()
}
