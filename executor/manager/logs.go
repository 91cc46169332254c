package manager

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/logfile"
)

// A Stream names one of a container's logs.
type Stream string

// The streams. Health has the output of monitor actions, apart from what the
// container's work says.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
	Health Stream = "health"
)

// liveLogs and endedLogs lie in Options.Dir.
const (
	liveLogs  = "logs"
	endedLogs = "ended"
)

// logs are the logs of one container. Nil logs discard everything.
type logs struct {
	dir                    string
	silent                 bool // nothing of the work's output may be kept
	stdout, stderr, health *logfile.Log
}

// newLogs returns the logs of a container, or nil without Options.Dir.
func (m *Manager) newLogs(c executor.Container) *logs {
	if m.options.Dir == "" {
		return nil
	}
	dir := filepath.Join(m.options.Dir, liveLogs, c.GUID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.options.Logger.Error("a container has no logs", "guid", c.GUID, "error", err)
		return nil
	}
	o := logfile.Options{SegmentBytes: m.options.LogSegmentBytes, Segments: m.options.LogSegments, Now: m.options.Now}
	health := logfile.New(dir, string(Health), o)
	silent := false
	if limit := c.RunInfo.LogRateLimit; limit != nil {
		o.BytesPerSecond = limit.BytesPerSecond
		silent = limit.BytesPerSecond == 0
	}
	return &logs{dir, silent, logfile.New(dir, string(Stdout), o), logfile.New(dir, string(Stderr), o), health}
}

// remove ends the logs and takes them from disk, but for what to keeps.
func (l *logs) remove(guid string, to *ended) error {
	list := []*logfile.Log{l.stdout, l.stderr, l.health}
	for _, log := range list {
		log.Close()
	}
	to.keep(guid, list)
	return os.RemoveAll(l.dir)
}

// A Log reads one stream of a container. It is used by one goroutine at a
// time.
type Log struct{ reader *logfile.Reader }

// Read implements io.Reader.
func (l *Log) Read(p []byte) (int, error) { return l.reader.Read(p) }

// Offset is the number of the next byte: what to give to Manager.Log to go on.
func (l *Log) Offset() int64 { return l.reader.Offset() }

// Close frees the Log's file.
func (l *Log) Close() error { return l.reader.Close() }

// Log returns a reader of one stream of a container, from the byte with number
// from on, or from the oldest byte that is still kept. At the end it waits for
// more if follow is true, until the container is deleted or ctx ends. The
// caller closes it; Offset says where to go on another time. There is nothing
// to read of a container that has not begun to be made. Of one that is gone, an
// earlier manager's included, the end of what it wrote is kept for a while: see
// Options.EndedLogs.
func (m *Manager) Log(ctx context.Context, guid string, s Stream, from int64, follow bool) (*Log, error) {
	var log *logfile.Log
	m.mu.Lock()
	e := m.entries[guid]
	if e != nil && e.logs != nil {
		log = map[Stream]*logfile.Log{Stdout: e.logs.stdout, Stderr: e.logs.stderr, Health: e.logs.health}[s]
	}
	m.mu.Unlock()
	if e == nil && m.ended != nil { // from the disk, for which nobody else waits
		log = m.ended.read(guid, s)
	}
	if log == nil {
		return nil, &GUIDError{guid, ErrNotFound}
	}
	return &Log{log.Read(ctx, from, follow)}, nil
}

// writers are where a process writes; nil discards.
func (l *logs) writers(health, suppress bool) (stdout, stderr io.Writer) {
	switch {
	case l == nil || suppress:
		return nil, nil
	case health:
		return l.health, l.health
	case l.silent:
		return nil, nil
	}
	return l.stdout, l.stderr
}

// healthWriter is where the outcome of checks is written, or nil.
func (l *logs) healthWriter() io.Writer {
	if l == nil {
		return nil
	}
	return l.health
}
