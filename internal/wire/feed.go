package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/httpapi/problem"
)

// A Feed is an endless list, sent as server-sent events. The id of each event
// is its position, from which another request continues. Arguments are in the
// query. It is a GET, so that a browser's EventSource can read it.
type Feed[A, In, Item any] struct {
	Info
	// Query and Parse convert the arguments to a URL and back. Parse gets the
	// position after which to continue, if the reader knows one.
	Query func(In) url.Values
	Parse func(q url.Values, lastEventID string) (In, error)
	// Open begins the feed in process. reached is the position from which the
	// reader continues if it has seen no item after it. It may grow while items
	// are not wanted, and is never beyond an item that was not taken yet. A feed
	// that can only fail fails here.
	Open func(ctx context.Context, api A, in In) (items iter.Seq2[Item, error], reached func() int64, err error)
	// Position is an item's position, and Kind the name of its kind. An item that
	// comes with an error may have a position too, or 0.
	Position func(*Item) int64
	Kind     func(*Item) string
}

// About implements [Endpoint].
func (f *Feed[A, In, Item]) About() *Info { return &f.Info }

// Types implements [Endpoint].
func (f *Feed[A, In, Item]) Types() (in, out reflect.Type) {
	return reflect.TypeFor[In](), reflect.TypeFor[iter.Seq2[Item, error]]()
}

const problemEvent = "problem"

// HeartbeatHeader is the header of a feed's answer that says how often the
// server sends something, at least, for example "5s". A client considers the
// feed cut after missedBeats of them.
const (
	HeartbeatHeader = "Diego-Heartbeat"
	missedBeats     = 3
)

func (f *Feed[A, In, Item]) serve(s *Server, api A, w http.ResponseWriter, r *http.Request) {
	ctx, caller, err := s.enter(w, r, &f.Info)
	var in In
	if err == nil {
		in, err = f.Parse(r.URL.Query(), r.Header.Get("Last-Event-ID"))
	}
	var leave func()
	if err == nil {
		leave, err = s.admitFeed(r, caller.Name)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer leave()
	settle(w)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	items, reached, err := f.Open(ctx, api, in)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(HeartbeatHeader, s.Heartbeat.String())
	out := newFeedWriter(s, w, cancel, reached)
	defer out.finish()
	first := reached()
	out.send(first, fmt.Appendf(nil, "id: %d\n\n", first))
	var head []byte
	for item, err := range items {
		at := f.Position(&item)
		if head = head[:0]; at > 0 {
			head = fmt.Appendf(head, "id: %d\n", at)
		}
		var data []byte
		if err == nil {
			data, err = json.Marshal(item)
		}
		if err == nil {
			head = fmt.Appendf(head, "event: %s\ndata: ", f.Kind(&item))
		} else {
			if ctx.Err() != nil {
				return // the reader has gone, or was too slow
			}
			data, _ = json.Marshal(s.Problems.Encode(err)) // text and numbers
			head = fmt.Appendf(head, "event: %s\ndata: ", problemEvent)
		}
		// An event may have tens of MiB, so it is not copied.
		if !out.send(at, head, data, []byte("\n\n")) {
			return
		}
	}
}

// A feedWriter sends events, and a heartbeat if there are none for a while. A
// reader that does not accept them in time is cut off, and resumes.
type feedWriter struct {
	server  *Server
	w       http.ResponseWriter
	control *http.ResponseController
	cancel  context.CancelFunc
	reached func() int64
	turn    chan struct{} // holds a token while nobody writes
	beat    *time.Timer
	at      int64 // where the reader goes on
	over    bool
}

func newFeedWriter(s *Server, w http.ResponseWriter, cancel context.CancelFunc, reached func() int64) *feedWriter {
	f := &feedWriter{server: s, w: w, control: http.NewResponseController(w), cancel: cancel, reached: reached, turn: make(chan struct{}, 1)}
	f.beat = time.AfterFunc(s.Heartbeat, f.alive)
	f.turn <- struct{}{} // only now: the heartbeat may be due already, and sets beat again
	return f
}

// alive sends a heartbeat: a comment or, so that a reader that wants few events
// does not fall out of the log, the reached position.
func (f *feedWriter) alive() {
	<-f.turn
	defer func() { f.turn <- struct{}{} }()
	text := []byte(":\n\n")
	if at := f.reached(); at > f.at {
		f.at, text = at, fmt.Appendf(nil, "id: %d\n\n", at)
	}
	f.write(text)
}

// send sends the parts of the text for a position, 0 if it has none, and reports
// whether to go on.
func (f *feedWriter) send(at int64, parts ...[]byte) bool {
	<-f.turn
	defer func() { f.turn <- struct{}{} }()
	f.at = max(f.at, at)
	return f.write(parts...)
}

func (f *feedWriter) write(parts ...[]byte) bool {
	if f.over {
		return false
	}
	_ = f.control.SetWriteDeadline(soon(f.server.WriteTimeout))
	var err error
	for i := 0; i < len(parts) && err == nil; i++ {
		_, err = f.w.Write(parts[i])
	}
	if err == nil {
		err = f.control.Flush()
	}
	if err != nil {
		f.over = true
		f.cancel()
		return false
	}
	f.beat.Reset(f.server.Heartbeat)
	return true
}

// finish waits for the last heartbeat.
func (f *feedWriter) finish() {
	<-f.turn
	f.over = true
	f.beat.Stop()
	_ = f.control.SetWriteDeadline(time.Time{})
	f.turn <- struct{}{}
}

// Follow reads the feed through a client. After a cut it continues from where
// it was, with any process that answers; resume returns the arguments for that.
// It ends with an error that a repetition cannot repair, or when nobody has
// answered for the client's Patience.
func (f *Feed[A, In, Item]) Follow(ctx context.Context, client *Client, in In, resume func(In, int64) In) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var none Item
		ok, alive := true, time.Now()
		for ok {
			var fatal, passing error
			err := client.follow(ctx, &f.Info, f.Query(in), func(e event) bool {
				alive = time.Now()
				var item Item
				switch {
				case e.kind == problemEvent:
					var p problem.Problem
					if err := json.Unmarshal(e.data, &p); err != nil {
						fatal = fmt.Errorf("%s: %w: %w", f.Name, ErrGarbled, err)
						return false
					}
					err := client.o.Problems.Decode(p)
					if !client.o.Problems.inPlace(err) {
						if client.mayPass(err) {
							passing = err
						} else {
							fatal = err
						}
						return false
					}
					if e.id >= 0 {
						in = resume(in, e.id)
					}
					ok = yield(none, err)
				case len(e.data) > 0:
					if err := json.Unmarshal(e.data, &item); err != nil {
						fatal = fmt.Errorf("%s: %w: event %d: %w", f.Name, ErrGarbled, e.id, err)
						return false
					}
					in = resume(in, e.id)
					ok = yield(item, nil)
				default:
					in = resume(in, e.id)
				}
				return ok
			})
			if err == nil {
				alive = time.Now() // however long there was nothing to say
			}
			switch {
			case !ok:
				return
			case ctx.Err() != nil:
				err = ctx.Err()
			case fatal != nil:
				err = fatal
			case passing != nil:
				err = client.rest(ctx)
			case err != nil && client.mayPass(err) && time.Since(alive) < client.o.Patience:
				err = client.rest(ctx)
			}
			if err != nil {
				yield(none, err)
				return
			}
		}
	}
}

// An event is one server-sent event.
type event struct {
	id   int64
	kind string
	data []byte
}

// follow reads the events of one connection until each returns false. Nil means
// that the connection was cut after it had worked, or that its server hangs;
// such a server is asked last next time.
func (c *Client) follow(ctx context.Context, info *Info, query url.Values, each func(event) bool) error {
	at := *info
	at.Path += "?" + query.Encode()
	at.Repeat = Always
	return c.do(ctx, &at, None{}, func(answer *http.Response) error {
		lines := bufio.NewReaderSize(answer.Body, 64<<10)
		var e event
		e.id = -1
		seen := false
		for {
			text, err := readEventLine(lines, c.o.MaxAnswerBytes)
			if err != nil {
				var large *problem.TooLargeError
				var late errLate
				switch {
				case errors.As(err, &large):
					return &final{err}
				case seen && errors.As(err, &late):
					return &hungUp{fmt.Errorf("%s: %w: %w", info.Name, ErrNoAnswer, err)}
				case seen:
					// The feed has worked. The pause keeps the client from asking a server
					// that cuts at once again and again.
					return c.rest(ctx)
				}
				return err
			}
			switch name, value, _ := strings.Cut(text, ":"); {
			case text == "":
				if e.id >= 0 || e.kind != "" {
					seen = true
					if !each(e) {
						return nil
					}
				}
				e = event{id: -1}
			case name == "id":
				n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				if err != nil {
					return &final{fmt.Errorf("%s: %w: event id %q", info.Name, ErrGarbled, value)}
				}
				e.id = n
			case name == "event":
				e.kind = strings.TrimSpace(value)
			case name == "data":
				e.data = append(e.data, strings.TrimPrefix(value, " ")...)
			}
		}
	})
}

// mayPass reports whether an error comes from the network, or from a server
// that has lost its store or is about to be replaced.
func (c *Client) mayPass(err error) bool {
	var remote *problem.RemoteError
	if errors.As(err, &remote) {
		return remote.Problem.Status >= http.StatusInternalServerError && remote.Problem.Status <= http.StatusGatewayTimeout
	}
	_, elsewhere := c.o.Problems.Elsewhere(err)
	return elsewhere || errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrUnreachable)
}

// rest waits before a feed is resumed.
func (c *Client) rest(ctx context.Context) error {
	_ = sleep(ctx, c.o.Pause) // the caller looks at ctx
	return nil
}

func readEventLine(r *bufio.Reader, limit int64) (string, error) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case int64(len(text)) > limit:
			return "", &problem.TooLargeError{What: "event", Limit: limit}
		case err == nil:
			return strings.TrimRight(string(text), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}
