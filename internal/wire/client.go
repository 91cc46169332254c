package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/storage"
)

// ClientOptions say how a [Client] finds and calls its service. All fields but
// Find are required; Addresses are required if Find is nil.
type ClientOptions struct {
	// Addresses are the base URLs of all processes of the service.
	Addresses []string
	// Find returns the leader's address, "" if it is not known.
	Find func(context.Context) (string, error)
	HTTP *http.Client
	// Accept reports whether calls may be sent to an address that a server has
	// named.
	Accept func(address string) bool
	// Timeout is how long one process may take to begin its answer, and to go on
	// with it; less if a call's deadline is near and others can be asked.
	Timeout time.Duration
	// Rounds is how often all processes are tried, Pause the time between.
	Rounds int
	Pause  time.Duration
	// Patience is how long a feed that is cut tries to go on.
	Patience time.Duration
	// MaxAnswerBytes bounds an answer, and a line of a list.
	MaxAnswerBytes int64
	Problems       *Problems
}

// A Client makes calls of one service.
type Client struct {
	o ClientOptions

	mu        sync.Mutex
	preferred string // where the last call was answered
	// silent numbers the addresses that did not answer when they were last asked,
	// in the order of those failures.
	silent   map[string]int
	silences int
}

// NewClient makes a client. It does not connect yet.
func NewClient(o ClientOptions) *Client { return &Client{o: o, silent: map[string]int{}} }

// ErrNoAnswer is wrapped if it is unknown whether a call was carried out.
var ErrNoAnswer = errors.New("no answer came")

// ErrUnreachable is wrapped if no server received the call.
var ErrUnreachable = errors.New("no server can be reached")

// ErrGarbled is wrapped if the answer makes no sense.
var ErrGarbled = errors.New("the answer makes no sense")

// A final error is returned as it is, because part of the answer has been used.
type final struct{ error }

// Unwrap makes errors.Is work with what it holds.
func (f *final) Unwrap() error { return f.error }

// A hungUp error ends a feed that worked and then was silent for too long.
// Another process should continue it from where it was.
type hungUp struct{ error }

// Unwrap makes errors.Is work with what it holds.
func (h *hungUp) Unwrap() error { return h.error }

// do makes a call to one process after the other until one carries it out.
func (c *Client) do(ctx context.Context, info *Info, in any, accept func(*http.Response) error) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", info.Name, err)
	}
	id := storage.RequestID(ctx)
	if id != "" && !fitsHeader(id) {
		return invalid("request id", id, fmt.Sprintf("1 to %d printable ASCII characters", MaxRequestIDBytes))
	}
	if id == "" && info.Repeat == Once {
		id = rand.Text() // nobody can guess it
	}
	repeatable := info.Repeat == Always || info.Repeat == Once
	err = fmt.Errorf("%s: %w: no address is known", info.Name, ErrUnreachable)
	for round := range c.o.Rounds {
		if round > 0 {
			if late := sleep(ctx, c.o.Pause); late != nil {
				return fmt.Errorf("%w, after %w", late, err)
			}
		}
		queue, asked := c.order(ctx), map[string]bool{}
		var failures []error
		for len(queue) > 0 {
			address := queue[0]
			if queue = queue[1:]; asked[address] {
				continue
			}
			asked[address] = true
			var hint string
			var next verdict
			last := !repeatable || len(queue) == 0 && round == c.o.Rounds-1
			hint, next, err = c.ask(ctx, c.patience(ctx, last), address, id, info, body, accept)
			var hung *hungUp
			switch {
			case err == nil:
				c.prefer(address)
				return nil
			case errors.As(err, &hung):
				c.forget(address, err)
				return nil
			}
			if next != stop {
				c.forget(address, err)
			}
			if next == stop || next == unknown && !repeatable || ctx.Err() != nil {
				return err
			}
			failures = append(failures, err)
			err = together(failures)
			if hint != "" && len(asked) < maxAsked && c.o.Accept(hint) {
				queue = append([]string{hint}, queue...)
			}
		}
	}
	return err
}

// patience is how long one process may take to begin its answer. If the call
// has a deadline, that is at most half of the time that is left, unless no
// other attempt follows: so a silent process leaves time to ask the next one.
func (c *Client) patience(ctx context.Context, last bool) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok || last {
		return c.o.Timeout
	}
	return min(c.o.Timeout, time.Until(deadline)/2)
}

// together joins the failures of all addresses, each once: the last may be down
// while another says what is wrong.
func together(failures []error) error {
	all, said := failures[0], map[string]bool{failures[0].Error(): true}
	for _, err := range failures[1:] {
		if text := err.Error(); !said[text] {
			said[text] = true
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// maxAsked limits how many hints about the leader one call follows.
const maxAsked = 10

// A verdict is what a failure means for the call.
type verdict uint8

const (
	// stop: the call was answered.
	stop verdict = iota
	// elsewhere: the call was not carried out, and another process may do it.
	elsewhere
	// unknown: the call may have been carried out.
	unknown
)

// ask makes one attempt. hint is where to go instead, if the answer says so.
func (c *Client) ask(ctx context.Context, limit time.Duration, address, id string, info *Info, body []byte, accept func(*http.Response) error) (hint string, next verdict, err error) {
	request, watch, err := c.request(ctx, limit, address, id, info, body)
	if err != nil {
		return "", stop, err
	}
	defer watch.stop()
	answer, err := c.o.HTTP.Do(request)
	if err != nil {
		err = watch.explain(err)
		if notSent(err) {
			return "", elsewhere, fmt.Errorf("%s: %w: %w", info.Name, ErrUnreachable, err)
		}
		return "", unknown, fmt.Errorf("%s: %w: %w", info.Name, ErrNoAnswer, err)
	}
	defer answer.Body.Close()
	silence := info.Silence
	if beat, err := time.ParseDuration(answer.Header.Get(HeartbeatHeader)); err == nil && beat > 0 {
		silence = missedBeats * beat
	}
	answer.Body = watch.body(answer.Body, silence)
	if answer.StatusCode == http.StatusOK {
		err = accept(answer)
		var last *final
		if err == nil || errors.As(err, &last) {
			return "", stop, err
		}
		return "", unknown, fmt.Errorf("%s: %w: %w", info.Name, ErrNoAnswer, err)
	}
	problem, ok := c.readProblem(answer)
	err = c.o.Problems.Decode(problem)
	switch {
	case ok && c.o.Problems.Elsewhere != nil:
		if hint, other := c.o.Problems.Elsewhere(err); other {
			return hint, elsewhere, err
		}
		return "", stop, err
	case !ok && answer.StatusCode >= http.StatusBadGateway && answer.StatusCode <= http.StatusGatewayTimeout:
		return "", unknown, err // something on the way
	}
	return "", stop, err
}

func (c *Client) request(ctx context.Context, limit time.Duration, address, id string, info *Info, body []byte) (*http.Request, *watch, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{cancel: cancel, ctx: ctx, limit: limit}
	w.timer = time.AfterFunc(limit, w.late)
	var arguments io.Reader
	if info.Method != http.MethodGet {
		arguments = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, info.Method, address+info.Path, arguments)
	if err != nil {
		w.stop()
		return nil, nil, err
	}
	if arguments != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if id != "" {
		request.Header.Set(RequestIDHeader, id)
	}
	return request, w, nil
}

// readProblem makes a problem of the answer. ok is false if the answer is not
// one of our problems.
func (c *Client) readProblem(answer *http.Response) (p problem.Problem, ok bool) {
	const enough = 1 << 20
	text, _ := io.ReadAll(io.LimitReader(answer.Body, enough))
	if json.Unmarshal(text, &p) == nil && p.Type != "" {
		if p.Status == 0 {
			p.Status = answer.StatusCode
		}
		return p, true
	}
	const shown = 200
	if len(text) > shown {
		text = text[:shown]
	}
	return problem.Problem{Status: answer.StatusCode, Title: answer.Status, Detail: string(bytes.ToValidUTF8(text, nil))}, false
}

// order is the order in which to ask: the leader as far as it is known, then
// all others. Silent ones come last, the latest at the very end, because a call
// may have only the time that one of them takes.
func (c *Client) order(ctx context.Context) []string {
	list := slices.Clone(c.o.Addresses)
	c.mu.Lock()
	first := c.preferred
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(c.silent[a], c.silent[b]) })
	c.mu.Unlock()
	if first == "" && c.o.Find != nil {
		ctx, cancel := context.WithTimeout(ctx, c.patience(ctx, false))
		defer cancel()
		first, _ = c.o.Find(ctx) // the others may know
		if first != "" && !c.o.Accept(first) {
			first = ""
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case first == "":
	case c.silent[first] > 0:
		list = append(list, first)
	default:
		list = append([]string{first}, list...)
	}
	return list
}

func (c *Client) prefer(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.preferred = address
	delete(c.silent, address)
}

// forget notes that a call of an address has failed with err.
func (c *Client) forget(address string, err error) {
	if errors.Is(err, ErrNoAnswer) {
		// The connection may be dead. Then the idle ones usually are, too, and each
		// of them would cost another attempt.
		c.o.HTTP.CloseIdleConnections()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.preferred == address {
		c.preferred = ""
	}
	delete(c.silent, address)
	if errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrUnreachable) {
		c.silences++
		c.silent[address] = c.silences
	}
}

// notSent reports whether no server can have received the request: there was no
// connection, or none to a server that the client trusts.
func notSent(err error) bool {
	var op *net.OpError
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &untrusted)
}

// A watch ends a request that makes no progress for some time.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

// errLate is the reason of a watch for ending a request: a missed deadline.
type errLate struct{ limit time.Duration }

func (e errLate) Error() string { return fmt.Sprintf("nothing came for %v", e.limit) }

// Unwrap makes errors.Is(err, context.DeadlineExceeded) true.
func (e errLate) Unwrap() error { return context.DeadlineExceeded }

func (w *watch) late() { w.cancel(errLate{w.limit}) }

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// explain names the true cause of an error. The reader of the answer gets the
// error as soon as that fails.
func (w *watch) explain(err error) error {
	var late errLate
	if err != nil && errors.As(context.Cause(w.ctx), &late) {
		return late
	}
	return err
}

// body gives each piece of an answer the full time again, or silence. The
// caller's time between the pieces does not count.
func (w *watch) body(r io.ReadCloser, silence time.Duration) io.ReadCloser {
	switch {
	case silence < 0:
		w.timer.Stop()
		return r
	case silence > 0:
		w.limit = silence
		w.timer.Reset(silence)
	}
	return &watchedBody{r, w}
}

type watchedBody struct {
	io.ReadCloser
	watch *watch
}

// Read implements [io.Reader].
func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.timer.Reset(b.watch.limit)
	n, err := b.ReadCloser.Read(p)
	b.watch.timer.Stop()
	if err != io.EOF {
		err = b.watch.explain(err)
	}
	return n, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// decodeAnswer reads a whole answer.
func decodeAnswer(answer *http.Response, limit int64, out any) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	if err != nil {
		return err
	}
	if int64(len(text)) > limit {
		return &final{&problem.TooLargeError{What: "answer", Limit: limit}}
	}
	if err := json.Unmarshal(text, out); err != nil {
		return &final{fmt.Errorf("%w: %w", ErrGarbled, err)}
	}
	return nil
}
