// Package logfile keeps the latest output of a process on disk.
//
// A [Log] is a stream of bytes that are numbered from its beginning. It is cut
// into segment files named after the number of their first byte; the oldest
// is removed when there are too many. Readers go by the number, so they neither
// lose nor repeat a byte between two segments. They see a gap only where a
// segment was removed before they had read it.
package logfile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Options configure a Log.
type Options struct {
	// SegmentBytes is the size of a segment; 0 means DefaultSegmentBytes.
	SegmentBytes int64
	// Segments is how many are kept, the one that is written included; 0 means
	// DefaultSegments.
	Segments int
	// Prepare is called before anything is written to the disk, and again with
	// each Write until it succeeds. Its error is that of the Write. It is called
	// with the Log's lock. Nil means that the directory is there.
	Prepare func() error
	// Limit bounds what is kept; nil means no bound. What is above it is dropped,
	// and a line says how much: at once if the last such line is a second old, or
	// else with the first write after that second or when the Log is closed.
	Limit *Limit
	// Tap receives everything that the Limit lets pass, in the order in which it
	// is kept and with its source, such as that of [Log.From]. It also receives
	// what the disk does not take. It is called with the Log's lock, so it must
	// neither block nor keep p. Nil means nobody.
	Tap func(source string, p []byte)
}

// A Limit is a rate that Logs share. Its methods may be called at once from many
// goroutines.
type Limit struct {
	perSecond int64
	now       func() time.Time

	mu     sync.Mutex
	tokens float64
	filled time.Time
}

// NewLimit returns a rate of 1 byte per second or more. More may come at once,
// up to the amount of one second.
func NewLimit(bytesPerSecond int64, now func() time.Time) *Limit {
	return &Limit{perSecond: bytesPerSecond, now: now, tokens: float64(bytesPerSecond), filled: now()}
}

// admit takes up to n bytes, and says how many and when.
func (l *Limit) admit(n int) (admitted int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.now()
	most := float64(l.perSecond)
	l.tokens = min(most, l.tokens+max(0, now.Sub(l.filled).Seconds())*most)
	l.filled = now
	admitted = int(min(float64(n), l.tokens)) // in this order: an int has no room for the tokens of the largest rates
	l.tokens -= float64(admitted)
	return admitted, now
}

// The defaults of Options.
const (
	DefaultSegmentBytes = 5 << 20
	DefaultSegments     = 2
)

// A Log is an io.Writer for one stream of output. Nothing is on disk before
// the first byte. Its methods may be called at once from many goroutines.
type Log struct {
	dir, name string
	options   Options

	mu      sync.Mutex
	starts  []int64 // of the segments, ascending
	size    int64   // number of the next byte
	within  bool    // the last byte does not end a line
	file    *os.File
	more    chan struct{} // closed when something comes or the log is closed
	closed  bool
	dropped int64     // bytes, since a line has said so
	said    time.Time // when the last line has said so
	marks   []mark    // where the source changes, ascending; at most maxMarks

	laterMu sync.Mutex // never held while the disk is used
	later   []piece    // of WriteLater, in the order in which they came
	room    int        // for more of them, in bytes
	lost    int64      // bytes for which there was none
	ended   bool       // nobody will write them any more
}

// A mark says which source wrote the bytes from At on.
type mark struct {
	At     int64  `json:"at"`
	Source string `json:"source"`
}

// A piece is what a source has left to be written.
type piece struct {
	source string
	text   []byte
}

// maxLater bounds what WriteLater keeps in memory for one Log.
const maxLater = 32 << 10

// maxMarks bounds what the sources of one Log take in memory. Of a log in which
// they change more often, the oldest bytes have no source.
const maxMarks = 1000

// maxSource bounds the name of a source in bytes. Tenants choose the names, and the name
// is written with each mark when the log is kept.
const maxSource = 256

// New returns an empty Log in a directory, which must be there when the first
// byte comes and Options.Prepare has returned. The directory belongs to the
// caller.
func New(dir, name string, o Options) *Log {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.Segments <= 0 {
		o.Segments = DefaultSegments
	}
	return &Log{dir: dir, name: name, options: o, more: make(chan struct{}), room: maxLater}
}

func (l *Log) segment(start int64) string {
	return filepath.Join(l.dir, fmt.Sprintf("%s.%020d.log", l.name, start))
}

// From returns a writer of bytes that a source writes, such as a process. A name of
// more than 256 bytes is cut. Errors of the writer are those of Write.
func (l *Log) From(source string) *Writer {
	if len(source) > maxSource {
		source = strings.ToValidUTF8(source[:maxSource], "")
	}
	return &Writer{l, source}
}

// A Writer writes what one source says. Any number of goroutines may use it.
type Writer struct {
	log    *Log
	source string
}

// Write implements io.Writer; see Log.Write.
func (w *Writer) Write(p []byte) (int, error) { return w.log.write(w.source, p) }

// WriteLater is for a caller that must not wait for the disk. It keeps text in memory until
// the next Write, Flush or Close of the Log, each of which writes it first. So it keeps its
// place among what others write. Of all texts that wait, 32 KiB are kept. The rest is dropped,
// and a line says how much. After Close, WriteLater does nothing.
func (w *Writer) WriteLater(text string) {
	l := w.log
	l.laterMu.Lock()
	defer l.laterMu.Unlock()
	if l.ended {
		return
	}
	n := min(len(text), l.room)
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	if l.lost > 0 {
		n = 0 // what comes after a gap would hide where it is
	}
	if n > 0 {
		l.later = append(l.later, piece{w.source, []byte(text[:n])})
		l.room -= n
	}
	l.lost += int64(len(text) - n)
}

// Waits reports whether there is something for Flush to write.
func (l *Log) Waits() bool {
	l.laterMu.Lock()
	defer l.laterMu.Unlock()
	return len(l.later) > 0 || l.lost > 0
}

// Flush writes what WriteLater has kept. What the disk does not take is lost.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && l.writeKept() {
		l.tell()
	}
}

// writeKept writes what WriteLater has kept, if anything.
func (l *Log) writeKept() bool {
	l.laterMu.Lock()
	list, lost := l.later, l.lost
	l.later, l.lost, l.room = nil, 0, maxLater
	l.laterMu.Unlock()
	for _, p := range list {
		_ = l.keep(p.source, l.admit(p.text)) // as where nobody looks at the error of a Write
	}
	if lost > 0 {
		_ = l.keep(l.sourceAt(l.size), notice(lost, "more than 32 KiB of messages waited to be written", l.within))
	}
	return len(list) > 0 || lost > 0
}

// tell wakes the Readers that follow.
func (l *Log) tell() {
	close(l.more)
	l.more = make(chan struct{})
}

// Write appends p, which has no source. It takes all of p even where the limit
// drops it; an error is the disk's. After Close it is fs.ErrClosed.
func (l *Log) Write(p []byte) (int, error) { return l.write("", p) }

func (l *Log) write(source string, p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, fs.ErrClosed
	}
	if len(p) == 0 {
		return 0, nil
	}
	l.writeKept()
	if err := l.keep(source, l.admit(p)); err != nil {
		return 0, err
	}
	l.tell()
	return len(p), nil
}

// keep appends what the limit has let pass.
func (l *Log) keep(source string, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	l.mark(source, len(p))
	l.within = p[len(p)-1] != '\n'
	if l.options.Tap != nil {
		l.options.Tap(source, p)
	}
	return l.append(p)
}

// mark notes the source of the next n bytes if it is another than before.
func (l *Log) mark(source string, n int) {
	if n == 0 || source == l.sourceAt(l.size) {
		return
	}
	l.marks = append(l.marks, mark{l.size, source})
	first := 0 // the first mark that still says something
	for first+1 < len(l.marks) && len(l.starts) > 0 && l.marks[first+1].At <= l.starts[0] {
		first++
	}
	first = max(first, len(l.marks)-maxMarks)
	l.marks = slices.Delete(l.marks, 0, first)
}

// sourceAt returns the source of a byte.
func (l *Log) sourceAt(at int64) string {
	i := l.marksUpTo(at)
	if i == 0 {
		return ""
	}
	return l.marks[i-1].Source
}

// marksUpTo counts the marks at or before a byte.
func (l *Log) marksUpTo(at int64) int {
	i, _ := slices.BinarySearchFunc(l.marks, at+1, func(m mark, at int64) int { return cmp.Compare(m.At, at) })
	return i
}

// admit is the part of p that the limit lets pass, with the line that says what
// was dropped where that is due.
func (l *Log) admit(p []byte) []byte {
	if l.options.Limit == nil {
		return p
	}
	n, now := l.options.Limit.admit(len(p))
	dropped := len(p) - n
	l.dropped += int64(dropped)
	if l.dropped == 0 || now.Sub(l.said) < time.Second {
		return p[:n]
	}
	l.said = now
	within := l.within
	if n > 0 {
		within = p[n-1] != '\n'
	}
	if dropped > 0 { // after what was kept
		return append(slices.Clip(p[:n]), l.flood(within)...)
	}
	return append(l.flood(l.within), p...)
}

// flood is the line that says how much the limit has dropped since the last one.
func (l *Log) flood(within bool) []byte {
	n := l.dropped
	l.dropped = 0
	return notice(n, fmt.Sprintf("more than %d bytes per second", l.options.Limit.perSecond), within)
}

// notice is a line that says how much was dropped and why. It begins a line of its own.
func notice(bytes int64, why string, within bool) []byte {
	var line []byte
	if within {
		line = append(line, '\n')
	}
	return fmt.Appendf(line, "[%d bytes dropped: %s]\n", bytes, why)
}

func (l *Log) append(p []byte) error {
	for len(p) > 0 {
		if l.file == nil || l.size-l.starts[len(l.starts)-1] >= l.options.SegmentBytes {
			if err := l.rotate(); err != nil {
				return err
			}
		}
		room := l.options.SegmentBytes - (l.size - l.starts[len(l.starts)-1])
		n, err := l.file.Write(p[:min(int64(len(p)), room)])
		l.size += int64(n)
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// rotate begins a segment and removes the oldest.
func (l *Log) rotate() error {
	if l.file == nil && l.options.Prepare != nil {
		if err := l.options.Prepare(); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(l.segment(l.size), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file = f
	l.starts = append(l.starts, l.size)
	for len(l.starts) > l.options.Segments {
		os.Remove(l.segment(l.starts[0])) // a reader that has it open reads on
		l.starts = l.starts[1:]
	}
	return nil
}

// Close ends the log, after a line that says what was dropped if none has yet.
// Readers that follow it come to its end. The segments stay where they are.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.laterMu.Lock()
	l.ended = true
	l.laterMu.Unlock()
	l.writeKept()
	var err error
	if l.dropped > 0 {
		err = l.keep(l.sourceAt(l.size), l.flood(l.within))
	}
	l.closed = true
	close(l.more)
	if l.file == nil {
		return err
	}
	return errors.Join(err, l.file.Close())
}

// Size is the number of bytes that have been kept so far, removed ones
// included.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// A Reader reads a Log from a byte on. It is used by one goroutine at a time
// and must be closed.
type Reader struct {
	log    *Log
	ctx    context.Context
	follow bool
	next   int64
	file   *os.File
	start  int64 // of file
	source string
}

// Read returns a Reader from the byte with number from, or from the oldest
// that is still there. With follow, it waits at the end for more until the log
// is closed or ctx ends.
func (l *Log) Read(ctx context.Context, from int64, follow bool) *Reader {
	return &Reader{log: l, ctx: ctx, follow: follow, next: max(from, 0)}
}

// Offset is the number of the next byte: what to give to Log.Read to go on.
func (r *Reader) Offset() int64 { return r.next }

// Source returns who wrote the bytes that the last Read returned: the argument
// of From. One Read never returns bytes of two sources.
func (r *Reader) Source() string { return r.source }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		n, more, err := r.read(p)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-r.ctx.Done():
		case <-more:
		}
	}
}

// read reads what is there, or returns what to wait for.
func (r *Reader) read(p []byte) (n int, more <-chan struct{}, err error) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.starts) > 0 {
		r.next = max(r.next, l.starts[0])
	}
	left := l.size - r.next
	if left <= 0 {
		if l.closed || !r.follow {
			return 0, nil, io.EOF
		}
		return 0, l.more, nil
	}
	at, found := slices.BinarySearch(l.starts, r.next)
	if !found {
		at--
	}
	end := l.size
	if at+1 < len(l.starts) {
		end = l.starts[at+1]
	}
	if i := l.marksUpTo(r.next); i < len(l.marks) {
		end = min(end, l.marks[i].At)
	}
	r.source = l.sourceAt(r.next)
	if r.file == nil || r.start != l.starts[at] {
		r.Close()
		f, err := os.Open(l.segment(l.starts[at]))
		if errors.Is(err, fs.ErrNotExist) { // removed with its container
			return 0, nil, io.EOF
		}
		if err != nil {
			return 0, nil, err
		}
		r.file, r.start = f, l.starts[at]
	}
	n, err = r.file.ReadAt(p[:min(int64(len(p)), end-r.next)], r.next-r.start)
	r.next += int64(n)
	if n > 0 || len(p) == 0 {
		return n, nil, nil
	}
	return 0, nil, err
}

// Close frees the Reader's file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Keep writes the newest n bytes of a Log that is closed into another directory,
// where [Open] finds them under their numbers, and where its Readers go on from
// then on. It writes nothing if there is nothing.
func (l *Log) Keep(dir string, n int64) error {
	size := l.Size()
	r := l.Read(context.Background(), size-n, false)
	defer r.Close()
	buffer, err := io.ReadAll(r)
	if err != nil || len(buffer) == 0 {
		return err
	}
	kept, start := Log{dir: dir, name: l.name}, r.Offset()-int64(len(buffer))
	if err := os.WriteFile(kept.segment(start), buffer, 0o600); err != nil {
		return err
	}
	if len(l.marks) > 0 {
		marks := l.marks[max(l.marksUpTo(start)-1, 0):] // of the bytes that are kept
		text, err := json.Marshal(marks)
		if err == nil {
			err = os.WriteFile(kept.sources(), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dir, l.starts = dir, []int64{start}
	return nil
}

// sources is the file that says who wrote what is kept.
func (l *Log) sources() string { return filepath.Join(l.dir, l.name+".sources.json") }

// Open finds the segments of a Log in a directory. Nothing can be written to it.
// It is empty if there are none.
func Open(dir, name string) (*Log, error) {
	l := &Log{dir: dir, name: name, more: make(chan struct{}), closed: true}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries { // in the order of their numbers
		var start int64
		if n, _ := fmt.Sscanf(e.Name(), name+".%d.log", &start); n != 1 || l.segment(start) != filepath.Join(dir, e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		l.starts, l.size = append(l.starts, start), start+info.Size()
	}
	if text, err := os.ReadFile(l.sources()); err == nil && json.Unmarshal(text, &l.marks) != nil {
		l.marks = nil // cut off by a crash of the host; the output is worth more than its sources
	}
	return l, nil
}
