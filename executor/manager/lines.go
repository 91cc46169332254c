package manager

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxLogLineBytes is the longest text of a LogLine. A longer line comes in
// several pieces. So does one without an end, once 16 other sources of its stream have
// written such lines after it.
const MaxLogLineBytes = 7 << 10

// A LogLine is a line that a container has written.
type LogLine struct {
	// Time is when the line ended.
	Time time.Time
	// GUID is the container's.
	GUID   string
	Owner  LogOwner
	Stream Stream
	// Source is the log_source of the action that wrote it; see Log.Source.
	Source string
	// Text is the line without its end. It is the receiver's.
	Text []byte
}

// lines cuts a stream of a container into lines. It is used by one goroutine at
// a time: the log that feeds it has a lock.
type lines struct {
	sink func(LogLine)
	now  func() time.Time
	line LogLine   // what all have in common
	open []unended // at most maxUnended, the one that has waited longest first
}

// An unended line is what a source has written after its last end of a line.
type unended struct {
	source string
	text   []byte
}

// maxUnended bounds how many sources of one stream may have an unended line, which is in
// memory.
const maxUnended = 16

// add takes what a source has written.
func (l *lines) add(source string, p []byte) {
	var text []byte
	if i := slices.IndexFunc(l.open, func(u unended) bool { return u.source == source }); i >= 0 {
		text = l.open[i].text
		l.open = slices.Delete(l.open, i, i+1)
	}
	text = append(text, p...)
	for {
		end := bytes.IndexByte(text, '\n')
		switch {
		case end >= 0 && end <= MaxLogLineBytes:
			l.send(source, bytes.TrimSuffix(text[:end], []byte("\r")))
			text = text[end+1:]
		case len(text) > MaxLogLineBytes:
			end = MaxLogLineBytes
			for end > MaxLogLineBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
				end--
			}
			l.send(source, text[:end])
			text = text[end:]
		default:
			if len(text) > 0 {
				l.keep(unended{source, slices.Clone(text)})
			}
			return
		}
	}
}

// keep keeps a line until it goes on. If there are too many, the one that has waited longest
// is sent as it is.
func (l *lines) keep(u unended) {
	if len(l.open) == maxUnended {
		l.send(l.open[0].source, l.open[0].text)
		l.open = slices.Delete(l.open, 0, 1)
	}
	l.open = append(l.open, u)
}

// end sends what has no end, in the order of the sources.
func (l *lines) end() {
	slices.SortFunc(l.open, func(a, b unended) int { return strings.Compare(a.source, b.source) })
	for _, u := range l.open {
		l.send(u.source, u.text)
	}
	l.open = nil
}

func (l *lines) send(source string, text []byte) {
	line := l.line
	line.Time, line.Source, line.Text = l.now(), source, bytes.Clone(text)
	l.sink(line)
}
