package manager

import (
	"bytes"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// MaxLogLineBytes is the longest text of a LogLine. A longer line comes in
// several pieces.
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
	line LogLine           // what all have in common
	open map[string][]byte // by source: what has no end yet
}

// add takes what a source has written.
func (l *lines) add(source string, p []byte) {
	text := append(l.open[source], p...)
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
			if len(text) == 0 {
				delete(l.open, source)
			} else {
				l.open[source] = slices.Clone(text)
			}
			return
		}
	}
}

// end sends what has no end.
func (l *lines) end() {
	for _, source := range slices.Sorted(maps.Keys(l.open)) {
		l.send(source, l.open[source])
	}
	clear(l.open)
}

func (l *lines) send(source string, text []byte) {
	line := l.line
	line.Time, line.Source, line.Text = l.now(), source, bytes.Clone(text)
	l.sink(line)
}
