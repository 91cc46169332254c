package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

// from yields the numbers after a position, up to last, and then waits for the
// end of ctx.
func from(ctx context.Context, after, last int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for n := after + 1; n <= last; n++ {
			if !yield(n, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(0, ctx.Err())
	}
}

func resumeAt(_ int64, seen int64) int64 { return seen }

func TestAFeedThatIsCutGoesOnWhereItWas(t *testing.T) {
	var connections atomic.Int64
	e := &echo{events: func(ctx context.Context, after int64) iter.Seq2[int64, error] {
		connections.Add(1)
		return func(yield func(int64, error) bool) {
			for n := after + 1; n <= after+10; n++ {
				if !yield(n, nil) {
					return
				}
			}
			panic(http.ErrAbortHandler)
		}
	}}
	server := serve(t, newServer(), e)
	want := int64(6)
	for n, err := range follow.Follow(t.Context(), newTestClient(server.URL), 5, resumeAt) {
		if err != nil || n != want {
			t.Fatalf("got %d, %v; want %d", n, err, want)
		}
		if want++; want == 200 {
			break
		}
	}
	if connections.Load() != 20 {
		t.Errorf("got %d connections, want 20", connections.Load())
	}
}

func TestAFeedSurvivesARestartOfItsServerWithoutGapOrDuplicate(t *testing.T) {
	e := &echo{events: func(ctx context.Context, after int64) iter.Seq2[int64, error] { return from(ctx, after, after+10) }}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	start := func(l net.Listener) *http.Server {
		mux := http.NewServeMux()
		Register(newServer(), mux, e, table)
		server := &http.Server{Handler: mux}
		go func() { _ = server.Serve(l) }()
		return server
	}
	server := start(listener)
	want := int64(1)
	for n, err := range follow.Follow(t.Context(), newTestClient("http://"+address), 0, resumeAt) {
		if err != nil || n != want {
			t.Fatalf("got %d, %v; want %d", n, err, want)
		}
		if want++; want%10 == 1 {
			if want > 40 {
				break
			}
			_ = server.Close()
			again, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			server = start(again)
		}
	}
	_ = server.Close()
}

func TestAFeedEndsWithAnErrorThatNobodyCanMend(t *testing.T) {
	server := serve(t, newServer(), &echo{events: func(ctx context.Context, after int64) iter.Seq2[int64, error] {
		return func(yield func(int64, error) bool) {
			_ = yield(after+1, nil) && yield(0, errSpoilt) && yield(after+2, nil) && yield(0, invalid("log", "", "a position in it"))
		}
	}})
	items, spoilt := 0, 0
	var last error
	for _, err := range follow.Follow(t.Context(), newTestClient(server.URL), 0, resumeAt) {
		switch {
		case errors.Is(err, errSpoilt):
			spoilt++
		case err != nil:
			last = err
		default:
			items++
		}
	}
	if items != 2 || spoilt != 1 || !errors.Is(last, executor.ErrInvalid) {
		t.Errorf("got %d items, %d spoilt ones and then %v", items, spoilt, last)
	}
	// One that is refused at once ends at once.
	c := newTestClient(server.URL)
	bad := *follow
	bad.Query = func(int64) url.Values { return url.Values{"after": {"x"}} }
	for _, err := range bad.Follow(t.Context(), c, 0, resumeAt) {
		last = err
	}
	if !errors.Is(last, executor.ErrInvalid) {
		t.Errorf("got %v", last)
	}
}

// A store that is down for a while ends no subscription.
func TestAFeedOutlastsAServerThatIsBroken(t *testing.T) {
	var opened atomic.Int64
	broken := errors.New("the store is down")
	server := serve(t, newServer(), &echo{events: func(ctx context.Context, after int64) iter.Seq2[int64, error] {
		if n := opened.Add(1); n%2 == 1 {
			return func(yield func(int64, error) bool) { _ = yield(after+1, nil) && yield(0, broken) }
		}
		return func(yield func(int64, error) bool) { yield(0, broken) }
	}})
	want := int64(1)
	for n, err := range follow.Follow(t.Context(), newTestClient(server.URL), 0, resumeAt) {
		if n != want || err != nil {
			t.Fatalf("got %d, %v; want %d", n, err, want)
		}
		if want++; want == 5 {
			break
		}
	}
}

func TestAFeedIsGivenUpWhenNobodyAnswersForLong(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c := newTestClient(gone.URL)
	c.o.Patience = 20 * time.Millisecond
	var last error
	for _, err := range follow.Follow(t.Context(), c, 0, resumeAt) {
		last = err
	}
	if !errors.Is(last, ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range follow.Follow(ctx, c, 0, resumeAt) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("got %v, want the context's error", last)
	}
}

func TestAQuietFeedIsAliveAndASilentOneIsCut(t *testing.T) {
	s := newServer()
	s.Heartbeat = 5 * time.Millisecond
	var opened atomic.Int64
	server := serve(t, s, &echo{events: func(ctx context.Context, after int64) iter.Seq2[int64, error] {
		opened.Add(1)
		return from(ctx, after, after)
	}})
	answer, err := http.Get(server.URL + "/v1/follow?after=7")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text := make([]byte, len("id: 7\n\n:\n\n:\n\n"))
	if _, err := io.ReadFull(answer.Body, text); err != nil || string(text) != "id: 7\n\n:\n\n:\n\n" {
		t.Errorf("got %q, %v; want the position and heartbeats", text, err)
	}

	if got := answer.Header.Get(HeartbeatHeader); got != "5ms" {
		t.Errorf("the answer says that a heartbeat comes every %q, want 5ms", got)
	}
}

func TestAFeedWhoseServerHangsGoesOnWithAnother(t *testing.T) {
	for name, test := range map[string]struct {
		beat    string
		silence time.Duration
	}{
		"that says how often it beats":  {"10ms", time.Hour},
		"of a version that does not so": {"", 30 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			var opened atomic.Int64
			hung := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				opened.Add(1)
				if test.beat != "" {
					w.Header().Set(HeartbeatHeader, test.beat)
				}
				_, _ = io.WriteString(w, "id: 8\nevent: n\ndata: 8\n\n")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}))
			t.Cleanup(hung.Close)
			sound := serve(t, newServer(), &echo{events: func(ctx context.Context, after int64) iter.Seq2[int64, error] {
				return from(ctx, after, after+1)
			}})
			impatient := *follow
			impatient.Silence = test.silence
			want := int64(8)
			for n, err := range impatient.Follow(t.Context(), newTestClient(hung.URL, sound.URL), 7, resumeAt) {
				if n != want || err != nil {
					t.Fatalf("got %d, %v; want %d", n, err, want)
				}
				if want++; want == 10 {
					break
				}
			}
			if opened.Load() != 1 {
				t.Errorf("the server that hangs was asked %d times, want once", opened.Load())
			}
		})
	}
}

func TestTheTimeThatAReaderTakesIsNotSilence(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := &watch{ctx: ctx, cancel: cancel}
		w.timer = time.AfterFunc(time.Hour, w.late)
		body := w.body(io.NopCloser(strings.NewReader("12")), 20*time.Millisecond)
		for range 2 {
			if _, err := body.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(60 * time.Millisecond) // three times as long as nothing may come
			if ctx.Err() != nil {
				t.Fatalf("the answer was given up: %v", context.Cause(ctx))
			}
		}
	})
}

// The race detector sees if the first heartbeat does not wait for its writer.
func TestAHeartbeatMayBeDueAtOnce(t *testing.T) {
	s := newServer()
	s.Heartbeat, s.WriteTimeout = time.Nanosecond, time.Minute
	for range 100 {
		f := newFeedWriter(s, httptest.NewRecorder(), func() {}, func() int64 { return 1 })
		f.send(2, []byte("id: 2\n\n"))
		f.finish()
	}
}

func TestAHeartbeatDoesNotComeBetweenThePartsOfAnEvent(t *testing.T) {
	s := newServer()
	s.Heartbeat, s.WriteTimeout = time.Nanosecond, time.Minute
	w := httptest.NewRecorder()
	f := newFeedWriter(s, w, func() {}, func() int64 { return 1 })
	const events = 1000
	for range events {
		f.send(2, []byte("id: 2\ndata: "), []byte("3"), []byte("\n\n"))
	}
	f.finish()
	got := 0
	for text := range strings.SplitSeq(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
		switch text {
		case "id: 2\ndata: 3":
			got++
		case ":", "id: 1":
		default:
			t.Fatalf("got %q", text)
		}
	}
	if got != events {
		t.Errorf("got %d events, want %d", got, events)
	}
}

func TestASlowReaderOfAFeedIsCutOffAndHoldsNobodyUp(t *testing.T) {
	s := newServer()
	s.WriteTimeout = 50 * time.Millisecond
	stopped := make(chan struct{})
	server := serve(t, s, &echo{events: func(ctx context.Context, after int64) iter.Seq2[int64, error] {
		return func(yield func(int64, error) bool) {
			defer close(stopped)
			for n := after + 1; yield(n, nil); n++ {
			}
		}
	}})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /v1/follow?after=0 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Error("the server still sends to somebody who does not read")
	}
}

func TestAFeedThatWasQuietForLongIsResumedAllTheSame(t *testing.T) {
	var last atomic.Int64
	e := &echo{events: func(ctx context.Context, after int64) iter.Seq2[int64, error] { return from(ctx, after, last.Load()) }}
	s := newServer()
	s.Heartbeat = 5 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	start := func(l net.Listener) *http.Server {
		mux := http.NewServeMux()
		Register(s, mux, e, table)
		server := &http.Server{Handler: mux}
		go func() { _ = server.Serve(l) }()
		return server
	}
	server := start(listener)
	c := newTestClient("http://" + listener.Addr().String())
	c.o.Patience, c.o.Rounds = time.Second, 1
	failures := make(chan struct{}, 1000)
	c.o.HTTP.Transport = noticing{c.o.HTTP.Transport, failures}
	restarted := make(chan *http.Server, 1)
	go func() {
		defer close(restarted)
		// Longer than the client's patience there is nothing to say.
		<-time.After(c.o.Patience + 200*time.Millisecond)
		_ = server.Close()
		for range 3 {
			<-failures
		}
		last.Store(8)
		again, err := net.Listen("tcp", listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		restarted <- start(again)
	}()
	for n, err := range follow.Follow(t.Context(), c, 7, resumeAt) {
		if n != 8 || err != nil {
			t.Errorf("got %d, %v; want it to go on", n, err)
		}
		break
	}
	if again := <-restarted; again != nil {
		_ = again.Close()
	}
}

func TestAHeartbeatTellsWhereToGoOnAndNeverGoesBack(t *testing.T) {
	s := newServer()
	s.Heartbeat = 5 * time.Millisecond
	e := &echo{}
	e.events = func(ctx context.Context, after int64) iter.Seq2[int64, error] {
		return func(yield func(int64, error) bool) {
			_ = yield(9, nil) && yield(0, errSpoilt)
			<-ctx.Done()
		}
	}
	server := serve(t, s, e)
	answer, err := http.Get(server.URL + "/v1/follow?after=7")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() (text string) {
		for lines.Scan() && lines.Text() != "" {
			text += lines.Text() + "|"
		}
		return text
	}
	event := func() string { // a slow host has heartbeats between events
		for {
			if got := next(); got != ":|" {
				return got
			}
		}
	}
	for _, want := range []string{"id: 7|", "id: 9|event: number|data: 9|"} {
		if got := event(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := event(); !strings.HasPrefix(got, "event: problem|") {
		t.Errorf("got %q, want a problem", got)
	}
	for reached, want := range map[int64]string{8: ":|", 9: ":|"} {
		e.reached.Store(reached)
		if got := next(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	e.reached.Store(12)
	if got := event(); got != "id: 12|" {
		t.Errorf("got %q, want a heartbeat with the position 12", got)
	}
}

// A noticing transport tells of requests that fail.
type noticing struct {
	http.RoundTripper
	failures chan struct{}
}

func (n noticing) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := n.RoundTripper.RoundTrip(r)
	if err != nil {
		n.failures <- struct{}{}
	}
	return answer, err
}

func TestOneFeedTooManyIsRefusedUntilAnotherEnds(t *testing.T) {
	var mu sync.Mutex
	var refused int
	s := newServer()
	s.MaxFeeds = 1
	changes := make(chan int, 100)
	s.Feeds = func(open int, no bool) {
		mu.Lock()
		defer mu.Unlock()
		if no {
			refused++
			return
		}
		changes <- open
	}
	server := serve(t, s, &echo{events: func(ctx context.Context, after int64) iter.Seq2[int64, error] { return from(ctx, after, after+1) }})
	ctx, end := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		for _, err := range follow.Follow(ctx, newTestClient(server.URL), 0, resumeAt) {
			first <- err
		}
	}()
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(server.URL + follow.Path + "?after=0")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "5" || !strings.Contains(string(body), "1 subscriptions or logs at a time") {
		t.Errorf("got %d, Retry-After %q: %s, %v", answer.StatusCode, answer.Header.Get("Retry-After"), body, err)
	}
	end()
	for open := range changes {
		if open == 0 {
			break
		}
	}
	for _, err := range follow.Follow(t.Context(), newTestClient(server.URL), 0, resumeAt) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if mu.Lock(); refused != 1 {
		t.Errorf("%d were refused, want 1", refused)
	}
	mu.Unlock()
}
