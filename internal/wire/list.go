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
	"time"
)

// A List answers with any number of items. Each is a line {"item": …}; an error
// in its place is {"problem": …}; the last line is {"end": n}, where n counts
// the lines before it. A list without that line was cut off.
type List[A, In, Item any] struct {
	Info
	// Serve makes the call in process.
	Serve func(ctx context.Context, api A, in In) iter.Seq2[Item, error]
}

// listType is the content type of a list.
const listType = "application/x-ndjson"

// line is one line of a list. Of its members one is set.
type line struct {
	Item    any      `json:"item,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
	End     *int     `json:"end,omitempty"`
}

// readLine is a line whose item is still text.
type readLine struct {
	Item    json.RawMessage `json:"item"`
	Problem *Problem        `json:"problem"`
	End     *int            `json:"end"`
}

// About implements [Endpoint].
func (l *List[A, In, Item]) About() *Info { return &l.Info }

// Types implements [Endpoint].
func (l *List[A, In, Item]) Types() (in, out reflect.Type) {
	return reflect.TypeFor[In](), reflect.TypeFor[iter.Seq2[Item, error]]()
}

func (l *List[A, In, Item]) serve(s *Server, api A, w http.ResponseWriter, r *http.Request) {
	in, ctx, cancel, ok := admit[In](s, &l.Info, nil, w, r)
	if !ok {
		return
	}
	defer cancel()
	out := listWriter{server: s, w: w, control: http.NewResponseController(w), live: l.Long}
	defer out.finish()
	var last error
	for item, err := range l.Serve(ctx, api, in) {
		last = err
		if err != nil {
			if out.lines == 0 && !s.Problems.inPlace(err) {
				s.fail(w, r, err) // nothing was sent: the whole answer is the problem
				return
			}
			p := s.Problems.encode(err)
			err = out.add(line{Problem: &p})
		} else {
			err = out.add(line{Item: item})
		}
		if err != nil {
			panic(http.ErrAbortHandler) // a list without its end, as nobody can read it
		}
	}
	if err := ctx.Err(); err != nil && last == nil {
		// Whoever ended the list early without saying so: it is not complete.
		p := s.Problems.encode(err)
		_ = out.add(line{Problem: &p})
	}
	n := out.lines
	if out.add(line{End: &n}) != nil || out.flush() != nil {
		panic(http.ErrAbortHandler)
	}
}

// A listWriter sends lines in pieces of some size, each with a deadline of its
// own, so that a long list may take as long as its reader keeps reading.
type listWriter struct {
	server  *Server
	w       http.ResponseWriter
	control *http.ResponseController
	live    bool // every line at once
	buffer  bytes.Buffer
	lines   int
}

const pieceBytes = 32 << 10

func (l *listWriter) add(v line) error {
	if l.lines == 0 {
		l.w.Header().Set("Content-Type", listType)
	}
	if v.End == nil {
		l.lines++
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	l.buffer.Write(text)
	l.buffer.WriteByte('\n')
	if l.live || l.buffer.Len() >= pieceBytes {
		return l.flush()
	}
	return nil
}

func (l *listWriter) flush() error {
	_ = l.control.SetWriteDeadline(soon(l.server.WriteTimeout))
	if _, err := l.w.Write(l.buffer.Bytes()); err != nil {
		return err
	}
	l.buffer.Reset()
	return l.control.Flush()
}

func (l *listWriter) finish() { _ = l.control.SetWriteDeadline(time.Time{}) }

// All makes the call through a client, each time it is ranged over.
func (l *List[A, In, Item]) All(ctx context.Context, client *Client, in In) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var none Item
		stopped := false
		err := client.do(ctx, &l.Info, in, func(answer *http.Response) error {
			lines := bufio.NewReaderSize(answer.Body, 4<<10)
			for n := 0; ; n++ {
				read, err := nextLine(lines, client.o.MaxAnswerBytes)
				if err != nil {
					return &final{fmt.Errorf("%s: the list was cut off after %d items: %w", l.Name, n, err)}
				}
				var item Item
				switch {
				case read.End != nil && *read.End == n:
					_, _ = io.Copy(io.Discard, lines) // so that the connection is used again
					return nil
				case read.End != nil:
					return &final{fmt.Errorf("%s: %w: the list has %d items, %d of them came", l.Name, ErrGarbled, *read.End, n)}
				case read.Problem != nil:
					err = client.o.Problems.decode(*read.Problem)
				default:
					if err = json.Unmarshal(read.Item, &item); err != nil {
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

// nextLine reads one line. The end of the text is unexpected.
func nextLine(r *bufio.Reader, limit int64) (out readLine, err error) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(text) == 0 && err == nil {
			text = part
			break
		}
		text = append(text, part...)
		if int64(len(text)) > limit {
			return out, &TooLargeError{What: "line of a list", Limit: limit}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return out, err
		}
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("%w: %w", ErrGarbled, err)
	}
	return out, nil
}
