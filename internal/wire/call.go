// Package wire carries calls over HTTP. It knows nothing of what is called: a
// call is data, of which a [Server] makes a handler and a [Client] a request,
// so that both sides and the documentation follow from one line of a table.
//
//   - [Call] has one answer: JSON to JSON
//   - [List] answers with many items, one line each, and a line that says that
//     the list is complete
//   - [Feed] never ends: server-sent events, resumed by position
//
// Errors travel as problem bodies; see problem.go.
package wire

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"time"
)

// None is the type of arguments or answers that hold nothing.
type None struct{}

// A Repeat says whether a client may make a call again of which it does not
// know what became.
type Repeat uint8

const (
	// Always: doing it twice is doing it once.
	Always Repeat = iota
	// Once: only with a request id, under which it is carried out once.
	Once
	// Never: who asks must find out by other means.
	Never
)

// Info is what a table says of a call besides its types.
type Info struct {
	// Name is the name of the Go method.
	Name string
	// Method and Path are the request's.
	Method, Path string
	// Roles may make the call.
	Roles []string
	// Repeat says what a client may do without an answer.
	Repeat Repeat
	// Doc is a sentence or two.
	Doc string
	// Long calls last until one side ends them, and what they send goes out at
	// once.
	Long bool
	// Silence is how long an answer that has begun may pause: 0 means as long
	// as the client waits for any answer, less than 0 for ever. For a feed it
	// holds where the answer has no HeartbeatHeader.
	Silence time.Duration
}

// An Endpoint is a call of an API of type A, as servers and the documentation
// see it.
type Endpoint[A any] interface {
	About() *Info
	// Types are those of arguments and answers. An answer of kind Seq has many.
	Types() (in, out reflect.Type)
	serve(s *Server, api A, w http.ResponseWriter, r *http.Request)
}

// A Call has one answer.
type Call[A, In, Out any] struct {
	Info
	// Cell names the cell on whose behalf the arguments speak; nil if they
	// speak for none.
	Cell func(In) string
	// Serve makes the call in process.
	Serve func(ctx context.Context, api A, in In) (Out, error)
}

// About implements [Endpoint].
func (c *Call[A, In, Out]) About() *Info { return &c.Info }

// Types implements [Endpoint].
func (c *Call[A, In, Out]) Types() (in, out reflect.Type) {
	return reflect.TypeFor[In](), reflect.TypeFor[Out]()
}

func (c *Call[A, In, Out]) serve(s *Server, api A, w http.ResponseWriter, r *http.Request) {
	in, ctx, ok := admit(s, &c.Info, c.Cell, w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	out, err := c.Serve(ctx, api, in)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	body, err := json.Marshal(out)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.write(w, http.StatusOK, "application/json", append(body, '\n'))
}

// Do makes the call through a client.
func (c *Call[A, In, Out]) Do(ctx context.Context, client *Client, in In) (out Out, err error) {
	err = client.do(ctx, &c.Info, in, func(answer *http.Response) error {
		return decodeAnswer(answer, client.o.MaxAnswerBytes, &out)
	})
	return out, err
}

// admit does what is the same for all calls before they are served. If it is
// not ok the request has been answered.
func admit[In any](s *Server, info *Info, cell func(In) string, w http.ResponseWriter, r *http.Request) (in In, ctx context.Context, ok bool) {
	ctx, _, speaker, err := s.enter(w, r, info)
	if err == nil {
		err = s.decode(w, r, &in)
	}
	if err == nil && cell != nil {
		err = speaker(cell(in))
	}
	if err != nil {
		s.fail(w, r, err)
		return in, nil, false
	}
	return in, ctx, true
}

// soon is the deadline of what must not take longer than d.
func soon(d time.Duration) time.Time { return time.Now().Add(d) }
