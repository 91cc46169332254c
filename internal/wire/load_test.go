package wire

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

func TestOneCallerHasABoundedNumberOfCallsAndArguments(t *testing.T) {
	for name, test := range map[string]struct {
		most int
		body string
		want string
	}{
		"calls":     {maxCallsEach, `{}`, "1000 calls of "},
		"arguments": {maxLargeEach, `{"text":"` + strings.Repeat("x", 989) + `"}`, "64 large calls of "}, // MaxBodyBytes
	} {
		t.Run(name, func(t *testing.T) {
			s, begun, end := newServer(), make(chan struct{}), make(chan struct{})
			s.Authorize = func(r *http.Request, _ *Info) (Caller, error) { return Caller{Name: r.Header.Get("Name")}, nil }
			mux := http.NewServeMux()
			Register(s, mux, &echo{answer: func(_ context.Context, in words) (words, error) {
				begun <- struct{}{}
				<-end
				return in, nil
			}}, table)
			call := func(caller string) *httptest.ResponseRecorder {
				r := httptest.NewRequest(http.MethodPost, "https://localhost/v1/always", strings.NewReader(test.body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Name", caller)
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, r)
				return w
			}
			var calls sync.WaitGroup
			answered := func(caller string) {
				calls.Go(func() {
					if w := call(caller); w.Code != http.StatusOK {
						t.Errorf("%s got %d %s", caller, w.Code, w.Body)
					}
				})
				<-begun
			}
			for range test.most {
				answered("busy")
			}
			if w := call("busy"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), test.want) || w.Header().Get("Retry-After") == "" {
				t.Errorf("one more got %d %s", w.Code, w.Body)
			}
			answered("other")
			close(end)
			calls.Wait()
			if len(s.loads) > 0 {
				t.Errorf("after the last call, counted are %v", s.loads)
			}
		})
	}
}
