package executor

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of every validation.
const (
	// MaxGUIDBytes is the longest process, task, instance or container guid.
	MaxGUIDBytes = 255
	// MaxNameBytes is the longest name: see [IsName].
	MaxNameBytes = 255
	// MaxListLength is the most elements that any list or map of a record in
	// this package may have.
	MaxListLength = 10_000
	// The most of each for one container, because a cell works for all containers with
	// the same processors and the same range of ports. MaxChecks is for checks, for
	// readiness checks, and for the actions of a monitor; MaxMounts for cached
	// dependencies, for volumes, and for image layers; MaxFiles for files.
	MaxChecks   = 50
	MaxSidecars = 50
	MaxPorts    = 100
	MaxMounts   = 100
	MaxFiles    = 1000
	// MaxPlacementTags is the most placement tags of a new definition. Each instance
	// and task carries them to the auctioneer and to its cell.
	MaxPlacementTags = 100
	// MaxEgressMatches is the most that the egress rules of one container may
	// match, each a range of addresses with a port or a range of ports: so many
	// rules the kernel has to keep and to look at.
	MaxEgressMatches = 2000
	// MaxFieldErrors is the most fields that a ValidationError lists.
	MaxFieldErrors = 100
)

// ErrInvalid is what every [ValidationError] wraps.
var ErrInvalid = errors.New("invalid input")

// A FieldError says that one field of a record is outside its limits.
type FieldError struct {
	// Field is the path to the field in JSON names, such as
	// "action.timeout.action.run.path" or "env[2].name". It is empty if the
	// record as a whole is wrong.
	Field string `json:"field"`
	// Value is the offending value, cut to 64 bytes.
	Value string `json:"value,omitempty"`
	// Limit says what would have been accepted, such as "at least 0".
	Limit string `json:"limit"`
}

func (e FieldError) String() string {
	s := "want " + e.Limit
	if e.Value != "" {
		s = e.Value + ": " + s
	}
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	return s
}

// A ValidationError lists the invalid fields of a record, in the order of the
// record's fields. It wraps [ErrInvalid].
type ValidationError struct {
	Fields []FieldError `json:"fields"`
	// Omitted is how many more were found after the first MaxFieldErrors.
	Omitted int `json:"omitted,omitempty"`
}

func (e *ValidationError) Error() string {
	parts := make([]string, len(e.Fields), len(e.Fields)+1)
	for i, f := range e.Fields {
		parts[i] = f.String()
	}
	if e.Omitted > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", e.Omitted))
	}
	return ErrInvalid.Error() + ": " + strings.Join(parts, "; ")
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *ValidationError) Unwrap() error { return ErrInvalid }

// A Validator collects field errors while a record is checked. The zero value
// is ready to use. Validators nest: In returns one that writes to the same list
// with a longer path. One goroutine at a time may use a Validator and those
// that it returned.
type Validator struct {
	// Only the outermost Validator collects.
	errs    []FieldError
	omitted int

	parent *Validator
	field  string
	index  int // of an element of field, or -1
}

// In returns a Validator for the record held by the named field.
func (v *Validator) In(field string) *Validator {
	return &Validator{parent: v, field: field, index: -1}
}

// At returns a Validator for element i of the list held by the named field.
func (v *Validator) At(field string, i int) *Validator {
	return &Validator{parent: v, field: field, index: i}
}

// Check records that the value of field is outside its limit unless ok. An
// empty field stands for the record itself.
func (v *Validator) Check(ok bool, field string, value any, limit string) {
	if ok {
		return
	}
	outer := v
	for outer.parent != nil {
		outer = outer.parent
	}
	if len(outer.errs) == MaxFieldErrors {
		outer.omitted++
		return
	}
	outer.errs = append(outer.errs, FieldError{Field: v.path(field), Value: shorten(value), Limit: limit})
}

// NotNegative checks that n, a count or a time, is at least 0.
func NotNegative[N ~int | ~int64](v *Validator, field string, n N) {
	v.Check(n >= 0, field, n, "at least 0")
}

// AtMost checks that n, the value of field, is at most most, the value of the
// field other.
func AtMost[N ~int | ~int64](v *Validator, field string, n N, other string, most N) {
	v.Check(n <= most, field, n, fmt.Sprintf("at most %s, which is %v", other, most))
}

// GUID checks that text is a guid: 1 to MaxGUIDBytes letters and digits of
// ASCII, "-" and "_".
func (v *Validator) GUID(field, text string) {
	ok := len(text) >= 1 && len(text) <= MaxGUIDBytes
	for i := 0; ok && i < len(text); i++ {
		c := text[i]
		ok = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
	}
	v.Check(ok, field, text, fmt.Sprintf("1 to %d letters, digits, - and _", MaxGUIDBytes))
}

// Name records an error unless IsName(text).
func (v *Validator) Name(field, text string) {
	if !IsName(text) {
		v.Check(false, field, text, fmt.Sprintf("1 to %d bytes of UTF-8 without NUL", MaxNameBytes))
	}
}

// OneLine records an error if text has control characters, such as line ends,
// which could make the text look like something else where it is shown.
func (v *Validator) OneLine(field, text string) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		v.Check(false, field, text, "a text without line ends and other control characters")
	}
}

// IsName reports whether text may be a name: of a domain, a cell, an instance,
// a definition or a placement tag.
func IsName(text string) bool {
	return text != "" && len(text) <= MaxNameBytes && utf8.ValidString(text) && strings.IndexByte(text, 0) < 0
}

// ValidatePlacementTags checks that a list of placement tags holds names.
func ValidatePlacementTags(v *Validator, tags []string) {
	if !v.listLength("placement_tags", len(tags)) {
		return
	}
	for i, tag := range tags {
		if !IsName(tag) {
			v.Name(fmt.Sprintf("placement_tags[%d]", i), tag)
		}
	}
}

// ValidateNewPlacementTags checks that the placement tags of a new definition are at most
// MaxPlacementTags, and that none comes twice. [ValidatePlacementTags] checks the rest, of
// stored ones too.
func ValidateNewPlacementTags(v *Validator, tags []string) {
	if len(tags) > MaxListLength || !v.lengthAtMost("placement_tags", len(tags), MaxPlacementTags) {
		return
	}
	for i, tag := range tags {
		if slices.Contains(tags[:i], tag) {
			v.Check(false, fmt.Sprintf("placement_tags[%d]", i), tag, "a tag that the list does not have yet")
		}
	}
}

// ValidateAnnotation checks the length of an annotation.
func ValidateAnnotation(v *Validator, text string) {
	v.Check(len(text) <= MaxAnnotationBytes, "annotation", fmt.Sprintf("%d bytes", len(text)),
		fmt.Sprintf("at most %d bytes", MaxAnnotationBytes))
}

// ValidateImageCredentials checks that a user and a password come together.
// It never shows the password.
func ValidateImageCredentials(v *Validator, user, password string) {
	v.Check((user == "") == (password == ""), "image_username", user, "set together with image_password, or not at all")
}

// Err returns a *ValidationError with everything found so far, or nil. Call it
// on the outermost Validator.
func (v *Validator) Err() error {
	if len(v.errs) == 0 {
		return nil
	}
	return &ValidationError{Fields: v.errs, Omitted: v.omitted}
}

// required checks that a text is not empty.
func (v *Validator) required(field, text string) {
	v.Check(text != "", field, "", "a text that is not empty")
}

// atLeastOne checks that a list is not empty.
func (v *Validator) atLeastOne(field string, n int) {
	v.Check(n > 0, field, n, "at least 1 element")
}

// listLength checks that a list has at most MaxListLength elements and
// reports whether it has, so that the caller spends no time on one that is
// refused anyway.
func (v *Validator) listLength(field string, n int) bool {
	return v.lengthAtMost(field, n, MaxListLength)
}

// lengthAtMost is listLength for lists that have fewer elements.
func (v *Validator) lengthAtMost(field string, n, most int) bool {
	if n <= most {
		return true
	}
	v.Check(false, field, n, fmt.Sprintf("at most %d elements", most))
	return false
}

func (v *Validator) path(field string) string {
	for ; v.parent != nil; v = v.parent {
		name := v.field
		if v.index >= 0 {
			name += "[" + strconv.Itoa(v.index) + "]"
		}
		switch {
		case field == "":
			field = name
		case name != "":
			field = name + "." + field
		}
	}
	return field
}

const maxShownValue = 64

func shorten(value any) string {
	s := fmt.Sprint(value)
	if len(s) > maxShownValue {
		s = strings.ToValidUTF8(s[:maxShownValue], "") + "…"
	}
	return s
}

// unknown is the error for text that is none of the known names.
func unknown(field, text string) error {
	var v Validator
	v.Check(false, field, text, "a known "+field)
	return v.Err()
}

// size checks that a size is neither negative nor above its limit.
func (v *Validator) size(field string, n, most int64) {
	v.Check(n >= 0, field, n, "at least 0")
	if n > most {
		v.Check(false, field, n, fmt.Sprintf("at most %d", most))
	}
}

// hex checks for a number of digits in lower-case hexadecimal.
func (v *Validator) hex(field, text string, digits int) {
	ok := len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
	v.Check(ok, field, text, fmt.Sprintf("%d lower-case hexadecimal digits", digits))
}

// port checks that a port is not 0.
func (v *Validator) port(field string, port uint16) {
	v.Check(port >= 1, field, port, "1 to 65535")
}
