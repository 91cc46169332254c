package show

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Visible writes what could change what a terminal shows or does, as it is written in
// Go: control characters, marks that change the direction of text, and bytes that are
// not valid UTF-8, which a terminal of another encoding may take for controls. Line ends and
// tabs stay.
type Visible struct {
	Out io.Writer
	// rest is the beginning of a character.
	rest []byte
}

// Write implements [io.Writer].
func (v *Visible) Write(data []byte) (int, error) {
	rest := append(v.rest, data...)
	text := make([]byte, 0, len(rest))
	for utf8.FullRune(rest) {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == '\n', r == '\t':
			text = append(text, rest[0])
		case r == utf8.RuneError && size == 1, r < utf8.RuneSelf && unicode.IsControl(r):
			text = fmt.Appendf(text, `\x%02x`, rest[0])
		case controls(r):
			text = fmt.Appendf(text, `\u%04x`, r)
		default:
			text = append(text, rest[:size]...)
		}
		rest = rest[size:]
	}
	v.rest = slices.Clone(rest)
	if _, err := v.Out.Write(text); err != nil {
		return 0, err
	}
	return len(data), nil
}

// controls reports whether a character could change what a terminal shows or does.
func controls(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// EscapeJSON escapes in valid JSON the characters that could change what a terminal shows
// or does. encoding/json leaves DEL, the controls above U+007F and the marks that change
// the direction of text as they are. Bytes that are not valid UTF-8 become U+FFFD, as
// encoding/json reads them. The value stays the same.
func EscapeJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1, r >= ' ' && controls(r): // below, there are only the spaces between tokens
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, rest[:size]...)
		}
		rest = rest[size:]
	}
	return out
}

// A Merger puts the lines of several sources into one stream. Its sources may
// write at the same time.
type Merger struct {
	Colour bool

	mu  sync.Mutex
	Out io.Writer
}

// Source is where the source of that name writes.
func (m *Merger) Source(name string) *Source { return &Source{of: m, name: name} }

// line writes one line.
func (m *Merger) line(name string, text []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := fmt.Fprintf(m.Out, "%s  %s\n", Faint.Of(name).Show(m.Colour), text)
	return err
}

// A Source is where one source writes. It keeps the beginning of a line until
// it has the rest.
type Source struct {
	of   *Merger
	name string
	rest []byte
}

// maxLine is how much of a line is kept for its end to come.
const maxLine = 64 << 10

// Write implements [io.Writer].
func (s *Source) Write(data []byte) (int, error) {
	s.rest = append(s.rest, data...)
	for {
		text, rest, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole && len(text) < maxLine {
			return len(data), nil
		}
		if err := s.of.line(s.name, text); err != nil {
			return 0, err
		}
		s.rest = rest
	}
}

// Rename gives the lines that follow another name. A line that has begun ends.
func (s *Source) Rename(name string) error {
	defer func() { s.name = name }()
	return s.Flush()
}

// Flush writes a last line that does not end.
func (s *Source) Flush() error {
	if len(s.rest) == 0 {
		return nil
	}
	defer func() { s.rest = nil }()
	return s.of.line(s.name, s.rest)
}
