package manager

import "time"

var DialTLS = dialTLS

// CutLines lets tests cut a stream into lines.
func CutLines(sink func(LogLine)) (add func(source string, p []byte), end func()) {
	l := &lines{sink: sink, now: time.Now}
	return l.add, l.end
}

// BeginsIn is how long a session that comes now waits for its turn.
func (m *Manager) BeginsIn() time.Duration { return m.begins.Turn(time.Now(), 0) }
