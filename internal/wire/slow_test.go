package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

// A pipeListener accepts the connections that dial makes, which keep no bytes: what is
// written waits until it is read.
type pipeListener struct {
	conns chan net.Conn
	over  context.Context
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.over.Done():
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A slowWorld is a server in virtual time, whose lists take one of a few places as a
// store's connections, and its readers.
type slowWorld struct {
	t      *testing.T
	server *Server
	client *http.Client
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	places chan struct{}
	cut    atomic.Int64
}

// inSlowWorld runs f with HTTP/1 and with HTTP/2. All lists have so many items, and
// those of path "/v1/few" have ten.
func inSlowWorld(t *testing.T, items, places int, f func(w *slowWorld)) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint("HTTP/", version), func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				w := &slowWorld{t: t, server: newServer(), places: make(chan struct{}, places)}
				w.server.ListCut = func() { w.cut.Add(1) }
				numbers := func(n int) func(context.Context, *echo, None) iter.Seq2[int, error] {
					return func(ctx context.Context, _ *echo, _ None) iter.Seq2[int, error] {
						return func(yield func(int, error) bool) {
							select {
							case w.places <- struct{}{}:
								defer func() { <-w.places }()
							case <-ctx.Done():
								yield(0, ctx.Err())
								return
							}
							for i := range n {
								if !yield(i, nil) {
									return
								}
							}
						}
					}
				}
				one := info("one", Always)
				one.Each = 1
				mux := http.NewServeMux()
				Register(w.server, mux, &echo{}, []Endpoint[*echo]{
					&List[*echo, None, int]{Info: info("many", Always), Serve: numbers(items)},
					&List[*echo, None, int]{Info: info("few", Always), Serve: numbers(10)},
					&List[*echo, None, int]{Info: one, Serve: numbers(items)},
				})
				certified := func(w http.ResponseWriter, r *http.Request) {
					r.TLS = &tls.ConnectionState{} // only then calls of a caller have bounds
					mux.ServeHTTP(w, r)
				}
				over, end := context.WithCancel(t.Context())
				listener := &pipeListener{conns: make(chan net.Conn), over: over}
				server := &http.Server{Handler: http.HandlerFunc(certified), Protocols: new(http.Protocols)}
				transport := &http.Transport{DialContext: listener.dial, Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}}
				server.Protocols.SetHTTP1(version == 1)
				server.Protocols.SetUnencryptedHTTP2(version == 2)
				transport.Protocols.SetHTTP1(version == 1)
				transport.Protocols.SetUnencryptedHTTP2(version == 2)
				w.client = &http.Client{Transport: transport}
				w.dial = listener.dial
				go func() { _ = server.Serve(listener) }()
				f(w)
				end()
				server.Close()
				transport.CloseIdleConnections()
			})
		})
	}
}

// read reads a list, so many bytes a second, and returns its last line.
func (w *slowWorld) read(ctx context.Context, path string, perSecond int) (last string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server"+path, strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := w.client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	for part := make([]byte, perSecond/10); ; {
		n, err := io.ReadFull(answer.Body, part)
		if text := bytes.TrimSpace(part[:n]); n > 0 {
			last = string(text[bytes.LastIndexByte(text, '\n')+1:])
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && strings.HasPrefix(last, `{"end"`) {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		select {
		case <-time.After(time.Second / 10):
		case <-ctx.Done():
			return last, ctx.Err()
		}
	}
}

func TestSlowReadersOfListsDoNotTakeEveryConnectionOfTheStore(t *testing.T) {
	for _, perSecond := range []int{200_000, 10} { // of the second kind, all are blocked in a Write
		slowReaders(t, perSecond)
	}
}

func slowReaders(t *testing.T, perSecond int) {
	const places = 16
	inSlowWorld(t, 10_000_000, places, func(w *slowWorld) {
		ctx, end := context.WithCancel(w.t.Context())
		var readers sync.WaitGroup
		for range places {
			readers.Go(func() {
				last, err := w.read(ctx, "/v1/many", perSecond)
				if err == nil || strings.HasPrefix(last, `{"end"`) {
					w.t.Errorf("a slow reader got %q, %v; want a list without its end", last, err)
				}
			})
		}
		synctest.Wait()
		if len(w.places) != places {
			w.t.Errorf("the slow readers have %d places", len(w.places))
		}
		for range 3 {
			began := time.Now()
			last, err := w.read(w.t.Context(), "/v1/few", 200_000)
			if took := time.Since(began); err != nil || last != `{"end":10}` || took > 2*time.Second {
				w.t.Errorf("a short list got %q, %v after %v", last, err, took)
			}
			time.Sleep(5 * time.Second) // virtual
		}
		if len(w.places) != maxSlow || w.cut.Load() != places-maxSlow {
			w.t.Errorf("%d lists go on, and %d were cut off", len(w.places), w.cut.Load())
		}
		end()
		readers.Wait()
		synctest.Wait()
		if len(w.server.slow) > 0 || len(w.places) > 0 {
			w.t.Errorf("in the end %d lists are slow, and %d go on", len(w.server.slow), len(w.places))
		}
	})
}

// A stalledConn takes no more bytes once it is stalled, and stays open.
type stalledConn struct {
	net.Conn
	stalled, over <-chan struct{}
}

func (c *stalledConn) Read(p []byte) (int, error) {
	select {
	case <-c.stalled:
		<-c.over
		return 0, net.ErrClosed
	default:
		return c.Conn.Read(p)
	}
}

// HTTP/2 cannot end one answer on a connection that takes nothing.
func TestAListThatIsCutOffGivesTheStoreBackThoughItsConnectionIsStuck(t *testing.T) {
	const places = 16
	inSlowWorld(t, 10_000_000, places, func(w *slowWorld) {
		stalled, over := make(chan struct{}), make(chan struct{})
		transport := w.client.Transport.(*http.Transport).Clone()
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := w.dial(ctx, network, address)
			return &stalledConn{conn, stalled, over}, err
		}
		stuck := &slowWorld{client: &http.Client{Transport: transport}}
		ctx, end := context.WithCancel(w.t.Context())
		var readers sync.WaitGroup
		for range places {
			readers.Go(func() { _, _ = stuck.read(ctx, "/v1/many", 10) })
		}
		synctest.Wait()
		if len(w.places) != places {
			w.t.Errorf("the slow readers have %d places", len(w.places))
		}
		close(stalled)
		time.Sleep(2 * slowAfter) // virtual
		if len(w.places) > maxSlow || w.cut.Load() != places-maxSlow {
			w.t.Errorf("%d lists use the store, and %d were cut off", len(w.places), w.cut.Load())
		}
		close(over)
		end()
		readers.Wait()
		transport.CloseIdleConnections()
		synctest.Wait()
		if len(w.places) > 0 {
			w.t.Errorf("in the end %d lists use the store", len(w.places))
		}
	})
}

func TestWhoKeepsAListWaitingWaitsForTheNext(t *testing.T) {
	inSlowWorld(t, 10_000_000, 16, func(w *slowWorld) {
		for _, test := range []struct{ waits, least, most time.Duration }{
			{0, 0, 100 * time.Millisecond},
			{500 * time.Millisecond, 4 * time.Second, 6 * time.Second},
			{5 * time.Second, longestPause - time.Second/2, longestPause + time.Second/2},
		} {
			ctx, end := context.WithTimeout(w.t.Context(), test.waits+time.Nanosecond)
			_, _ = w.read(ctx, "/v1/one", 10)
			end()
			synctest.Wait()
			began := time.Now()
			ctx, end = context.WithTimeout(w.t.Context(), time.Minute)
			for len(w.places) == 0 && ctx.Err() == nil {
				one, stop := context.WithTimeout(ctx, 10*time.Millisecond)
				go func() { _, _ = w.read(one, "/v1/one", 10) }()
				time.Sleep(5 * time.Millisecond) // virtual
				began := len(w.places) > 0
				stop()
				if began {
					break
				}
			}
			if took := time.Since(began); took < test.least || took > test.most {
				w.t.Errorf("after a list that waited for %v, the next one began after %v", test.waits, took)
			}
			end()
			time.Sleep(time.Minute) // virtual
		}
	})
}

func TestAFewSlowReadersGetTheirWholeLists(t *testing.T) {
	const items = 50_000
	for _, readers := range []int{1, maxSlow} {
		inSlowWorld(t, items, readers, func(w *slowWorld) {
			var all sync.WaitGroup
			began := time.Now()
			for range readers {
				all.Go(func() {
					if last, err := w.read(w.t.Context(), "/v1/many", 100_000); err != nil || last != fmt.Sprintf(`{"end":%d}`, items) {
						w.t.Errorf("got %q, %v", last, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(began); took < 5*time.Second || w.cut.Load() > 0 {
				w.t.Errorf("it took %v, and %d were cut off", took, w.cut.Load())
			}
		})
	}
}

func TestTheListThatHasBeenSlowLongestIsCutOff(t *testing.T) {
	inSlowWorld(t, 10_000_000, 100, func(w *slowWorld) {
		ctx, end := context.WithCancel(w.t.Context())
		var readers sync.WaitGroup
		var order []int
		var mu sync.Mutex
		for i := range maxSlow + 2 {
			readers.Go(func() {
				_, _ = w.read(ctx, "/v1/many", 200_000)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			time.Sleep(100 * time.Millisecond) // virtual
		}
		time.Sleep(5 * time.Second)
		mu.Lock()
		if fmt.Sprint(order) != "[0 1]" {
			w.t.Errorf("cut off are %v, want the first two", order)
		}
		mu.Unlock()
		end()
		readers.Wait()
	})
}

func TestOneCallerIsSentFewListsAtATimeAndTheOthersWait(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		s := newServer()
		var refused atomic.Int64
		s.Refused = func() { refused.Add(1) }
		s.Authorize = func(r *http.Request, _ *Info) (Caller, error) { return Caller{Name: r.Header.Get("Name")}, nil }
		begun, end := make(chan struct{}, 100), make(chan struct{})
		list := func(name string) Endpoint[*echo] {
			i := info(name, Always)
			i.Each, i.Shares = 2, "lists"
			return &List[*echo, None, int]{Info: i, Serve: func(context.Context, *echo, None) iter.Seq2[int, error] {
				return func(yield func(int, error) bool) {
					begun <- struct{}{}
					<-end
					yield(1, nil)
				}
			}}
		}
		mux := http.NewServeMux()
		Register(s, mux, &echo{}, []Endpoint[*echo]{list("one"), list("two")})
		var calls sync.WaitGroup
		call := func(path, caller string, want int) {
			calls.Go(func() {
				r := httptest.NewRequest(http.MethodPost, "https://localhost"+path, strings.NewReader(`{}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Name", caller)
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, r)
				if w.Code != want || want != http.StatusOK && !strings.Contains(w.Body.String(), `lists by \"busy\"`) {
					t.Errorf("%s of %s got %d %s", path, caller, w.Code, w.Body)
				}
			})
		}
		call("/v1/one", "busy", http.StatusOK)
		call("/v1/two", "busy", http.StatusOK)
		synctest.Wait()
		call("/v1/one", "busy", http.StatusServiceUnavailable)
		call("/v1/two", "busy", http.StatusServiceUnavailable)
		call("/v1/two", "other", http.StatusOK)
		synctest.Wait()
		if len(begun) != 3 {
			t.Errorf("%d lists are sent, want two and another caller's", len(begun))
		}
		time.Sleep(s.Timeout - time.Second) // virtual
		if refused.Load() != 0 {
			t.Errorf("%d were refused before their time", refused.Load())
		}
		time.Sleep(2 * time.Second)
		if refused.Load() != 2 {
			t.Errorf("%d were refused that have waited long", refused.Load())
		}
		call("/v1/one", "busy", http.StatusOK) // this one waits until the others end
		synctest.Wait()
		close(end)
		calls.Wait()
		if len(begun) != 4 || len(s.turns.taken) > 0 {
			t.Errorf("%d lists were sent, and left are %v", len(begun), s.turns.taken)
		}
	})
}
