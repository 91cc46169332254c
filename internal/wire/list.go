package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/diegosdk/diego/httpapi/problem"
)

// A List answers with any number of items. Each is a line {"item": …}; an error
// in its place is {"problem": …}; the last line is {"end": n}, where n counts
// the lines before it. A list without that line was cut off.
type List[A, In, Item any] struct {
	Info
	// Domain looks up the domain of what the arguments ask for. It is called only
	// for callers who may not read every domain; nil means that there is nothing
	// of a domain to read.
	Domain func(ctx context.Context, api A, in In) (string, error)
	// Serve makes the call in process.
	Serve func(ctx context.Context, api A, in In) iter.Seq2[Item, error]
}

// listType is the content type of a list.
const listType = "application/x-ndjson"

// readLine is a line whose item is still text.
type readLine struct {
	Item    json.RawMessage  `json:"item"`
	Problem *problem.Problem `json:"problem"`
	End     *int             `json:"end"`
}

// About implements [Endpoint].
func (l *List[A, In, Item]) About() *Info { return &l.Info }

// Types implements [Endpoint].
func (l *List[A, In, Item]) Types() (in, out reflect.Type) {
	return reflect.TypeFor[In](), reflect.TypeFor[iter.Seq2[Item, error]]()
}

func (l *List[A, In, Item]) serve(s *Server, api A, w http.ResponseWriter, r *http.Request) {
	in, ctx, caller, ok := admit[In](s, &l.Info, nil, w, r)
	if !ok {
		return
	}
	if err := inDomain(ctx, caller, l.Domain, api, in); err != nil {
		s.fail(w, r, err)
		return
	}
	out := newListWriter(s, w, l.Path, l.Long)
	if l.Long {
		leave, err := s.admitFeed(r, caller.Name)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		defer leave()
		settle(w)
	} else {
		turn, stop := context.WithTimeout(ctx, s.Timeout)
		leave, err := s.takeTurn(turn, r, &l.Info, caller.Name)
		stop()
		if err != nil {
			s.fail(w, r, err)
			return
		}
		defer func() { out.leaveAfterPause(leave) }()
	}
	// A list may take as long as its reader reads, and its maker has the time of
	// a call for each piece.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer out.finish()
	if l.Long {
		// A client waits for the beginning of the answer as long as for any other, and
		// then as long as it likes.
		out.first = time.AfterFunc(min(s.Heartbeat, time.Second), out.begin)
	} else {
		out.patience = time.AfterFunc(s.Timeout, func() { cancel(errStuck{s.Timeout}) })
	}
	var last error
	var current Item // one for all, as what add takes is on the heap
	for item, err := range l.Serve(ctx, api, in) {
		if last = out.explain(ctx, err); last != nil {
			err = last
			if !s.Problems.inPlace(err) && out.fails() {
				s.fail(w, r, err)
				return
			}
			p := s.Problems.Encode(err)
			err = add(out, "problem", &p)
		} else {
			current = item
			err = add(out, "item", &current)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // a list without its end, because nobody can read it
		}
	}
	if err := ctx.Err(); err != nil && last == nil {
		// The list ended early without saying so: it is not complete.
		p := s.Problems.Encode(out.explain(ctx, err))
		_ = add(out, "problem", &p)
	}
	if out.end() != nil {
		panic(http.ErrAbortHandler)
	}
}

// errStuck is why a list without progress ends: a missed deadline.
type errStuck struct{ limit time.Duration }

func (e errStuck) Error() string {
	return fmt.Sprintf("the list has not gone on for %v", e.limit)
}

// Unwrap makes errors.Is(err, context.DeadlineExceeded) true.
func (e errStuck) Unwrap() error { return context.DeadlineExceeded }

// A listWriter sends lines in pieces, each with a deadline of its own, so that
// a long list may take as long as its reader keeps reading.
type listWriter struct {
	server   *Server
	path     string
	w        http.ResponseWriter
	control  *http.ResponseController
	deadline writeDeadline
	live     bool // every line at once
	// patience ends the list if nothing is written for long, and may be nil.
	patience *time.Timer
	// first begins the answer if no line comes, and may be nil.
	first *time.Timer
	// made says that all lines have been made, or that nobody waits for the rest; it is
	// guarded by Server.mu.
	made bool

	mu     sync.Mutex
	buffer *bytes.Buffer
	lines  int
	sent   bool // something
	over   bool
	// waited is how long the reader has kept the list waiting, and slow fires when that
	// is too long; it is nil before the first piece.
	waited time.Duration
	slow   *time.Timer
	// writing is a write that goes on after the list was cut off, or nil.
	writing <-chan error
}

// begin sends what comes before the lines.
func (l *listWriter) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.sent && !l.over {
		_ = l.flush() // the next line finds out, too
	}
}

// fails reports whether there are no lines and nothing was sent: then the whole
// answer is a problem, which the caller writes.
func (l *listWriter) fails() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = l.lines == 0 && !l.sent
	return l.over
}

// explain names the true cause of an error that ends a list.
func (l *listWriter) explain(ctx context.Context, err error) error {
	var stuck errStuck
	if err != nil && errors.As(context.Cause(ctx), &stuck) {
		return stuck
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

const pieceBytes = 32 << 10

// buffers are the empty buffers of lists that have been sent.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func newListWriter(s *Server, w http.ResponseWriter, path string, live bool) *listWriter {
	control := http.NewResponseController(w)
	return &listWriter{
		server: s, path: path, w: w, control: control, deadline: writeDeadline{set: control.SetWriteDeadline, gone: make(chan struct{})}, live: live,
		buffer: buffers.Get().(*bytes.Buffer),
	}
}

// add writes the line that has one member.
func add[T any](l *listWriter, member string, v *T) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginLine(member)
	text, err := appendJSON(l.buffer.AvailableBuffer(), v)
	if err != nil {
		return err
	}
	l.finishLine(text)
	l.lines++
	if l.live || l.buffer.Len() >= pieceBytes {
		return l.flush()
	}
	return nil
}

func (l *listWriter) beginLine(member string) {
	l.buffer.WriteString(`{"`)
	l.buffer.WriteString(member)
	l.buffer.WriteString(`":`)
}

func (l *listWriter) finishLine(text []byte) {
	l.buffer.Write(text)
	l.buffer.WriteString("}\n")
}

// end writes the last line. A list that fits into one piece has a
// Content-Length, which saves both sides some work.
func (l *listWriter) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.server.forgetSlow(l)
	l.beginLine("end")
	l.finishLine(strconv.AppendInt(l.buffer.AvailableBuffer(), int64(l.lines), 10))
	if !l.sent {
		l.w.Header().Set("Content-Length", strconv.Itoa(l.buffer.Len()))
	}
	if err := l.flush(); err != nil {
		return err // and HTTP/2 may still be reading the buffer
	}
	if l.buffer.Cap() <= 2*pieceBytes { // an item larger than most has not made it larger
		buffers.Put(l.buffer)
	}
	return nil
}

func (l *listWriter) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.patience != nil {
		l.patience.Stop()
	}
	if l.first != nil {
		l.first.Stop()
	}
	if l.slow != nil {
		l.slow.Stop()
	}
	l.server.forgetSlow(l)
	if l.writing != nil {
		<-l.writing // it uses the answer, which ends with the caller
	}
	l.deadline.end()
}

// flush sends the lines in the buffer. l.mu is held.
func (l *listWriter) flush() error {
	if !l.sent {
		l.w.Header().Set("Content-Type", listType)
		l.sent = true
	}
	if l.patience != nil { // the reader's time is not the list's
		l.patience.Stop()
		defer l.patience.Reset(l.server.Timeout)
	}
	if err := l.deadline.move(soon(l.server.WriteTimeout)); err != nil {
		return err
	}
	defer l.wait()()
	if l.live {
		err := l.write()
		_ = l.deadline.move(time.Time{}) // HTTP/2 ends the answer at a deadline even if nothing is being written
		return err
	}
	if l.over {
		return l.write() // the store is needed no more
	}
	written := make(chan error, 1)
	go func() { written <- l.write() }()
	select {
	case err := <-written:
		return err
	case <-l.deadline.gone: // the maker waits no longer, and so the store has its connection back
		l.writing = written
		return errCutOff
	}
}

// write writes what is in the buffer. After the list was cut off, HTTP/2 waits in it until the
// reader has taken what was written on the connection before.
func (l *listWriter) write() error {
	if _, err := l.w.Write(l.buffer.Bytes()); err != nil {
		return err
	}
	l.buffer.Reset()
	return l.control.Flush()
}

// leaveAfterPause calls leave when another list may take the place of this one, which is over.
func (l *listWriter) leaveAfterPause(leave func()) {
	if pause := min(waitFactor*l.waited, longestPause); pause > 0 {
		time.AfterFunc(pause, leave)
	} else {
		leave()
	}
}

// wait counts how long the reader keeps the list waiting, until stop is called. The
// last piece does not count, because the store has nothing to do with it. l.mu is held.
func (l *listWriter) wait() (stop func()) {
	if l.live || l.over {
		return func() {}
	}
	began := time.Now()
	if left := slowAfter - l.waited; l.slow == nil {
		l.slow = time.AfterFunc(left, func() { l.server.markSlow(l) })
	} else if left > 0 {
		l.slow.Reset(left)
	}
	return func() {
		l.slow.Stop()
		if l.waited += time.Since(began); l.waited >= slowAfter {
			l.server.markSlow(l)
		}
	}
}

// All makes the call through a client, each time it is ranged over.
func (l *List[A, In, Item]) All(ctx context.Context, client *Client, in In) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var item, none Item // one for all, as what unmarshal takes is on the heap
		stopped := false
		err := client.do(ctx, &l.Info, in, func(answer *http.Response) error {
			lines := readers.Get().(*bufio.Reader)
			lines.Reset(answer.Body)
			defer func() {
				lines.Reset(nil)
				readers.Put(lines)
			}()
			for n := 0; ; n++ {
				read, err := nextLine(lines, client.o.MaxAnswerBytes)
				if err != nil {
					return &final{fmt.Errorf("%s: the list was cut off after %d items: %w", l.Name, n, err)}
				}
				item = none
				switch {
				case read.End != nil && *read.End == n:
					_, _ = io.Copy(io.Discard, lines) // so that the connection is used again
					return nil
				case read.End != nil:
					return &final{fmt.Errorf("%s: %w: the list has %d items, %d of them came", l.Name, ErrGarbled, *read.End, n)}
				case read.Problem != nil:
					err = client.o.Problems.Decode(*read.Problem)
				default:
					if err = unmarshal(read.Item, &item); err != nil {
						return &final{fmt.Errorf("%s: %w: item %d: %w", l.Name, ErrGarbled, n, err)}
					}
				}
				if !yield(item, err) {
					stopped = true
					return nil
				}
			}
		})
		var last *final
		if errors.As(err, &last) {
			err = last.error
		}
		if err != nil && !stopped {
			yield(none, err)
		}
	}
}

// readers are those of lists that are over.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

// nextLine reads one line. The end of the text is unexpected.
func nextLine(r *bufio.Reader, limit int64) (readLine, error) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(text) == 0 && err == nil {
			text = part
			break
		}
		text = append(text, part...)
		if int64(len(text)) > limit {
			return readLine{}, &problem.TooLargeError{What: "line of a list", Limit: limit}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return readLine{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
	}
	// Nearly all lines are items, and reading an item checks it.
	if item, ok := bytes.CutPrefix(text, itemPrefix); ok {
		if item, ok = bytes.CutSuffix(item, itemSuffix); ok {
			return readLine{Item: item}, nil
		}
	}
	var out readLine
	if err := json.Unmarshal(text, &out); err != nil {
		return readLine{}, fmt.Errorf("%w: %w", ErrGarbled, err)
	}
	return out, nil
}

var itemPrefix, itemSuffix = []byte(`{"item":`), []byte("}\n")

// appendJSON and unmarshal are json.Marshal and json.Unmarshal, but call the
// methods of a type without checking the text once more.
func appendJSON[T any](dst []byte, v *T) ([]byte, error) {
	if a, ok := any(v).(interface{ AppendJSON([]byte) ([]byte, error) }); ok {
		return a.AppendJSON(dst)
	}
	text, err := json.Marshal(v)
	return append(dst, text...), err
}

func unmarshal[T any](text []byte, v *T) error {
	if u, ok := any(v).(json.Unmarshaler); ok {
		return u.UnmarshalJSON(text)
	}
	return json.Unmarshal(text, v)
}

// inDomain fails if a call is about what belongs to a domain in which the caller
// has no business. of looks the domain up; nil means that there is none.
func inDomain[A, In any](ctx context.Context, caller Caller, of func(context.Context, A, In) (string, error), api A, in In) error {
	if of == nil || caller.Domains == nil {
		return nil
	}
	domain, err := of(ctx, api, in)
	if err != nil {
		return err
	}
	return caller.Domains(domain)
}
