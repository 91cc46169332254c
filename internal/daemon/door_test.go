package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A given listener accepts what it is given.
type given chan net.Conn

func (g given) Accept() (net.Conn, error) { return <-g, nil }
func (g given) Close() error              { return nil }
func (g given) Addr() net.Addr            { return &net.TCPAddr{} }

// from is one end of a connection, with the address of the other.
type from struct {
	net.Conn
	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }

func TestTheAddressWithMostConnectionsLosesItsOldest(t *testing.T) {
	in := make(given, 1)
	l := newDoor(in)
	l.most = boundsFor(1 << 20)
	connect := func(address string, port int) (client net.Conn, server *visitor) {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close() })
		in <- from{b, &net.TCPAddr{IP: net.ParseIP(address), Port: port}}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return a, c.(*visitor)
	}
	closed := func(c net.Conn) bool {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		_, err := c.Read(make([]byte, 1))
		return err == io.EOF
	}
	honest, _ := connect("192.0.2.1", 1)
	var flood []net.Conn
	for i := range maxStrangers + 10 {
		c, _ := connect("192.0.2.66", i)
		flood = append(flood, c)
	}
	if closed(honest) {
		t.Error("another address lost its connection")
	}
	for i, c := range flood {
		if got, want := closed(c), i < 11; got != want {
			t.Errorf("connection %d of the flood: closed is %v, want %v", i, got, want)
		}
	}
	_, known := connect("192.0.2.2", 1)
	for range 2 {
		if _, err := l.identify(known, "web"); err != nil {
			t.Error(err)
		}
	}
	if l.strangers.count != maxStrangers-1 || l.callers.count != 1 {
		t.Errorf("%d strangers and %d others are counted", l.strangers.count, l.callers.count)
	}
	if err := errors.Join(known.Close(), known.Close()); err != nil || l.callers.count > 0 || len(l.callers.by) > 0 {
		t.Errorf("after it has closed, %d are counted: %v", l.callers.count, err)
	}
}

func TestBoundsOfConnectionsFollowTheLimitOfDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]bounds{
		2:              {1, 1, 1},
		256:            {64, 64, 64},
		4096:           {256, 1024, 1024},
		math.MaxUint64: {maxStrangers, maxAddresses, maxOfCaller},
	} {
		if got := boundsFor(descriptors); got != want {
			t.Errorf("with %d descriptors: %+v, want %+v", descriptors, got, want)
		}
	}
}

// After a pause, all cells of a large fleet connect at once, each from its address.
func TestTheOnlyConnectionOfAnAddressStaysUpToABound(t *testing.T) {
	l := newDoor(nil)
	l.most = boundsFor(1 << 20)
	var first *visitor
	for i := range maxAddresses - 1 {
		a, _ := net.Pipe()
		s := &visitor{Conn: a, door: l}
		if first == nil {
			first = s
		}
		if surplus := l.add(s, fmt.Sprint(i)); surplus != nil {
			t.Fatalf("%d addresses: that of %s is closed", i+1, surplus.key)
		}
	}
	l.add(&visitor{door: l}, first.key)
	if surplus := l.add(&visitor{door: l}, "one more"); surplus != first {
		t.Error("the address with two connections does not lose its first")
	}
	if l.add(&visitor{door: l}, "another") == nil {
		t.Error("there is no bound")
	}
}

func TestConnectionsOfStrangersAreBoundedAndThoseOfKnownClientsAreNot(t *testing.T) {
	dir := t.TempDir()
	c := open(t, issue(t, dir, "server", time.Hour))
	client := open(t, issue(t, dir, "client", time.Hour))
	address, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) }), c)
	transport := &http.Transport{TLSClientConfig: client.Client()}
	defer transport.CloseIdleConnections()
	get := func() (who string) {
		t.Helper()
		answer, err := (&http.Client{Transport: transport}).Get("https://" + address)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := get()
	var strangers []net.Conn
	for range maxStrangers {
		s, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		strangers = append(strangers, s)
	}
	// One that has shown no certificate counts after its handshake, too.
	plain, err := tls.Dial("tcp", address, &tls.Config{RootCAs: client.current().others})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if got := get(); got != first {
		t.Errorf("the connection of a client with a certificate did not last: %s, then %s", first, got)
	}
	transport.CloseIdleConnections()
	get()
	for _, s := range strangers[:2] { // for the one of plain, and the last one until its certificate was seen
		_ = s.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := s.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("the oldest connections are kept: %v", err)
		}
	}
	transport.CloseIdleConnections()
	for _, s := range strangers {
		s.Close()
	}
	plain.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestConnectionsThatAskForNothingGiveWayToTheirCallersOthers(t *testing.T) {
	dir := t.TempDir()
	server, caller := open(t, issue(t, dir, "server", time.Hour)), open(t, issue(t, dir, "caller", time.Hour))
	l, err := Listen("listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(l)
	d.most.ofCaller = 2
	serveAt(t, d, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), server)
	counted := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.callers.by["caller"])
	}
	for n := range 2 {
		silent, err := tls.Dial("tcp", l.Addr().String(), caller.Client())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		for counted() <= n { // the server is a little later
			runtime.Gosched()
		}
	}
	transport := &http.Transport{TLSClientConfig: caller.Client()}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if n := counted(); n != 2 {
		t.Errorf("it has %d connections, want 2", n)
	}
}

func TestACallerCannotTakeTheConnectionsOfOthers(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			dir := t.TempDir()
			server, greedy, cell := open(t, issue(t, dir, "server", time.Hour)), open(t, issue(t, dir, "greedy", time.Hour)), open(t, issue(t, dir, "cell", time.Hour))
			l, err := Listen("listen", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			d := newDoor(l)
			d.most.ofCaller = 2
			finish := make(chan struct{})
			stop := serveAt(t, d, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				if r.URL.Path == "/stream" {
					select {
					case <-finish:
					case <-r.Context().Done():
					}
				}
			}), server)
			// connect returns a way to make calls over one connection, and a channel
			// that is closed when the connection ends.
			connect := func(c *Certificates) (get func(path string) (io.ReadCloser, error), gone chan struct{}) {
				gone = make(chan struct{})
				end := sync.OnceFunc(func() { close(gone) })
				transport := &http.Transport{TLSClientConfig: c.Client(), ForceAttemptHTTP2: protocol == "h2", MaxConnsPerHost: 1}
				transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
					return &ending{Conn: conn, ended: end}, err
				}
				t.Cleanup(transport.CloseIdleConnections)
				return func(path string) (io.ReadCloser, error) {
					answer, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String() + path)
					if err != nil {
						return nil, err
					}
					if got := answer.TLS.NegotiatedProtocol; protocol == "h2" && got != "h2" {
						t.Errorf("it speaks %q", got)
					}
					return answer.Body, nil
				}, gone
			}
			must := func(body io.ReadCloser, err error) io.ReadCloser {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				return body
			}
			whole := func(body io.ReadCloser, err error) {
				t.Helper()
				defer must(body, err).Close()
				if _, err := io.Copy(io.Discard, body); err != nil {
					t.Error(err)
				}
			}
			first, _ := connect(greedy)
			stream := must(first("/stream"))
			second, gone := connect(greedy)
			whole(second("/"))
			for idle := false; !idle; { // the server is a little later than the answer
				d.mu.Lock()
				for _, v := range d.callers.by["greedy"] {
					idle = idle || v.idle.Load() > 0
				}
				d.mu.Unlock()
				runtime.Gosched()
			}
			third, _ := connect(greedy)
			another := must(third("/stream"))
			<-gone // it has made room
			fourth, _ := connect(greedy)
			if _, err := fourth("/"); err == nil {
				t.Error("a connection that is one too many is served")
			}
			of, _ := connect(cell)
			whole(of("/"))
			close(finish)
			whole(stream, nil)
			whole(another, nil)
			if err := stop(); err != nil {
				t.Error(err)
			}
			if d.callers.count > 0 || d.strangers.count > 0 {
				t.Errorf("at the end %d and %d connections are counted", d.callers.count, d.strangers.count)
			}
		})
	}
}

// ending is a connection that says when it ends.
type ending struct {
	net.Conn
	ended func()
}

func (e *ending) Read(b []byte) (n int, err error) {
	if n, err = e.Conn.Read(b); err != nil {
		e.ended()
	}
	return n, err
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

func TestStrangersDoNotFillTheLog(t *testing.T) {
	var text strings.Builder
	log := newComplaints(slog.New(slog.NewTextHandler(&text, nil)))
	for i := range 1000 {
		log.Printf("http: TLS handshake error from 192.0.2.66:%d: EOF", i)
	}
	if n := strings.Count(text.String(), "\n"); n != complaintsEach || !strings.Contains(text.String(), "192.0.2.66:0: EOF") {
		t.Errorf("there are %d lines: %.200s", n, text.String())
	}
	// A fault of ours is always told.
	log.Print("http: panic serving 192.0.2.66:1: nil map")
	if !strings.Contains(text.String(), "panic serving") {
		t.Error("a panic is not in the log")
	}
	c := log.Writer().(*complaints)
	c.began = c.began.Add(-time.Minute)
	log.Print("again")
	if got := text.String(); !strings.Contains(got, fmt.Sprintf("lines_dropped=%d", 1000-complaintsEach)) || !strings.Contains(got, "msg=again") {
		t.Errorf("a minute later it says %s", got[len(got)-200:])
	}
}

// In HTTP/2 one connection carries many requests at once. A client that nobody knows
// could hold them all by not taking the answers.
func TestAStrangersConnectionHasFewRequestsAtATime(t *testing.T) {
	dir := t.TempDir()
	c := open(t, issue(t, dir, "server", time.Hour))
	client := open(t, issue(t, dir, "client", time.Hour))
	entered, finish := make(chan string), make(chan struct{})
	address, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- r.RemoteAddr
		<-finish
		fmt.Fprint(w, r.Proto)
	}), c)
	for _, test := range []struct {
		who  string
		tls  *tls.Config
		most int
	}{
		{"stranger", &tls.Config{RootCAs: client.current().others}, strangerRequestsEach},
		{"client with a certificate", client.Client(), 2 * strangerRequestsEach},
	} {
		transport := &http.Transport{TLSClientConfig: test.tls, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		get := func() error {
			answer, err := (&http.Client{Transport: transport}).Get("https://" + address)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "HTTP/2.0" {
				return fmt.Errorf("%q, %w", text, err)
			}
			return nil
		}
		answers, connection := make(chan error, test.most), ""
		for i := range test.most {
			go func() { answers <- get() }()
			select {
			case from := <-entered:
				if i == 0 {
					connection = from
				}
				if from != connection {
					t.Fatalf("%s: request %d has another connection", test.who, i)
				}
			case err := <-answers:
				t.Fatalf("%s: request %d: %v", test.who, i, err)
			}
		}
		if test.most == strangerRequestsEach {
			go func() { answers <- get() }()
			select {
			case <-entered:
				t.Errorf("%s: one more request was carried out", test.who)
			case err := <-answers:
				if err == nil {
					t.Errorf("%s: one more request was answered", test.who)
				}
			}
		}
		for range test.most {
			finish <- struct{}{}
			if err := <-answers; err != nil {
				t.Errorf("%s: %v", test.who, err)
			}
		}
	}
}

func TestStrangersHaveFewRequestsTogetherAndOneEach(t *testing.T) {
	finish := make(chan struct{})
	var running sync.WaitGroup
	entered := make(chan struct{})
	h := boundRequests(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-finish
	})
	// ask reports whether a request of a connection is carried out.
	ask := func(connection context.Context, state *tls.ConnectionState) bool {
		reset := make(chan any, 1)
		running.Go(func() {
			defer func() { reset <- recover() }()
			r := httptest.NewRequestWithContext(connection, http.MethodGet, "/", nil)
			r.TLS = state
			h.ServeHTTP(httptest.NewRecorder(), r)
		})
		select {
		case <-entered:
			return true
		case why := <-reset:
			if why != http.ErrAbortHandler {
				t.Errorf("it panics with %v", why)
			}
			return false
		}
	}
	connect := func() context.Context { return countRequests(t.Context(), nil) }
	stranger := &tls.ConnectionState{}
	for range strangerRequests / strangerRequestsEach {
		c := connect()
		for i := range strangerRequestsEach {
			if !ask(c, stranger) {
				t.Fatalf("request %d of a connection is reset", i)
			}
		}
	}
	c := connect()
	if !ask(c, stranger) || ask(c, stranger) {
		t.Error("want one request, and no more, of a further connection")
	}
	certificates := []*x509.Certificate{{}}
	known := &tls.ConnectionState{PeerCertificates: certificates, VerifiedChains: [][]*x509.Certificate{certificates}}
	k := connect()
	for range 2 {
		if !ask(k, known) {
			t.Error("a request of a client with a certificate is reset")
		}
	}
	close(finish)
	running.Wait()
	for range 2 {
		if !ask(c, stranger) {
			t.Error("the requests still count after their end")
		}
	}
}

// The deadline of an answer cannot end a connection of HTTP/2 whose client reads
// nothing at all, such as a program that was stopped.
func TestAConnectionThatTakesNothingEnds(t *testing.T) {
	defer func(before time.Duration) { stuckTime = before }(stuckTime)
	stuckTime = 100 * time.Millisecond
	dir := t.TempDir()
	c := open(t, issue(t, dir, "server", time.Hour))
	config := open(t, issue(t, dir, "client", time.Hour)).Client()
	config.NextProtos = []string{"h2"}
	ended := make(chan error, 1)
	address, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				ended <- err
				return
			}
		}
	}), c)
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const request = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
		"\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x04\x7f\xff\xff\xff" + // all that a window may have, for each stream
		"\x00\x00\x04\x08\x00\x00\x00\x00\x00" + "\x7f\xff\x00\x00" + // and for the connection
		"\x00\x00\x06\x01\x05\x00\x00\x00\x01" + "\x82\x87\x84\x41\x01x" // GET https / of x
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the answer is still being written")
	}
}
