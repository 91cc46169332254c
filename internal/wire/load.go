package wire

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/diegosdk/diego/httpapi/problem"
)

// HTTP/2 carries 250 calls of a connection at a time, and a caller may have many
// connections. Each call takes memory for its arguments, and a place in the queue of
// the store. So one caller, by the name of its certificate, has at most maxCallsEach
// calls at a time, with maxLargeEach times MaxBodyBytes of arguments, or minArguments
// if that is more. A call that lasts counts until it has been admitted. The busiest
// callers have some hundreds of calls, and few large ones.
const (
	maxCallsEach = 1000
	maxLargeEach = 64
	minArguments = 16 << 20
)

// A load is what the calls of a caller take.
type load struct {
	calls int
	bytes int64 // of arguments
}

// admitCall counts a call, or refuses it. It counts until it has been answered or
// settled.
func (s *Server) admitCall(w http.ResponseWriter, r *http.Request, caller string) error {
	answer, is := w.(*answer)
	if !is || r.TLS == nil {
		return nil
	}
	bytes := r.ContentLength
	if bytes < 0 || bytes > s.MaxBodyBytes {
		bytes = s.MaxBodyBytes // of more, nothing is read
	}
	most := max(maxLargeEach*s.MaxBodyBytes, minArguments)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.loads[caller]
	var busy error
	switch {
	case now.calls >= maxCallsEach:
		busy = &problem.TooManyError{What: fmt.Sprintf("calls of %q", caller), Limit: maxCallsEach}
	case now.bytes+bytes > most:
		busy = &problem.TooManyError{What: fmt.Sprintf("MiB of arguments of calls of %q", caller), Limit: int(most >> 20)}
	}
	if busy != nil {
		s.Refused()
		return busy
	}
	s.addLoad(caller, 1, bytes)
	answer.leave = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.addLoad(caller, -1, -bytes)
	}
	return nil
}

// settle stops counting a call that lasts: its arguments have been checked, and other
// bounds hold for it from now on.
func settle(w http.ResponseWriter) {
	if a, is := w.(*answer); is {
		a.leave()
		a.leave = func() {}
	}
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

// whose names calls that share Info.Each.
type whose struct{ calls, caller string }

// takeTurn waits until fewer than info.Each calls of the caller are served, of this kind
// or of those that share the bound. leave is called after the answer.
func (s *Server) takeTurn(ctx context.Context, r *http.Request, info *Info, caller string) (leave func(), err error) {
	if info.Each == 0 || r.TLS == nil {
		return func() {}, nil
	}
	key := whose{cmp.Or(info.Shares, "calls of "+info.Name), caller}
	if leave, err = s.turns.Take(ctx, key, info.Each); err != nil {
		s.Refused()
		return nil, &problem.TooManyError{What: fmt.Sprintf("%s by %q", key.calls, caller), Limit: info.Each}
	}
	return leave, nil
}
