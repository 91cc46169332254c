package wire

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestOneCallerHasABoundedNumberOfCallsAndArguments(t *testing.T) {
	for name, test := range map[string]struct {
		most int
		body string
		want string
	}{
		"calls":     {maxCallsEach, `{}`, "1000 calls of "},
		"arguments": {maxLargeEach, `{"text":"` + strings.Repeat("x", 256<<10-11) + `"}`, "16 MiB of arguments of calls of "}, // MaxBodyBytes
	} {
		t.Run(name, func(t *testing.T) {
			s, begun, end := newServer(), make(chan struct{}), make(chan struct{})
			s.MaxBodyBytes = 256 << 10
			refused := 0
			s.Refused = func() { refused++ }
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
			if refused != 1 {
				t.Errorf("%d calls count as refused", refused)
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

// A slowBody says when it is read, and then keeps its reader waiting.
type slowBody struct {
	reading chan<- struct{} // nil after the first read
	end     <-chan struct{}
	text    io.Reader
}

func (b *slowBody) Read(to []byte) (int, error) {
	if b.reading != nil {
		b.reading <- struct{}{}
		b.reading = nil
	}
	<-b.end
	return b.text.Read(to)
}

func TestArgumentsThatArriveAreCountedForEveryKindOfCall(t *testing.T) {
	for _, path := range []string{"/v1/always", "/v1/count", "/v1/tail", "/v1/talk", "/v1/refused"} {
		t.Run(path, func(t *testing.T) {
			s := newServer()
			s.MaxBodyBytes = 256 << 10
			s.Authorize = func(_ *http.Request, info *Info) (c Caller, err error) {
				if info.Name == "refused" {
					err = errSpoilt
				}
				return Caller{Name: "busy"}, err
			}
			e := &echo{answer: repeatAfter, numbers: func(context.Context) iter.Seq2[int, error] {
				return func(func(int, error) bool) {
					if s.mu.Lock(); path == "/v1/tail" && s.loads["busy"].calls >= maxLargeEach {
						t.Error("a call that lasts is still counted")
					}
					s.mu.Unlock()
				}
			}}
			var told atomic.Int64
			talk := func(name string) *Session[*echo, words, words] {
				return &Session[*echo, words, words]{
					Info:    Info{Name: name, Method: http.MethodPost, Path: "/v1/" + name, Long: true},
					Refused: func(context.Context, *echo, words, error) { told.Add(1) },
				}
			}
			mux := http.NewServeMux()
			Register(s, mux, e, append(slices.Clone(table), talk("talk"), talk("refused")))
			reading, end := make(chan struct{}), make(chan struct{})
			call := func(body io.Reader) *httptest.ResponseRecorder {
				r := httptest.NewRequest(http.MethodPost, "https://localhost"+path, body)
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, r)
				return w
			}
			var calls sync.WaitGroup
			for range maxLargeEach { // of unknown length
				calls.Go(func() { call(&slowBody{reading, end, strings.NewReader("{}")}) })
				<-reading
			}
			before := told.Load()
			more := &slowBody{reading: reading, end: end, text: strings.NewReader("{}")}
			done := make(chan *httptest.ResponseRecorder, 1)
			go func() { done <- call(more) }()
			select {
			case w := <-done:
				if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "16 MiB of arguments of calls of") {
					t.Errorf("one more got %d %s", w.Code, w.Body)
				}
			case <-reading:
				t.Error("one more is read")
			}
			if told.Load() != before {
				t.Error("it is told as a refusal of the caller's rights")
			}
			close(end)
			calls.Wait()
			if len(s.loads) > 0 {
				t.Errorf("after the last call, counted are %v", s.loads)
			}
		})
	}
}

func TestCallersWithShortArgumentsHaveAsManyCallsAsOthers(t *testing.T) {
	s := newServer()
	s.MaxBodyBytes = 1 << 10
	r := httptest.NewRequest(http.MethodPost, "https://localhost", strings.NewReader(strings.Repeat("x", 1<<10)))
	for range maxCallsEach {
		if err := s.admitCall(&answer{}, r, "busy"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneCallerHasFewLargeAnswersAtATimeAndTheOthersWait(t *testing.T) {
	s := newServer()
	s.Authorize = func(r *http.Request, _ *Info) (Caller, error) { return Caller{Name: r.Header.Get("Name")}, nil }
	begun, end := make(chan string, 100), make(chan struct{})
	large := say("large", Always)
	large.Each = 2
	mux := http.NewServeMux()
	Register(s, mux, &echo{answer: func(_ context.Context, in words) (words, error) {
		begun <- in.Text
		<-end
		return in, nil
	}}, []Endpoint[*echo]{large})
	var calls sync.WaitGroup
	ask := func(ctx context.Context, caller string, want int) {
		r := httptest.NewRequest(http.MethodPost, "https://localhost/v1/large", strings.NewReader(`{"text":"`+caller+`"}`)).WithContext(ctx)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Name", caller)
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s got %d %s", caller, w.Code, w.Body)
		}
	}
	call := func(ctx context.Context, caller string, want int) { calls.Go(func() { ask(ctx, caller, want) }) }
	for range 2 {
		call(t.Context(), "busy", http.StatusOK)
		<-begun
	}
	for range 20 {
		call(t.Context(), "busy", http.StatusOK)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	ask(impatient, "busy", http.StatusServiceUnavailable)
	call(t.Context(), "other", http.StatusOK)
	for who := range begun {
		if who == "other" {
			break
		}
		t.Errorf("a third call of %s is served", who)
	}
	close(end)
	calls.Wait()
	if len(begun) != 20 || len(s.turns.taken) > 0 {
		t.Errorf("%d of 20 that waited were served, and left are %v", len(begun), s.turns.taken)
	}
}
