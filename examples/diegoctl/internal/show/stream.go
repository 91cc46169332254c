package show

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Visible writes control characters, which could change what the terminal shows
// or does, as they are written in Go: "\x1b". Line ends and tabs stay.
type Visible struct {
	Out io.Writer
	// lead is set after the first byte of a character that may be a control.
	lead bool
}

// controlLead is the first byte, in UTF-8, of the controls U+0080 to U+009F.
const controlLead = 0xC2

// Write implements [io.Writer].
func (v *Visible) Write(data []byte) (int, error) {
	text := make([]byte, 0, len(data)+1)
	for _, b := range data {
		lead := v.lead
		v.lead = b == controlLead
		switch {
		case lead && b >= 0x80 && b < 0xA0:
			text = fmt.Appendf(text, `\u%04x`, b)
			continue
		case lead:
			text = append(text, controlLead)
		}
		switch {
		case v.lead: // the next byte decides
		case b < ' ' && b != '\n' && b != '\t', b == 0x7F:
			text = fmt.Appendf(text, `\x%02x`, b)
		default:
			text = append(text, b)
		}
	}
	if _, err := v.Out.Write(text); err != nil {
		return 0, err
	}
	return len(data), nil
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
