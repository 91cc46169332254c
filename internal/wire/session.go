package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi/problem"
)

// A Session is a call that lasts: the request is answered with the status 101, and
// the connection then carries frames; see frame.go. The last one of the server has
// the answer or a problem.
type Session[A, In, Out any] struct {
	Info
	// Domain looks up the domain of what the arguments ask for. It is called only
	// for callers who may not work in every domain.
	Domain func(ctx context.Context, api A, in In) (string, error)
	// Refused hears that a caller with a name may not make the call with these
	// arguments, and why. The arguments are zero if they are too long or cannot be
	// read. Nil means that nobody wants to know.
	Refused func(ctx context.Context, api A, in In, why error)
	// Serve makes the call in process.
	Serve func(ctx context.Context, api A, in In, s executor.Streams) (Out, error)
}

// sessionProtocol is what the connection of a session is upgraded to.
const sessionProtocol = "diego-session-1"

// result is the last frame of a server.
type result struct {
	Answer  json.RawMessage  `json:"answer,omitempty"`
	Problem *problem.Problem `json:"problem,omitempty"`
}

// About implements [Endpoint].
func (e *Session[A, In, Out]) About() *Info { return &e.Info }

// Types implements [Endpoint].
func (e *Session[A, In, Out]) Types() (in, out reflect.Type) {
	return reflect.TypeFor[In](), reflect.TypeFor[Out]()
}

// lingerTime is how long a server waits for the client to take the result.
const lingerTime = 2 * time.Second

// controls is how many resizes and signals may wait. More are dropped: only a
// broken client sends so many.
const controls = 16

var (
	errClientGone = errors.New("the client has gone")
	errGivenUp    = errors.New("the session was given up")
	errStopping   = fmt.Errorf("the server stops, so the session was ended: %w", executor.ErrNoSession)
)

// Session tells it from other endpoints.
func (e *Session[A, In, Out]) Session() {}

func (e *Session[A, In, Out]) serve(s *Server, api A, w http.ResponseWriter, r *http.Request) {
	in, ctx, err := e.admit(s, api, w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	settle(w)
	if got := r.Header.Get("Upgrade"); got != sessionProtocol {
		s.fail(w, r, invalid("Upgrade", got, sessionProtocol))
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.fail(w, r, fmt.Errorf("a session takes a connection of HTTP/1.1: %w", err))
		return
	}
	defer conn.Close()
	if a, counted := w.(*answer); counted {
		a.status = http.StatusSwitchingProtocols
	}
	_ = conn.SetDeadline(time.Now().Add(s.WriteTimeout))
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %v\r\n\r\n", sessionProtocol, HeartbeatHeader, s.Heartbeat); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	// Read what the server has buffered first. A server that reads the end of
	// the connection itself takes it for the end of the request, and does not say why.
	before, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	control := make(chan executor.SessionControl, controls)
	p := &peer{
		conn: struct {
			io.Reader
			io.WriteCloser
		}{io.MultiReader(bytes.NewReader(before), conn), conn},
		in: map[byte]*inflow{}, out: map[byte]*outflow{}, senseless: executor.ErrInvalid,
		write: func() { _ = conn.SetWriteDeadline(time.Now().Add(s.WriteTimeout)) },
	}
	stdin := p.inflow(frameStdin)
	streams := executor.Streams{Stdin: stdin, Stdout: p.outflow(frameStdout), Stderr: p.outflow(frameStderr), Control: control}
	p.handle = func(kind byte, content []byte) error {
		switch kind {
		case frameEnd:
			stdin.end()
			return nil
		case frameControl:
			if len(content) > maxControl {
				return fmt.Errorf("it has %d bytes; want at most %d", len(content), maxControl)
			}
			var c executor.SessionControl
			if err := decodeStrictly(content, &c); err != nil {
				// receive puts the same prefix before the number of the frame.
				return &worded{strings.TrimPrefix(err.Error(), executor.ErrInvalid.Error()+": "), err}
			}
			select {
			case control <- c:
			default:
			}
			return nil
		}
		return errKind
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		err := p.receive(missedBeats * s.Heartbeat)
		if !errors.Is(err, executor.ErrInvalid) {
			cancel(fmt.Errorf("%w: %w", errClientGone, err))
			return
		}
		cancel(err)
		// The client is still there. Take what it had on the way when the result comes.
		_, _ = io.CopyN(io.Discard, p.conn, maxFrame)
	}()
	// End what still waits in a stream.
	defer context.AfterFunc(ctx, func() { p.end(context.Cause(ctx)) })()
	stop := p.live(s.Heartbeat)
	out, err := e.Serve(ctx, api, in, streams)
	stop()
	switch {
	case err == nil || r.Context().Err() == nil:
	case errors.Is(r.Context().Err(), context.DeadlineExceeded): // the cause says whose
		err = fmt.Errorf("%w, so the session was ended: %w", context.Cause(r.Context()), executor.ErrNoSession)
	default:
		err = errStopping
	}
	p.finish(s, out, err)
	late := time.AfterFunc(lingerTime, func() { conn.Close() })
	defer late.Stop()
	<-gone // else what the client still sends would have the result thrown away
}

// refusedBytes bounds the arguments that are read only to say what was refused.
const refusedBytes = 2 * executor.MaxCommandBytes

// admit does what has to be done before the session is served.
func (e *Session[A, In, Out]) admit(s *Server, api A, w http.ResponseWriter, r *http.Request) (in In, ctx context.Context, err error) {
	ctx, caller, err := s.enter(w, r, &e.Info)
	var many *problem.TooManyError
	tell := e.Refused != nil && caller.Name != "" && !errors.As(err, &many)
	switch {
	case err == nil:
		if err = s.decode(w, r, &in); err == nil {
			err = inDomain(ctx, caller, e.Domain, api, in)
		}
	case tell:
		r.Body = http.MaxBytesReader(w, r.Body, refusedBytes)
		_ = s.decode(w, r, &in)
	}
	if err != nil && tell {
		e.Refused(ctx, api, in, err)
	}
	return in, ctx, err
}

// finish sends the result.
func (p *peer) finish(s *Server, out any, err error) {
	var last result
	if err == nil {
		last.Answer, err = json.Marshal(out)
	}
	if err != nil {
		encoded := s.Problems.Encode(err)
		last.Problem = &encoded
	}
	if body, err := json.Marshal(last); err == nil { // a problem is text and numbers
		_ = p.send(frameResult, body)
	}
}

// Do makes the call through a client, whose first address counts.
func (e *Session[A, In, Out]) Do(ctx context.Context, client *Client, in In, s executor.Streams) (out Out, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return out, fmt.Errorf("%s: %w", e.Name, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, beat, err := client.upgrade(ctx, &e.Info, body)
	if err != nil {
		return out, err
	}
	defer conn.Close()
	p := &peer{conn: conn, in: map[byte]*inflow{}, out: map[byte]*outflow{}, senseless: ErrGarbled}
	stdin, stdout, stderr := p.outflow(frameStdin), p.inflow(frameStdout), p.inflow(frameStderr)
	var last *result
	p.handle = func(kind byte, content []byte) error {
		if kind != frameResult {
			return errKind
		}
		var r result
		if err := json.Unmarshal(content, &r); err != nil {
			return err
		}
		last = &r
		stdout.end()
		stderr.end()
		return errResult
	}
	defer context.AfterFunc(ctx, func() {
		p.end(context.Cause(ctx))
		conn.Close()
	})()
	defer p.end(errGivenUp) // a Read of stdin that is in progress leads nowhere
	defer p.live(beat)()
	go p.give(ctx, cancel, s, stdin)
	var outputs sync.WaitGroup
	for _, o := range []struct {
		to   io.Writer
		from io.Reader
	}{{s.Stdout, stdout}, {s.Stderr, stderr}} {
		outputs.Go(func() {
			if o.to == nil {
				o.to = io.Discard
			}
			var here *writeError
			if _, err := io.Copy(marked{o.to}, o.from); errors.As(err, &here) {
				cancel(here.error) // nobody wants the rest
			}
		})
	}
	err = p.receive(missedBeats * beat)
	if last == nil {
		p.end(err)
	}
	outputs.Wait()
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case last == nil:
		return out, fmt.Errorf("%s: %w: the connection was cut off: %w", e.Name, ErrNoAnswer, err)
	case last.Problem != nil:
		return out, client.o.Problems.Decode(*last.Problem)
	}
	if err := json.Unmarshal(last.Answer, &out); err != nil {
		return out, fmt.Errorf("%s: %w: %w", e.Name, ErrGarbled, err)
	}
	return out, nil
}

var (
	errResult = errors.New("the result has come")
	errKind   = errors.New("this side takes no such frames")
)

// give sends input and controls. An error of the input ends the session: otherwise
// the program would take a part of the input for all of it.
func (p *peer) give(ctx context.Context, cancel context.CancelCauseFunc, s executor.Streams, stdin *outflow) {
	go func() {
		var there *writeError
		if s.Stdin != nil {
			if _, err := io.Copy(marked{stdin}, s.Stdin); err != nil && !errors.As(err, &there) {
				cancel(fmt.Errorf("read the input of the session: %w", err))
				return
			}
		}
		_ = p.send(frameEnd, nil)
	}()
	for {
		select {
		case c, open := <-s.Control:
			if !open {
				return
			}
			if content, err := json.Marshal(c); err == nil {
				_ = p.send(frameControl, content)
			}
		case <-ctx.Done():
			return
		}
	}
}

// A marked writer marks its errors, so that they differ from those of the reader.
type marked struct{ w io.Writer }

type writeError struct{ error }

// Unwrap makes errors.Is work with what it holds.
func (e *writeError) Unwrap() error { return e.error }

// Write implements [io.Writer].
func (m marked) Write(b []byte) (int, error) {
	n, err := m.w.Write(b)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}

// upgrade begins a session with the first address.
func (c *Client) upgrade(ctx context.Context, info *Info, body []byte) (conn io.ReadWriteCloser, beat time.Duration, err error) {
	addresses := c.order(ctx)
	if len(addresses) == 0 {
		return nil, 0, fmt.Errorf("%s: %w: no address is known", info.Name, ErrUnreachable)
	}
	request, watch, err := c.request(ctx, c.o.Timeout, addresses[0], "", info, body)
	if err != nil {
		return nil, 0, err
	}
	defer watch.stop()
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", sessionProtocol)
	answer, err := c.o.HTTP.Do(request)
	if err != nil {
		kind := ErrNoAnswer
		if notSent(err) {
			kind = ErrUnreachable
		}
		return nil, 0, fmt.Errorf("%s: %w: %w", info.Name, kind, watch.explain(err))
	}
	conn, upgraded := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !upgraded {
		defer answer.Body.Close()
		problem, _ := c.readProblem(answer)
		return nil, 0, c.o.Problems.Decode(problem)
	}
	if beat, err = time.ParseDuration(answer.Header.Get(HeartbeatHeader)); err != nil || beat <= 0 {
		conn.Close()
		return nil, 0, fmt.Errorf("%s: %w: the answer does not say how often the server says that it is alive", info.Name, ErrGarbled)
	}
	return conn, beat, nil
}
