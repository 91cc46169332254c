// Package wire carries calls over HTTP. It knows nothing about the calls
// themselves. A call is data; a [Server] makes a handler of it and a [Client] a
// request. So both sides and the documentation follow from one line of a table.
//
//   - [Call] has one answer: JSON to JSON
//   - [List] answers with many items, one line each, and a line that says that
//     the list is complete
//   - [Feed] never ends: server-sent events, resumed by position
//   - [Session] upgrades its connection to frames in both directions, until a last
//     one with the answer
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

// A Repeat says whether a client may repeat a call whose outcome it does not
// know.
type Repeat uint8

const (
	// Always: the call is idempotent.
	Always Repeat = iota
	// Once: only under a request id, with which it is carried out once.
	Once
	// Never: the caller must find out by other means.
	Never
)

// Info is what a table says about a call besides its types.
type Info struct {
	// Name is the name of the Go method.
	Name string
	// Method and Path are those of the request.
	Method, Path string
	// Roles may make the call.
	Roles []string
	// Repeat says what a client may do without an answer.
	Repeat Repeat
	// Doc is a sentence or two.
	Doc string
	// Long calls last until one side ends them; what they write is sent at once.
	Long bool
	// Each is how many of these calls one caller may have served at a time, by the
	// name of its certificate; the others wait. 0 means any number. It is for answers
	// that take much memory, or a connection of the store.
	Each int
	// Shares names the calls that share one bound, such as "lists". They all have the
	// same Each. "" means that this call has a bound of its own.
	Shares string
	// Silence is how long an answer that has begun may pause: 0 means as long as
	// the client waits for any answer, less than 0 for ever. For a feed it applies
	// if the answer has no HeartbeatHeader.
	Silence time.Duration
}

// An Endpoint is a call of an API of type A, as servers and the documentation
// see it.
type Endpoint[A any] interface {
	About() *Info
	// Types are the types of arguments and answers. An answer of kind Seq has
	// many.
	Types() (in, out reflect.Type)
	serve(s *Server, api A, w http.ResponseWriter, r *http.Request)
}

// A Call has one answer.
type Call[A, In, Out any] struct {
	Info
	// Cell names the cell on whose behalf the arguments speak; nil if there is
	// none.
	Cell func(In) string
	// Lock names the lock that the arguments are about, "" if they are about all;
	// nil if they are about none.
	Lock func(In) string
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
	in, ctx, caller, ok := admit(s, &c.Info, c.Cell, w, r)
	if !ok {
		return
	}
	if c.Lock != nil && caller.Locks != nil {
		if err := caller.Locks(c.Lock(in)); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	leave, err := s.takeTurn(ctx, r, &c.Info, caller.Name)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer leave() // after the answer was written: it is in memory until then
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

// admit does what all calls need before they are served. If ok is false, the
// request has been answered.
func admit[In any](s *Server, info *Info, cell func(In) string, w http.ResponseWriter, r *http.Request) (in In, ctx context.Context, caller Caller, ok bool) {
	ctx, caller, err := s.enter(w, r, info)
	if err == nil {
		err = s.decode(w, r, &in)
	}
	if err == nil && cell != nil {
		err = caller.SpeaksFor(cell(in))
	}
	if err != nil {
		s.fail(w, r, err)
		return in, nil, caller, false
	}
	return in, ctx, caller, true
}

// soon is the deadline of something that may take d.
func soon(d time.Duration) time.Time { return time.Now().Add(d) }
