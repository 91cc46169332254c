package wire

import (
	"fmt"
	"net/http"

	"github.com/diegosdk/diego/httpapi/problem"
)

// HTTP/2 carries 250 calls of a connection at a time, and a caller may have many
// connections. Each call takes memory for its arguments, and a place in the queue of
// the store. So one caller, by the name of its certificate, has at most maxCallsEach
// calls at a time, feeds aside, with at most maxLargeEach times MaxBodyBytes of
// arguments. The busiest callers have some hundreds of calls, and few large ones.
const (
	maxCallsEach = 1000
	maxLargeEach = 64
)

// A load is what the calls of a caller take.
type load struct {
	calls int
	bytes int64 // of arguments
}

// admitCall counts a call until it has been answered, or refuses it.
func (s *Server) admitCall(w http.ResponseWriter, r *http.Request, caller string) error {
	answer, is := w.(*answer)
	if !is || r.TLS == nil {
		return nil
	}
	bytes := r.ContentLength
	if bytes < 0 || bytes > s.MaxBodyBytes {
		bytes = s.MaxBodyBytes // of more, nothing is read
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.loads[caller]
	switch {
	case now.calls >= maxCallsEach:
		return &problem.TooManyError{What: fmt.Sprintf("calls of %q", caller), Limit: maxCallsEach}
	case now.bytes+bytes > maxLargeEach*s.MaxBodyBytes:
		return &problem.TooManyError{What: fmt.Sprintf("large calls of %q", caller), Limit: maxLargeEach}
	}
	s.addLoad(caller, 1, bytes)
	answer.leave = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.addLoad(caller, -1, -bytes)
	}
	return nil
}

// addLoad is called with the lock.
func (s *Server) addLoad(caller string, calls int, bytes int64) {
	if s.loads == nil {
		s.loads = map[string]load{}
	}
	now := s.loads[caller]
	now.calls += calls
	now.bytes += bytes
	if s.loads[caller] = now; now == (load{}) {
		delete(s.loads, caller)
	}
}
