package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/storage"
)

// A Server is what all calls of a handler share. All fields but MaxFeeds,
// MaxFeedsEach and Answered are required.
type Server struct {
	// Authorize says who asks. It fails if that caller may not make the call.
	Authorize func(r *http.Request, info *Info) (Caller, error)
	Problems  *Problems
	// MaxBodyBytes bounds arguments.
	MaxBodyBytes int64
	// Timeout bounds a call, its arguments' arrival included, and each piece of
	// a list.
	Timeout time.Duration
	// WriteTimeout bounds how long a reader may take for what was sent to it.
	WriteTimeout time.Duration
	// Heartbeat is how often a feed says that it is alive.
	Heartbeat time.Duration
	// MaxFeeds is how many feeds and long lists may be open at a time; 0 means any
	// number.
	MaxFeeds int
	// MaxFeedsEach is how many of them one caller may have, by the name of its
	// certificate; 0 means any number. It does not hold for callers without a
	// certificate, because they cannot be told apart.
	MaxFeedsEach int
	// Feeds is called with the number of those that are open whenever it changes,
	// and when one is refused.
	Feeds func(open int, refused bool)
	// Refused is called when a call is refused because its caller has too many.
	Refused func()
	// ListCut is called when a list is cut off because its reader is slow and so are
	// others.
	ListCut func()
	// Answered is called after each request for a call, with the status of the
	// answer and how long it took. Nil means that nobody wants to know.
	Answered func(info *Info, status int, took time.Duration)
	Logger   *slog.Logger

	mu     sync.Mutex
	open   int            // feeds
	openOf map[string]int // those of callers with a certificate
	loads  map[string]load
	slow   []*listWriter // the one that has been slow longest first

	turns Turns[whose]
}

// A Caller is who makes a call. Of one that is refused, only Name is set.
type Caller struct {
	// Name is "" if the certificate does not name it.
	Name string
	// SpeaksFor fails if the caller may not speak for a cell. It is nil if nobody
	// needs to ask.
	SpeaksFor func(cellID string) error
	// Domains fails if the call may not be about what belongs to a domain. It is
	// nil for a caller with a role that holds for every domain.
	Domains func(domain string) error
	// Locks fails if the caller may not use the lock of that name. It is nil for a
	// caller who may use all.
	Locks func(name string) error
}

// admitFeed counts a feed or a long list until leave is called, or refuses it.
func (s *Server) admitFeed(r *http.Request, caller string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := r.TLS != nil
	switch {
	case s.MaxFeeds > 0 && s.open >= s.MaxFeeds:
		err = &problem.TooManyError{What: "subscriptions or logs", Limit: s.MaxFeeds}
	case known && s.MaxFeedsEach > 0 && s.openOf[caller] >= s.MaxFeedsEach:
		err = &problem.TooManyError{What: fmt.Sprintf("subscriptions or logs of %q", caller), Limit: s.MaxFeedsEach}
	}
	if err != nil {
		s.Feeds(s.open, true)
		return nil, err
	}
	s.countFeeds(caller, known, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.countFeeds(caller, known, -1)
	}, nil
}

func (s *Server) countFeeds(caller string, known bool, n int) {
	if known {
		if s.openOf == nil {
			s.openOf = map[string]int{}
		}
		if s.openOf[caller] += n; s.openOf[caller] == 0 {
			delete(s.openOf, caller)
		}
	}
	s.open += n
	s.Feeds(s.open, false)
}

// Register adds the calls of one API to mux.
func Register[A any](s *Server, mux *http.ServeMux, api A, table []Endpoint[A]) {
	for _, e := range table {
		info := e.About()
		mux.HandleFunc(info.Path, func(w http.ResponseWriter, r *http.Request) {
			answer := &answer{ResponseWriter: w, status: http.StatusOK, leave: func() {}}
			defer func() { answer.leave() }()
			if w = answer; s.Answered != nil {
				began := time.Now()
				defer func() { s.Answered(info, answer.status, time.Since(began)) }()
			}
			if r.Method != info.Method {
				w.Header().Set("Allow", info.Method)
				s.fail(w, r, &problem.MethodError{Method: r.Method, Path: info.Path, Want: info.Method})
				return
			}
			e.serve(s, api, w, r)
		})
	}
}

// An answer knows its status. leave is called at its end. cut says that nobody waits
// for the rest of the request: the deadline for reading it stays.
type answer struct {
	http.ResponseWriter
	status int
	cut    bool
	leave  func()
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController through.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// NotFound answers requests for what there is not.
func (s *Server) NotFound(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, &problem.PathError{Path: r.URL.Path})
}

// enter says who asks, and marks the call with its request id.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, info *Info) (ctx context.Context, caller Caller, err error) {
	id := r.Header.Get(RequestIDHeader)
	if id != "" {
		if !fitsHeader(id) {
			var v executor.Validator
			v.Check(false, RequestIDHeader, id, fmt.Sprintf("1 to %d printable ASCII characters", MaxRequestIDBytes))
			return nil, Caller{}, v.Err()
		}
		w.Header().Set(RequestIDHeader, id)
	}
	caller, err = s.Authorize(r, info)
	if err == nil || caller.Name != "" { // a session reads the arguments of a refused caller, too
		if busy := s.admitCall(w, r, caller.Name); busy != nil {
			err = busy
		}
	}
	ctx = r.Context()
	if id != "" {
		ctx = storage.WithRequestID(ctx, ownID(caller.Name, id))
	}
	if caller.Name != "" {
		ctx = storage.WithCaller(ctx, caller.Name)
	}
	return ctx, caller, err
}

// decode reads the arguments: one JSON object, without members that nobody
// knows.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, in any) error {
	if _, none := in.(*None); none && r.ContentLength == 0 {
		return nil
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		return invalid("Content-Type", kind, "application/json")
	}
	// Who sends slowly is not waited for longer than a call may take.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(soon(s.Timeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.MaxBodyBytes))
	var large *http.MaxBytesError
	if err != nil {
		// Nobody waits for the rest: the deadline stays, and the connection ends.
		w.Header().Set("Connection", "close")
		if a, is := w.(*answer); is {
			a.cut = true
		}
	}
	switch {
	case errors.As(err, &large):
		return &problem.TooLargeError{What: RequestBody, Limit: large.Limit}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the request body has not arrived in %v: %w", s.Timeout, context.DeadlineExceeded)
	case err != nil: // malformed, or cut off
		return invalid("", err.Error(), "a request body that comes whole")
	}
	_ = control.SetReadDeadline(time.Time{})
	return decodeStrictly(body, in)
}

// fail answers with a problem.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := s.Problems.Encode(err)
	p.RequestID = w.Header().Get(RequestIDHeader)
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		level := slog.LevelWarn
		if _, elsewhere := s.Problems.Elsewhere(err); elsewhere {
			level = slog.LevelDebug // clients that look for the leader ask around
		}
		s.Logger.Log(r.Context(), level, "a call failed", "path", r.URL.Path, "status", p.Status, "request_id", p.RequestID, "err", err)
	}
	var many *problem.TooManyError
	switch {
	case errors.As(err, &many):
		w.Header().Set("Retry-After", "5") // it takes somebody else to go
	case p.Status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte("{}") // a Problem is text and numbers: it can be written
	}
	s.write(w, p.Status, "application/problem+json", append(body, '\n'))
}

// WriteJSON answers a request that is not a call.
func (s *Server) WriteJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte("{}")
	}
	s.write(w, status, "application/json", append(body, '\n'))
}

// write sends a whole answer. Its deadline does not outlive it: the connection
// may carry other requests. What has not come of this one by then never does;
// the server, which reads it to the end, takes the deadline away before the
// next request.
func (s *Server) write(w http.ResponseWriter, status int, kind string, body []byte) {
	control := http.NewResponseController(w)
	h := w.Header()
	if a, is := w.(*answer); !is || !a.cut {
		_ = control.SetReadDeadline(soon(s.WriteTimeout))
	}
	_ = control.SetWriteDeadline(soon(s.WriteTimeout))
	h.Set("Content-Type", kind)
	h.Set("Content-Length", fmt.Sprint(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{})
}
