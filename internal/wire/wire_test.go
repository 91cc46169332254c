package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/storage"
)

// An echo is the API of these tests.
type echo struct {
	calls   atomic.Int64
	answer  func(ctx context.Context, in words) (words, error)
	numbers func(ctx context.Context) iter.Seq2[int, error]
	// events are the feed: those after a position, until one is negative.
	events  func(ctx context.Context, after int64) iter.Seq2[int64, error]
	reached atomic.Int64
}

type words struct {
	Text   string            `json:"text"`
	Inside *words            `json:"inside,omitempty"`
	List   []words           `json:"list,omitempty"`
	Map    map[string]*words `json:"map,omitempty"`
}

var errOther = errors.New("this one does not lead")
var errSpoilt = errors.New("one item is spoilt")

var testProblems = &Problems{
	Kinds: append([]Kind{
		Plain(Kind{Name: "other", Status: http.StatusServiceUnavailable, Title: "other"}, errOther),
		Plain(Kind{Name: "spoilt", Status: http.StatusInternalServerError, Title: "spoilt", InPlace: true}, errSpoilt),
		Same(Kind{Name: "validation", Status: http.StatusBadRequest, Title: "invalid"}, func() *executor.ValidationError { return new(executor.ValidationError) }),
		Plain(Kind{Name: "late", Status: http.StatusGatewayTimeout, Title: "late"}, context.DeadlineExceeded),
	}, OwnKinds()...),
	Elsewhere: func(err error) (string, bool) { return "", errors.Is(err, errOther) },
}

func info(name string, repeat Repeat) Info {
	return Info{Name: name, Method: http.MethodPost, Path: "/v1/" + name, Repeat: repeat}
}

func say(name string, repeat Repeat) *Call[*echo, words, words] {
	return &Call[*echo, words, words]{Info: info(name, repeat), Serve: func(ctx context.Context, e *echo, in words) (words, error) {
		e.calls.Add(1)
		return e.answer(ctx, in)
	}}
}

var (
	always = say("always", Always)
	once   = say("once", Once)
	never  = say("never", Never)
	count  = &List[*echo, None, int]{Info: info("count", Always), Serve: func(ctx context.Context, e *echo, _ None) iter.Seq2[int, error] {
		return e.numbers(ctx)
	}}
	tail   = &List[*echo, None, int]{Info: Info{Name: "tail", Method: http.MethodPost, Path: "/v1/tail", Repeat: Always, Long: true, Silence: -1}, Serve: count.Serve}
	follow = &Feed[*echo, int64, int64]{
		Info:  Info{Name: "follow", Method: http.MethodGet, Path: "/v1/follow", Long: true, Silence: time.Minute},
		Query: func(after int64) url.Values { return url.Values{"after": {fmt.Sprint(after)}} },
		Parse: func(q url.Values, last string) (int64, error) {
			if last == "" {
				last = q.Get("after")
			}
			n, err := strconv.ParseInt(last, 10, 64)
			if err != nil {
				return 0, invalid("after", last, "a number")
			}
			return n, nil
		},
		Open: func(ctx context.Context, e *echo, after int64) (iter.Seq2[int64, error], func() int64, error) {
			return e.events(ctx, after), func() int64 { return max(after, e.reached.Load()) }, nil
		},
		Position: func(n *int64) int64 { return *n },
		Kind:     func(*int64) string { return "number" },
	}
	table = []Endpoint[*echo]{always, once, never, count, tail, follow}
)

func newServer() *Server {
	return &Server{
		Authorize: func(*http.Request, *Info) (Caller, error) { return Caller{}, nil },
		Problems:  testProblems, MaxBodyBytes: 1000, Timeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		Heartbeat: time.Hour, Feeds: func(int, bool) {}, Refused: func() {}, ListCut: func() {}, Logger: slog.New(slog.DiscardHandler),
	}
}

// serve answers for an API until the test ends.
func serve(t *testing.T, s *Server, e *echo) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	Register(s, mux, e, table)
	mux.HandleFunc("/", s.NotFound)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func newTestClient(addresses ...string) *Client {
	return NewClient(ClientOptions{
		Addresses: addresses, HTTP: &http.Client{Transport: &http.Transport{}}, Timeout: 30 * time.Second,
		Rounds: 3, Pause: time.Millisecond, Patience: 30 * time.Second, MaxAnswerBytes: 1 << 20, Problems: testProblems,
		Accept: func(string) bool { return true },
	})
}

func repeatAfter(_ context.Context, in words) (words, error) { return in, nil }

func TestWhatIsSaidComesBack(t *testing.T) {
	server := serve(t, newServer(), &echo{answer: repeatAfter})
	got, err := always.Do(t.Context(), newTestClient(server.URL), words{Text: "hello", List: []words{{Text: "x"}}})
	if err != nil || got.Text != "hello" || got.List[0].Text != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnOversizedBodyIsRefusedWithTheLimit(t *testing.T) {
	e := &echo{answer: repeatAfter}
	server := serve(t, newServer(), e)
	_, err := always.Do(t.Context(), newTestClient(server.URL), words{Text: strings.Repeat("x", 2000)})
	var large *problem.TooLargeError
	if !errors.As(err, &large) || large.Limit != 1000 || !strings.Contains(err.Error(), "1000") {
		t.Errorf("got %v, want the limit of 1000 bytes", err)
	}
	if e.calls.Load() != 0 {
		t.Error("it was carried out")
	}
	answer, err := http.Post(server.URL+"/v1/always", "application/json", strings.NewReader(`{"text":"`+strings.Repeat("x", 2000)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d, want 413", answer.StatusCode)
	}
}

func TestABodyThatDoesNotComeWholeIsTheCallersFault(t *testing.T) {
	server := serve(t, newServer(), &echo{answer: repeatAfter})
	for name, body := range map[string]string{
		"no chunk":       "zz\r\n",
		"a long chunk":   "2\r\nabcd\r\n0\r\n\r\n",
		"an end too far": "fffffffffffffffff\r\n",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "POST /v1/always HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "want a request body that comes whole") {
			t.Errorf("%s: %s %s, %v", name, answer.Status, text, err)
		}
	}
}

func TestAnAnswerBeyondTheLimitIsRefused(t *testing.T) {
	server := serve(t, newServer(), &echo{answer: func(context.Context, words) (words, error) {
		return words{Text: strings.Repeat("x", 2<<20)}, nil
	}, numbers: func(context.Context) iter.Seq2[int, error] {
		return func(func(int, error) bool) {}
	}})
	var large *problem.TooLargeError
	if _, err := always.Do(t.Context(), newTestClient(server.URL), words{}); !errors.As(err, &large) {
		t.Errorf("got %v, want a problem.TooLargeError", err)
	}
}

func TestArgumentsThatAreWrongAreNamed(t *testing.T) {
	e := &echo{answer: repeatAfter}
	server := serve(t, newServer(), e)
	for body, want := range map[string]string{
		`{"text":"a","txet":"b"}`:                       "txet: want a known member",
		`{"inside":{"list":[{"text":""},{"color":1}]}}`: "inside.list[1].color: want a known member",
		`{"map":{"a":{"b":{}}}}`:                        "map.a.b: want a known member",
		`{"Text":"a"}`:                                  "Text: want a known member",
		`{"text":3}`:                                    "text: number: want a string",
		`{"text":`:                                      "want a whole JSON value",
		`{"text":"a"} {}`:                               "want one JSON value and nothing after it",
		`{text}`:                                        "want JSON",
		``:                                              "want a whole JSON value",
	} {
		answer, err := http.Post(server.URL+"/v1/always", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %d %s, want %q", body, answer.StatusCode, text, want)
		}
	}
	for name, request := range map[string]struct{ method, path, kind, id string }{
		"another method":       {"PUT", "/v1/always", "application/json", ""},
		"another path":         {"POST", "/v2/always", "application/json", ""},
		"another type":         {"POST", "/v1/always", "text/plain", ""},
		"a long request id":    {"POST", "/v1/always", "application/json", strings.Repeat("x", 256)},
		"a strange request id": {"POST", "/v1/always", "application/json", "\u00e9"},
	} {
		r, err := http.NewRequest(request.method, server.URL+request.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", request.kind)
		if request.id != "" {
			r.Header.Set(RequestIDHeader, request.id)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode < 400 || answer.StatusCode > 415 || answer.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got status %d", name, answer.StatusCode)
		}
	}
	if e.calls.Load() != 0 {
		t.Error("something was carried out")
	}
}

func FuzzDecodeStrictly(f *testing.F) {
	f.Add([]byte(`{"text":"a","inside":{"list":[{"text":"b"}]},"map":{"x":{}}}`))
	f.Add([]byte(`{"txet":"a"}`))
	f.Add([]byte(`[1] 2`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var in words
		if err := decodeStrictly(text, &in); err != nil && !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("%q: got %v, which is not a validation error", text, err)
		}
	})
}

func TestACallIsRepeatedWhereThatIsSafeAndUnderOneID(t *testing.T) {
	for _, test := range []struct {
		call  *Call[*echo, words, words]
		id    string
		times int64
		err   error
	}{
		{always, "", 3, nil}, {always, "mine", 3, nil},
		{once, "", 3, nil}, {once, "mine", 3, nil},
		{never, "", 1, ErrNoAnswer},
	} {
		t.Run(test.call.Name+" "+test.id, func(t *testing.T) {
			var mu sync.Mutex
			ids := map[string]int{}
			e := &echo{}
			e.answer = func(ctx context.Context, in words) (words, error) {
				mu.Lock()
				ids[storage.RequestID(ctx)]++
				mu.Unlock()
				if e.calls.Load() < 3 {
					panic(http.ErrAbortHandler) // it was carried out, and the answer gets lost
				}
				return in, nil
			}
			server := serve(t, newServer(), e)
			ctx := t.Context()
			if test.id != "" {
				ctx = storage.WithRequestID(ctx, test.id)
			}
			_, err := test.call.Do(ctx, newTestClient(server.URL), words{})
			if !errors.Is(err, test.err) || e.calls.Load() != test.times {
				t.Errorf("got %v after %d calls, want %v after %d", err, e.calls.Load(), test.err, test.times)
			}
			if test.call == once && (len(ids) != 1 || ids[""] > 0) || test.id != "" && ids[test.id] != 3 {
				t.Errorf("got request ids %v, want one", ids)
			}
		})
	}
}

func TestAClientFindsWhoeverCarriesACallOut(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>no</html>", http.StatusBadGateway)
	}))
	defer gateway.Close()
	standby := &echo{answer: func(context.Context, words) (words, error) { return words{}, errOther }}
	leader := &echo{answer: repeatAfter}
	c := newTestClient(gone.URL, gateway.URL, serve(t, newServer(), standby).URL, serve(t, newServer(), leader).URL)
	for range 3 {
		if got, err := once.Do(t.Context(), c, words{Text: "x"}); err != nil || got.Text != "x" {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if standby.calls.Load() != 1 || leader.calls.Load() != 3 {
		t.Errorf("the standby was asked %d times, want once; the leader %d times, want 3", standby.calls.Load(), leader.calls.Load())
	}
	// A call that must not be made twice goes on past those that had no part in it.
	if _, err := never.Do(t.Context(), newTestClient(gone.URL, c.o.Addresses[2], c.o.Addresses[3]), words{}); err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := never.Do(t.Context(), newTestClient(gateway.URL, c.o.Addresses[3]), words{}); err == nil {
		t.Error("it was made again although a gateway may have passed it on")
	}
	if _, err := always.Do(t.Context(), newTestClient(gone.URL), words{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
	var remote *problem.RemoteError
	if _, err := always.Do(t.Context(), newTestClient(gateway.URL), words{}); !errors.As(err, &remote) || remote.Problem.Status != 502 {
		t.Errorf("got %v, want a problem.RemoteError", err)
	}
}

func TestAServerThatIsSilentIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	silent := &echo{answer: func(ctx context.Context, _ words) (words, error) {
		select {
		case <-ctx.Done():
		case <-release:
		}
		return words{}, nil
	}}
	server := serve(t, newServer(), silent)
	defer close(release)
	c := newTestClient(server.URL)
	c.o.Timeout, c.o.Rounds = 50*time.Millisecond, 1
	if _, err := never.Do(t.Context(), c, words{}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNoAnswer) {
		t.Errorf("got %v, want a deadline that was missed", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := always.Do(ctx, newTestClient(server.URL), words{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// A mutedConn loses what is written once it is muted.
type mutedConn struct {
	net.Conn
	muted atomic.Bool
	lost  *atomic.Int64
}

func (c *mutedConn) Write(b []byte) (int, error) {
	if c.muted.Load() {
		c.lost.Add(1)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A firewall that forgets its connections makes all of them dead at once.
func TestOfManyDeadConnectionsOneCostsAnAttempt(t *testing.T) {
	const many = 8
	var mu sync.Mutex
	var conns []*mutedConn
	var lost atomic.Int64
	transport := &http.Transport{MaxIdleConnsPerHost: many, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, &mutedConn{Conn: conn, lost: &lost})
		return conns[len(conns)-1], nil
	}}
	defer transport.CloseIdleConnections()
	var together sync.WaitGroup
	together.Add(many)
	e := &echo{answer: func(_ context.Context, in words) (words, error) {
		if in.Text == "together" { // so that each has a connection of its own
			together.Done()
			together.Wait()
		}
		return in, nil
	}}
	c := newTestClient(serve(t, newServer(), e).URL)
	c.o.HTTP, c.o.Rounds = &http.Client{Transport: transport}, 2
	var calls sync.WaitGroup
	for range many {
		calls.Go(func() {
			if _, err := always.Do(t.Context(), c, words{Text: "together"}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	mu.Lock()
	for _, conn := range conns {
		conn.muted.Store(true)
	}
	mu.Unlock()
	c.o.Timeout = 3 * time.Second
	if _, err := always.Do(t.Context(), c, words{}); err != nil || lost.Load() != 1 {
		t.Errorf("got %v after %d dead connections, want an answer after one", err, lost.Load())
	}
}

func TestACallerOfLittlePatienceGetsToTheServersBehindSilentOnes(t *testing.T) {
	release := make(chan struct{})
	var addresses []string
	for range 2 {
		silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that the end of the request is noticed
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}))
		defer silent.Close()
		addresses = append(addresses, silent.URL)
	}
	defer close(release)
	awake := &echo{answer: repeatAfter}
	c := newTestClient(append(addresses, serve(t, newServer(), awake).URL)...)
	patience := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		_, err := always.Do(ctx, c, words{})
		return err
	}
	// Each of the silent ones may take much longer than the whole call, and
	// leaves time for the next.
	c.o.Timeout = time.Minute
	if err := patience(4 * time.Second); err != nil || awake.calls.Load() != 1 {
		t.Errorf("got %v, and the server that answers was asked %d times", err, awake.calls.Load())
	}
	// Of those that answer nothing the one that was silent last is asked last.
	awake.answer = func(context.Context, words) (words, error) { return words{}, errOther }
	c.o.Rounds = 1
	if err := patience(time.Second); err == nil {
		t.Error("nobody carries it out")
	}
	if got, want := c.order(t.Context())[1:], addresses[:2]; !slices.Equal(got, want) {
		t.Errorf("the silent ones are asked in the order %v, want %v", got, want)
	}
}

func TestAnAttemptLeavesTimeForTheNext(t *testing.T) {
	c := newTestClient("http://127.0.0.1:1") // which waits 30 s
	for _, row := range []struct {
		left     time.Duration // until the call's deadline; 0 means that it has none
		last     bool
		min, max time.Duration
	}{
		{0, false, 30 * time.Second, 30 * time.Second},
		{0, true, 30 * time.Second, 30 * time.Second},
		{10 * time.Second, false, 4 * time.Second, 5 * time.Second},
		{10 * time.Second, true, 30 * time.Second, 30 * time.Second}, // its context ends it sooner
		{time.Hour, false, 30 * time.Second, 30 * time.Second},
	} {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if row.left > 0 {
			ctx, cancel = context.WithTimeout(ctx, row.left)
		}
		if got := c.patience(ctx, row.last); got < row.min || got > row.max {
			t.Errorf("%v left, last %t: got %v, want %v to %v", row.left, row.last, got, row.min, row.max)
		}
		cancel()
	}
}

func TestACallHasADeadlineOnTheServerToo(t *testing.T) {
	s := newServer()
	s.Timeout = 20 * time.Millisecond
	server := serve(t, s, &echo{answer: func(ctx context.Context, _ words) (words, error) {
		<-ctx.Done()
		return words{}, ctx.Err()
	}})
	if _, err := always.Do(t.Context(), newTestClient(server.URL), words{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
}

func TestASlowSenderIsCutOff(t *testing.T) {
	s := newServer()
	s.Timeout = 50 * time.Millisecond
	e := &echo{answer: repeatAfter}
	server := serve(t, s, e)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/always HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if text, err := io.ReadAll(conn); err != nil || !strings.Contains(string(text), "504") || !strings.Contains(string(text), "has not arrived") {
		t.Errorf("got %q, %v; want to be told and cut off", text, err)
	}
	if e.calls.Load() != 0 {
		t.Error("it was carried out")
	}
}

// upTo yields 0 … n−1.
func upTo(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func TestAListArrivesWholeWithTheErrorsInIt(t *testing.T) {
	const n = 20_000
	server := serve(t, newServer(), &echo{numbers: func(context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i, err := range upTo(n) {
				if i == 777 && !yield(0, errSpoilt) || !yield(i, err) {
					return
				}
			}
		}
	}})
	got, spoilt := 0, 0
	for i, err := range count.All(t.Context(), newTestClient(server.URL), None{}) {
		switch {
		case errors.Is(err, errSpoilt) && got == 777:
			spoilt++
		case err != nil || i != got:
			t.Fatalf("got item %d, %v; want %d", i, err, got)
		default:
			got++
		}
	}
	if got != n || spoilt != 1 {
		t.Errorf("got %d items and %d spoilt ones", got, spoilt)
	}
	c := newTestClient(server.URL)
	for i := range count.All(t.Context(), c, None{}) {
		if i == 3 {
			break
		}
	}
}

// Lists use the buffers of those before them.
func TestListsAtTheSameTimeKeepTheirOwnItems(t *testing.T) {
	e := &echo{}
	e.numbers = func(context.Context) iter.Seq2[int, error] {
		first := int(e.calls.Add(1)) * 1_000_000
		return func(yield func(int, error) bool) {
			for i := range []int{0, 1, 10, 3_000, 10_000}[first/1_000_000%5] {
				if !yield(first+i, nil) {
					return
				}
			}
		}
	}
	c := newTestClient(serve(t, newServer(), e).URL)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for round := range 25 {
				want := -1
				for got, err := range count.All(t.Context(), c, None{}) {
					if want < 0 {
						want = got - got%1_000_000
					}
					if err != nil || got != want {
						t.Errorf("got %d, %v; want %d", got, err, want)
						return
					}
					want++
					if (worker+round)%3 == 0 && want%1_000_000 == 500 {
						break // with much of it on its way
					}
				}
			}
		})
	}
	group.Wait()
}

func TestAListThatIsCutIsAnErrorAndNeverAShorterList(t *testing.T) {
	whole := "{\"item\":0}\n{\"item\":1}\n{\"end\":2}\n"
	for cut := range len(whole) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, whole[:cut])
		}))
		var last error
		for _, err := range count.All(t.Context(), newTestClient(server.URL), None{}) {
			last = err
		}
		server.Close()
		if last == nil {
			t.Errorf("%q was taken for a whole list", whole[:cut])
		}
	}
	for text, want := range map[string]error{
		"{\"item\":0}\n{\"end\":2}\n":     ErrGarbled,
		"{\"item\":\"x\"}\n{\"end\":1}\n": ErrGarbled,
		"nonsense\n":                      ErrGarbled,
		"{\"item\":0}\n":                  io.ErrUnexpectedEOF,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
		var last error
		for _, err := range count.All(t.Context(), newTestClient(server.URL), None{}) {
			last = err
		}
		server.Close()
		if !errors.Is(last, want) {
			t.Errorf("%q: got %v, want %v", text, last, want)
		}
	}
}

func TestAListThatFailsAtOnceIsAProblemAndOneThatFailsLaterEndsWithIt(t *testing.T) {
	for _, after := range []int{0, 1, 5} {
		server := serve(t, newServer(), &echo{numbers: func(context.Context) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for i := range upTo(after) {
					if !yield(i, nil) {
						return
					}
				}
				yield(0, invalid("disk", "", "room"))
			}
		}})
		items, failures := 0, 0
		for _, err := range count.All(t.Context(), newTestClient(server.URL), None{}) {
			if errors.Is(err, executor.ErrInvalid) {
				failures++
			} else if err == nil {
				items++
			}
		}
		if items != after || failures != 1 {
			t.Errorf("got %d items and %d errors, want %d and 1", items, failures, after)
		}
	}
}

// The log of a container that writes nothing is such a list. A client waits for
// the beginning of an answer, and then as long as it likes.
func TestTheAnswerOfALongListBeginsBeforeItsFirstItem(t *testing.T) {
	for _, test := range []struct {
		end  error
		want string
	}{
		{nil, `{"item":7}{"end":1}`},
		{invalid("disk", "", "room"), `{"problem":{`},
	} {
		begun, s := make(chan struct{}), newServer()
		s.Heartbeat = time.Millisecond
		server := serve(t, s, &echo{numbers: func(ctx context.Context) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				select {
				case <-begun:
					yield(7, test.end)
				case <-ctx.Done():
				}
			}
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/tail", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatalf("the answer does not begin: %v", err)
		}
		defer answer.Body.Close()
		close(begun)
		text, err := io.ReadAll(answer.Body)
		if got := strings.ReplaceAll(string(text), "\n", ""); err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(got, test.want) {
			t.Errorf("got %d, %s, %v; want %s", answer.StatusCode, got, err, test.want)
		}
	}
}

func TestALongListThatFailsAtOnceIsAProblem(t *testing.T) {
	server := serve(t, newServer(), &echo{numbers: func(context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) { yield(0, invalid("disk", "", "room")) }
	}})
	answer, err := http.Post(server.URL+"/v1/tail", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("got %s", answer.Status)
	}
}

func TestAListThatDoesNotGoOnIsEndedByTheServer(t *testing.T) {
	for _, after := range []int{0, 3} {
		s := newServer()
		s.Timeout = time.Second // more than the items take on a busy machine
		server := serve(t, s, &echo{numbers: func(ctx context.Context) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for i := range after {
					if !yield(i, nil) {
						return
					}
				}
				<-ctx.Done()
				yield(0, ctx.Err())
			}
		}})
		items := 0
		var last error
		for _, err := range count.All(t.Context(), newTestClient(server.URL), None{}) {
			if last = err; err == nil {
				items++
			}
		}
		if items != after || !errors.Is(last, context.DeadlineExceeded) || !strings.Contains(last.Error(), "has not gone on for 1s") {
			t.Errorf("got %d items and %v; want %d and a deadline that was missed", items, last, after)
		}
	}
}

func TestAListMayTakeLongerThanACallWhileItGoesOn(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		s, began := newServer(), time.Now()
		e := &echo{numbers: func(ctx context.Context) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for range 6 {
					<-time.After(s.Timeout / 2)
					for i := range pieceBytes / 8 { // a line has more than 8 bytes
						if !yield(i, ctx.Err()) {
							return
						}
					}
				}
			}
		}}
		answer, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, count.Path, strings.NewReader("{}"))
		request.Header.Set("Content-Type", "application/json")
		count.serve(s, e, answer, request)
		if end := fmt.Sprintf("{\"end\":%d}\n", 6*(pieceBytes/8)); !strings.HasSuffix(answer.Body.String(), end) || time.Since(began) != 3*s.Timeout {
			t.Errorf("after %v it ends with %q", time.Since(began), answer.Body.String()[max(0, answer.Body.Len()-200):])
		}
	})
}

func TestASlowReaderOfAListIsCutOff(t *testing.T) {
	s := newServer()
	s.WriteTimeout = 50 * time.Millisecond
	stopped := make(chan struct{})
	server := serve(t, s, &echo{numbers: func(context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			defer close(stopped)
			for i := 0; yield(i, nil); i++ {
			}
		}
	}})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/count HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Error("the server still sends to somebody who does not read")
	}
}
