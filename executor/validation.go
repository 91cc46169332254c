package executor

import (
	"errors"
	"fmt"
	"strings"
)

// ErrInvalid is what every [ValidationError] wraps.
var ErrInvalid = errors.New("invalid record")

// A FieldError says that one field of a record is outside its limits.
type FieldError struct {
	// Field is the path to the field in JSON names, such as
	// "action.timeout.action.run.path" or "env[2].name".
	Field string `json:"field"`
	// Value is the offending value, cut to 64 bytes.
	Value string `json:"value,omitempty"`
	// Limit says what would have been accepted, such as "at least 0".
	Limit string `json:"limit"`
}

func (e FieldError) String() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: want %s", e.Field, e.Limit)
	}
	return fmt.Sprintf("%s: %s: want %s", e.Field, e.Value, e.Limit)
}

// A ValidationError lists every field of a record that is wrong, in the order
// of the record's fields. It wraps [ErrInvalid].
type ValidationError struct {
	Fields []FieldError `json:"fields"`
}

func (e *ValidationError) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.String()
	}
	return ErrInvalid.Error() + ": " + strings.Join(parts, "; ")
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *ValidationError) Unwrap() error { return ErrInvalid }

// A Validator collects field errors while a record is checked. The zero value
// is ready to use. Validators nest: In returns one that writes to the same
// list with a longer path.
type Validator struct {
	path string
	errs *[]FieldError
}

// In returns a Validator for the record held by the named field.
func (v *Validator) In(field string) *Validator {
	if v.errs == nil {
		v.errs = new([]FieldError)
	}
	return &Validator{path: v.join(field), errs: v.errs}
}

// At returns a Validator for element i of the list held by the named field.
func (v *Validator) At(field string, i int) *Validator {
	return v.In(fmt.Sprintf("%s[%d]", field, i))
}

// Check records that field is outside its limit unless ok.
func (v *Validator) Check(ok bool, field string, value any, limit string) {
	if ok {
		return
	}
	if v.errs == nil {
		v.errs = new([]FieldError)
	}
	*v.errs = append(*v.errs, FieldError{Field: v.join(field), Value: shorten(value), Limit: limit})
}

// Err returns a *ValidationError with everything found so far, or nil.
func (v *Validator) Err() error {
	if v.errs == nil || len(*v.errs) == 0 {
		return nil
	}
	return &ValidationError{Fields: *v.errs}
}

func (v *Validator) join(field string) string {
	switch {
	case v.path == "":
		return field
	case field == "":
		return v.path
	}
	return v.path + "." + field
}

const maxShownValue = 64

func shorten(value any) string {
	s := fmt.Sprint(value)
	if len(s) > maxShownValue {
		s = strings.ToValidUTF8(s[:maxShownValue], "") + "…"
	}
	return s
}
