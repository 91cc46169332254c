// Package syslogtest reads syslog messages for tests, by the grammar of RFC 5424
// section 6. It shares no code with what writes them.
package syslogtest

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Message is a message of RFC 5424; "" is the nil value "-".
type Message struct {
	Priority                         int
	Time                             string
	Hostname, AppName, ProcID, MsgID string
	Data                             []Element
	Text                             string
}

// An Element is an element of structured data.
type Element struct {
	ID     string
	Params [][2]string
}

// Param is the first value of a parameter, or "".
func (m Message) Param(id, name string) string {
	for _, e := range m.Data {
		for _, p := range e.Params {
			if e.ID == id && p[0] == name {
				return p[1]
			}
		}
	}
	return ""
}

var (
	header = regexp.MustCompile(`^<(0|[1-9][0-9]{0,2})>1 (-|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})) ([!-~]{1,255}) ([!-~]{1,48}) ([!-~]{1,128}) ([!-~]{1,32}) `)
	name   = regexp.MustCompile(`^[!#-<>-\\^-~]{1,32}`)
)

// Parse reads one message.
func Parse(text string) (m Message, err error) {
	h := header.FindStringSubmatch(text)
	if h == nil {
		return m, fmt.Errorf("no header in %q", text)
	}
	if m.Priority, err = strconv.Atoi(h[1]); err != nil || m.Priority > 191 {
		return m, fmt.Errorf("the priority is %q", h[1])
	}
	orNil := func(s string) string {
		if s == "-" {
			return ""
		}
		return s
	}
	m.Time, m.Hostname, m.AppName, m.ProcID, m.MsgID = orNil(h[2]), orNil(h[3]), orNil(h[4]), orNil(h[5]), orNil(h[6])
	rest := text[len(h[0]):]
	if after, none := strings.CutPrefix(rest, "-"); none {
		rest = after
	} else if m.Data, rest, err = elements(rest); err != nil {
		return m, fmt.Errorf("%w in %q", err, text)
	}
	if rest == "" {
		return m, nil
	}
	var found bool
	if m.Text, found = strings.CutPrefix(rest, " "); !found {
		return m, fmt.Errorf("no space before the text in %q", text)
	}
	if marked, is := strings.CutPrefix(m.Text, "\xef\xbb\xbf"); is && !utf8.ValidString(marked) {
		return m, fmt.Errorf("the text says that it is UTF-8: %q", m.Text)
	}
	return m, nil
}

func elements(rest string) (list []Element, _ string, err error) {
	seen := map[string]bool{}
	for strings.HasPrefix(rest, "[") {
		id := name.FindString(rest[1:])
		if id == "" || seen[id] {
			return nil, "", fmt.Errorf("an element without an id of its own")
		}
		seen[id] = true
		e := Element{ID: id}
		rest = rest[1+len(id):]
		for strings.HasPrefix(rest, " ") {
			p := name.FindString(rest[1:])
			if rest = rest[1+len(p):]; p == "" || !strings.HasPrefix(rest, `="`) {
				return nil, "", fmt.Errorf("no parameter")
			}
			var value strings.Builder
			i := 2
			for ; i < len(rest) && rest[i] != '"'; i++ {
				switch {
				case rest[i] == ']':
					return nil, "", fmt.Errorf("a ] in a value")
				case rest[i] == '\\' && i+1 < len(rest) && strings.IndexByte(`"\]`, rest[i+1]) >= 0:
					i++
				}
				value.WriteByte(rest[i])
			}
			if i >= len(rest) || !utf8.ValidString(value.String()) {
				return nil, "", fmt.Errorf("a value without an end, or not in UTF-8")
			}
			e.Params = append(e.Params, [2]string{p, value.String()})
			rest = rest[i+1:]
		}
		var found bool
		if rest, found = strings.CutPrefix(rest, "]"); !found {
			return nil, "", fmt.Errorf("an element without an end")
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return nil, "", fmt.Errorf("no structured data")
	}
	return list, rest, nil
}

// Read reads a message with its length before it (RFC 6587 §3.4.1). The error is
// io.EOF at the end of a stream, after a whole message.
func Read(r *bufio.Reader) (Message, error) {
	length, err := r.ReadString(' ')
	if err != nil {
		if length != "" {
			err = io.ErrUnexpectedEOF
		}
		return Message{}, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(length, " "))
	if err != nil || n < 1 || length[0] == '0' || length[0] == '+' {
		return Message{}, fmt.Errorf("the length is %q", length)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return Message{}, io.ErrUnexpectedEOF
	}
	return Parse(string(text))
}
