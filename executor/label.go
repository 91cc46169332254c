package executor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of labels and selectors.
const (
	// MaxLabels is the most labels that a process or task may have, and the most
	// requirements of a [Selector].
	MaxLabels = 32
	// MaxLabelBytes is the longest key, and the longest value, of a label.
	MaxLabelBytes = 128
)

const (
	labelKeyLimit   = "1 to 128 letters, digits and - _ . / : @, with a letter or digit at both ends"
	labelValueLimit = "empty, or " + labelKeyLimit
)

// ValidateLabels checks the record's field labels, in the order of the keys: at
// most MaxLabels, of keys and values of at most MaxLabelBytes. Keys and values
// have letters and digits of ASCII and - _ . / : @, and a letter or digit at
// both ends. A value may be empty.
func ValidateLabels(v *Validator, labels map[string]string) {
	if len(labels) > MaxLabels {
		v.Check(false, "labels", len(labels), fmt.Sprintf("at most %d labels", MaxLabels))
		return
	}
	in := v.In("labels")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !isLabelText(key) {
			v.Check(false, "labels", key, "keys of "+labelKeyLimit)
		} else if value := labels[key]; value != "" && !isLabelText(value) {
			in.Check(false, key, value, labelValueLimit)
		}
	}
}

// isLabelText reports whether text may be a key of a label, or a value that is
// not empty.
func isLabelText(text string) bool {
	const inside = "-_./:@"
	ends := func(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }
	if text == "" || len(text) > MaxLabelBytes || !ends(text[0]) || !ends(text[len(text)-1]) {
		return false
	}
	for i := range len(text) {
		if !ends(text[i]) && strings.IndexByte(inside, text[i]) < 0 {
			return false
		}
	}
	return true
}

// A Selector chooses processes and tasks by their labels. The zero Selector
// chooses all. Its text, which is also its JSON form, has requirements with
// commas between them, all of which must hold:
//
//	team=blog    the label team has the value blog
//	team!=blog   it has another value, or there is no such label
//	team         there is such a label
//	!team        there is none
//
// Spaces around keys and values do not count. A Selector never changes, and may
// be used concurrently.
type Selector struct{ requirements []requirement }

type requirement struct {
	key, value string
	// valued: it is about the value, and not only about whether the key is there.
	valued bool
	not    bool
}

// ParseSelector reads the text of a selector. An empty text is the zero
// Selector. The error is a *ValidationError of the field "selector", which
// shows the requirement that is wrong.
func ParseSelector(text string) (Selector, error) {
	var s Selector
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	var v Validator
	parts := strings.Split(text, ",")
	v.Check(len(parts) <= MaxLabels, "selector", len(parts), fmt.Sprintf("at most %d requirements", MaxLabels))
	for _, part := range parts[:min(len(parts), MaxLabels)] {
		r, wrong := parseRequirement(strings.TrimSpace(part))
		if wrong != "" {
			v.Check(false, "selector", fmt.Sprintf("%q", part), wrong)
		}
		s.requirements = append(s.requirements, r)
	}
	if err := v.Err(); err != nil {
		return Selector{}, err
	}
	return s, nil
}

// parseRequirement reads one requirement. wrong is what it should be, or empty.
func parseRequirement(text string) (r requirement, wrong string) {
	key, value, valued := strings.Cut(text, "=")
	r.valued = valued
	if valued {
		key, r.not = strings.CutSuffix(key, "!")
		r.value = strings.TrimSpace(value)
	} else {
		key, r.not = strings.CutPrefix(key, "!")
	}
	r.key = strings.TrimSpace(key)
	switch {
	case !isLabelText(r.key):
		return r, "key=value, key!=value, key or !key; a key has " + labelKeyLimit
	case r.value != "" && !isLabelText(r.value):
		return r, "a value that is " + labelValueLimit
	}
	return r, ""
}

// Matches reports whether labels meet all requirements.
func (s Selector) Matches(labels map[string]string) bool {
	for _, r := range s.requirements {
		value, has := labels[r.key]
		if (has && (!r.valued || value == r.value)) == r.not {
			return false
		}
	}
	return true
}

// IsZero reports whether s has no requirement.
func (s Selector) IsZero() bool { return len(s.requirements) == 0 }

// Equal reports whether s and other have the same requirements in the same order.
func (s Selector) Equal(other Selector) bool {
	return slices.Equal(s.requirements, other.requirements)
}

// String is the text from which [ParseSelector] makes s.
func (s Selector) String() string {
	parts := make([]string, len(s.requirements))
	for i, r := range s.requirements {
		switch {
		case r.valued && r.not:
			parts[i] = r.key + "!=" + r.value
		case r.valued:
			parts[i] = r.key + "=" + r.value
		case r.not:
			parts[i] = "!" + r.key
		default:
			parts[i] = r.key
		}
	}
	return strings.Join(parts, ",")
}

// MarshalText writes the text of s. It never fails.
func (s Selector) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is [ParseSelector].
func (s *Selector) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSelector(string(text))
	return err
}
