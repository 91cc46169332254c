package manager

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

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

// logs are the logs of one container. Nil logs discard everything. Nothing is
// on the disk before the container writes something.
type logs struct {
	guid, dir              string
	owner                  LogOwner
	log                    *slog.Logger
	silent                 bool // nothing may be kept
	stdout, stderr, health *logfile.Log
	lines                  []*lines // of the streams; none without Options.LogSink

	mu       sync.Mutex
	prepared bool // guarded by mu
}

// newLogs returns the logs of a container, or nil without Options.Dir.
func (m *Manager) newLogs(c executor.Container) *logs {
	if m.options.Dir == "" {
		return nil
	}
	l := &logs{guid: c.GUID, dir: filepath.Join(m.options.Dir, liveLogs, c.GUID), owner: ownerOf(c), log: m.options.Logger}
	limit := func() *logfile.Limit { return nil }
	if rate := c.RunInfo.LogRateLimit; rate != nil {
		l.silent = rate.BytesPerSecond == 0
		if rate.BytesPerSecond > 0 {
			limit = func() *logfile.Limit { return logfile.NewLimit(rate.BytesPerSecond, m.options.Now) }
		}
	}
	// What checks write is limited apart: the work's flood must not hide it.
	ofWork, ofHealth := limit(), limit()
	open := func(s Stream, limit *logfile.Limit) *logfile.Log {
		o := logfile.Options{SegmentBytes: m.options.LogSegmentBytes, Segments: m.options.LogSegments, Limit: limit, Prepare: l.prepare}
		if m.options.LogSink != nil {
			cut := &lines{sink: m.options.LogSink, now: m.options.Now, line: LogLine{GUID: c.GUID, Owner: l.owner, Stream: s}}
			l.lines, o.Tap = append(l.lines, cut), cut.add
		}
		return logfile.New(l.dir, string(s), o)
	}
	l.stdout, l.stderr, l.health = open(Stdout, ofWork), open(Stderr, ofWork), open(Health, ofHealth)
	return l
}

// remove ends the logs and deletes their files, except for what to keeps.
func (l *logs) remove(to *ended) error {
	list := []*logfile.Log{l.stdout, l.stderr, l.health}
	for _, log := range list {
		log.Close()
	}
	for _, cut := range l.lines { // which nothing feeds any more
		cut.end()
	}
	to.keep(l.guid, list, l.owner)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.prepared {
		return nil
	}
	return os.RemoveAll(l.dir)
}

// A LogOwner says whose output a log is: what the container was for. It is a
// value that goroutines may share.
type LogOwner struct {
	// LogGUID and MetricsGUID are those of the RunInfo.
	LogGUID     string `json:"log_guid,omitempty"`
	MetricsGUID string `json:"metrics_guid,omitempty"`
	// Tags are the container's.
	Tags map[string]string `json:"tags,omitempty"`
}

func ownerOf(c executor.Container) LogOwner {
	return LogOwner{LogGUID: c.RunInfo.LogGUID, MetricsGUID: c.RunInfo.MetricsGUID, Tags: c.Tags}
}

// A Log reads one stream of a container. It is used by one goroutine at a
// time.
type Log struct {
	reader *logfile.Reader
	owner  LogOwner
}

// Owner returns whose output it is. It is empty for output that an earlier
// release has left.
func (l *Log) Owner() LogOwner { return l.owner }

// Source returns the log_source of the action that wrote what the last Read
// returned: its own, or else that of the action around it, or else the RunInfo's.
// One Read never returns bytes of two sources.
func (l *Log) Source() string { return l.reader.Source() }

// Read implements io.Reader.
func (l *Log) Read(p []byte) (int, error) { return l.reader.Read(p) }

// Offset is the number of the next byte: what to give to Manager.Log to go on.
func (l *Log) Offset() int64 { return l.reader.Offset() }

// Close frees the Log's file.
func (l *Log) Close() error { return l.reader.Close() }

// Log returns a reader of one stream of a container, from the byte with number
// from on, or from the oldest byte that is still kept. At the end it waits for
// more if follow is true, until the container is deleted or ctx ends. The
// caller closes it; Offset says where to continue later. A container that has
// not begun to be made has no output yet. The end of the output of a container
// that is gone, even one of an earlier manager, is kept for a while: see
// Options.EndedLogs.
func (m *Manager) Log(ctx context.Context, guid string, s Stream, from int64, follow bool) (*Log, error) {
	var log *logfile.Log
	var owner LogOwner
	m.mu.Lock()
	e := m.entries[guid]
	if e != nil && e.logs != nil {
		log = map[Stream]*logfile.Log{Stdout: e.logs.stdout, Stderr: e.logs.stderr, Health: e.logs.health}[s]
		owner = e.logs.owner
	}
	m.mu.Unlock()
	if e == nil && m.ended != nil { // from the disk, for which nobody else waits
		log, owner = m.ended.read(guid, s)
	}
	if log == nil {
		return nil, &GUIDError{guid, ErrNotFound}
	}
	return &Log{log.Read(ctx, from, follow), owner}, nil
}

// LogOwner returns whose output the logs of a container are. It knows the
// containers that Log knows.
func (m *Manager) LogOwner(guid string) (LogOwner, error) {
	m.mu.Lock()
	e := m.entries[guid]
	known := e != nil && e.logs != nil
	var owner LogOwner
	if known {
		owner = e.logs.owner
	}
	m.mu.Unlock()
	if e == nil && m.ended != nil {
		owner, known = m.ended.owner(guid)
	}
	if !known {
		return LogOwner{}, &GUIDError{guid, ErrNotFound}
	}
	return owner, nil
}

// prepare makes the directory of the logs, with a file that tells the daemon
// after this one whose they are. The first byte of any stream calls it.
func (l *logs) prepare() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.prepared {
		return nil
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	l.prepared = true
	if err := l.owner.write(l.dir); err != nil {
		l.log.Warn("if this daemon is killed, the output that the container has left will have no owner", "guid", l.guid, "error", err)
	}
	return nil
}

// wait reports whether there is something to flush.
func (l *logs) wait() bool { return l.stdout.Waits() || l.stderr.Waits() || l.health.Waits() }

// flush writes what was said with the Manager's lock. It is called without it.
func (l *logs) flush() {
	for _, log := range []*logfile.Log{l.stdout, l.stderr, l.health} {
		log.Flush()
	}
}

// writers are where a source writes, such as a process; nil discards. With the Manager's
// lock, only entry.say writes to them.
func (l *logs) writers(health, suppress bool, source string) (stdout, stderr *logfile.Writer) {
	switch {
	case l == nil || suppress || l.silent:
		return nil, nil
	case health:
		w := l.health.From(source)
		return w, w
	}
	return l.stdout.From(source), l.stderr.From(source)
}
