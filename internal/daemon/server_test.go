package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestAnAddressThatIsTakenIsToldWithWhatToDo(t *testing.T) {
	first, err := Listen("listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for address, want := range map[string]string{
		first.Addr().String(): "another process listens there (ss -ltnp tells which): stop it, or choose another address with --listen",
		"192.0.2.1:0":         "no interface of this host has that address: choose another with --listen",
		"nonsense":            "--listen wants an address such as 127.0.0.1:8889",
	} {
		if _, err := Listen("listen", address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAnAddressThatIsAboutToBeFreeIsWaitedFor(t *testing.T) {
	former, err := Listen("listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { former.Close() })
	next, err := Listen("listen", former.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
}

// serve serves until the function that it returns is called, which gives
// Serve's error.
func serve(t *testing.T, h http.Handler, c *Certificates) (address string, stop func() error) {
	t.Helper()
	l, err := Listen("listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), serveAt(t, l, h, c)
}

func serveAt(t *testing.T, l net.Listener, h http.Handler, c *Certificates) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, h, c, new(Logging).Logger(io.Discard)) }()
	stopped := false
	stop = func() error {
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if !stopped {
			_ = stop()
		}
	})
	return stop
}

func TestAServerThatStopsFinishesAnswersAndEndsStreams(t *testing.T) {
	arrived, finish := make(chan string, 2), make(chan struct{})
	address, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			arrived <- "stream"
			<-r.Context().Done()
			return
		}
		arrived <- "answer"
		<-finish
		fmt.Fprint(w, "finished")
	}), nil)
	answers := make(chan string, 2)
	for _, path := range []string{"/answer", "/stream"} {
		go func() {
			r, err := http.Get("http://" + address + path)
			if err != nil {
				answers <- err.Error()
				return
			}
			defer r.Body.Close()
			body, err := io.ReadAll(r.Body)
			answers <- fmt.Sprint(string(body), err)
		}()
	}
	<-arrived
	<-arrived
	stopping := make(chan error, 1)
	go func() { stopping <- stop() }()
	// Nobody is let in any more once the listener is closed.
	for {
		c, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		c.Close()
	}
	close(finish)
	if got := <-answers; got != "finished<nil>" {
		t.Errorf("the answer is %q", got)
	}
	if got := <-answers; got != "<nil>" {
		t.Errorf("the stream ended with %q", got)
	}
	if err := <-stopping; err != nil {
		t.Error(err)
	}
}

// A session has taken its connection over, and still has its end to say.
func TestAServerThatStopsWaitsForSessions(t *testing.T) {
	arrived, said := make(chan struct{}), make(chan error, 1)
	address, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		close(arrived)
		<-r.Context().Done()
		if cause := context.Cause(r.Context()); cause != errStops {
			t.Errorf("its context ends because of %v", cause)
		}
		_, err = io.WriteString(conn, "over")
		_, readErr := io.ReadFull(conn, make([]byte, 2)) // it was heard
		said <- errors.Join(err, readErr)
	}), nil)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-arrived
	go func() {
		if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
			t.Error(err)
		}
		fmt.Fprint(conn, "ok")
	}()
	if err := stop(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-said:
		if err != nil {
			t.Error(err)
		}
	default:
		t.Error("the server has stopped before the session was over")
	}
}

// issue makes certificates of an authority below dir.
func issue(t *testing.T, dir, name string, validFor time.Duration) TLS {
	t.Helper()
	a, err := devcerts.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := a.Issue(devcerts.Request{File: name, Name: name, Units: []string{"diego-bbs"}, Hosts: []string{"127.0.0.1"}, For: validFor})
	if err != nil {
		t.Fatal(err)
	}
	return TLS{TLSCert: cert, TLSKey: key, TLSCA: a.CA()}
}

func open(t *testing.T, s TLS) *Certificates {
	t.Helper()
	c, err := s.Certificates(new(Logging).Logger(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFilesOfCertificatesThatAreOfNoUseAreNamed(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	good, expired, stranger := issue(t, dir, "good", time.Hour), issue(t, dir, "old", -time.Minute), issue(t, other, "stranger", time.Hour)
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		tls  TLS
		want []string
	}{
		{"missing", TLS{dir + "/no-cert", dir + "/no-key", dir + "/no-ca"}, []string{"tls_cert: open", "tls_key: open", "tls_ca: open", "scripts/certs makes such files"}},
		{"another's key", TLS{good.TLSCert, stranger.TLSKey, good.TLSCA}, []string{good.TLSCert, stranger.TLSKey, "do not make a pair"}},
		{"no certificate", TLS{text, good.TLSKey, good.TLSCA}, []string{text, "do not make a pair"}},
		{"no authority", TLS{good.TLSCert, good.TLSKey, text}, []string{text, "no certificate in it"}},
		{"expired", expired, []string{expired.TLSCert, `the certificate of "old" expired at`}},
		{"of another authority", TLS{stranger.TLSCert, stranger.TLSKey, good.TLSCA}, []string{"does not come from an authority in tls_ca " + good.TLSCA}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.tls.Certificates(nil)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %s", err, want)
				}
			}
		})
	}
	if c, err := new(TLS).Certificates(nil); c != nil || err != nil || c.Client() != nil {
		t.Errorf("none are set, and there is %v, %v", c, err)
	}
}

func TestACertificateThatIsGoodForAskingOnlyIsRefusedAtTheStart(t *testing.T) {
	a, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := a.Issue(devcerts.Request{File: "me", Name: "me", Units: []string{"diego-bbs"}, For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	e := Endpoint{TLS: TLS{TLSCert: cert, TLSKey: key, TLSCA: a.CA()}, Listen: "127.0.0.1:0"}
	_, err = e.Open(httpapi.Identity{Roles: []httpapi.Role{httpapi.BBSRole}}, new(Logging).Logger(io.Discard))
	if err == nil || !strings.Contains(err.Error(), cert+` of "me" may not be used to serve (serverAuth)`) || !strings.Contains(err.Error(), "scripts/certs bbs:me") {
		t.Errorf("got %v", err)
	}
}

func TestACertificateOfSomebodyElseIsRefusedAtTheStart(t *testing.T) {
	own := issue(t, t.TempDir(), "me", time.Hour) // as diego-bbs, for 127.0.0.1
	for _, tt := range []struct {
		name      string
		who       httpapi.Identity
		advertise string
		want      []string
	}{
		{"its own", httpapi.Identity{Name: "me", Roles: []httpapi.Role{httpapi.BBSRole}}, "", nil},
		{"anybody's with the role", httpapi.Identity{Roles: []httpapi.Role{httpapi.BBSRole}}, "https://127.0.0.1:1", nil},
		{"another's", httpapi.Identity{Name: "cell-1", Roles: []httpapi.Role{httpapi.CellRole}}, "", []string{
			own.TLSCert, `is of "me"`, `of "cell-1"`, "scripts/certs cell:cell-1"}},
		{"one without a role", httpapi.Identity{Roles: []httpapi.Role{httpapi.BBSRole, httpapi.AuctioneerRole}}, "", []string{
			own.TLSCert, "lacks the role auctioneer", "scripts/certs bbs+auctioneer:me"}},
		{"one for another host", httpapi.Identity{}, "https://bbs-1.example:8889", []string{
			own.TLSCert, "bbs-1.example", "scripts/certs -hosts", "--advertise"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := Endpoint{TLS: own, Listen: "127.0.0.1:0", Advertise: tt.advertise}
			server, err := e.Open(tt.who, new(Logging).Logger(io.Discard))
			if err == nil {
				server.Close()
			}
			if (err == nil) != (tt.want == nil) {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %s", err, want)
				}
			}
		})
	}
}

func TestAddressesOfServicesAreBaseURLs(t *testing.T) {
	for _, tt := range []struct {
		plain bool
		url   string
		good  bool
	}{
		{false, "https://bbs-1.example:8889", true}, {false, "https://bbs-1.example:8889/", true},
		{false, "http://bbs-1.example:8889", false}, {true, "http://bbs-1.example:8889", true}, {true, "https://bbs-1.example:8889", true},
		{true, "127.0.0.1:8889", false}, {true, "bbs-1.example", false}, {true, "https://bbs-1.example/v1", false},
		{true, "https://me@bbs-1.example", false}, {true, "https://bbs-1.example?a=b", false}, {true, "ftp://bbs-1.example", false},
	} {
		var got string
		(&Endpoint{Plain: tt.plain}).CheckURLs(func(name, want string) { got = name + ": " + want }, "bbs", []string{tt.url})
		if (got == "") != tt.good || !tt.good && !strings.HasPrefix(got, "bbs: want base URLs such as http") {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

func TestSettingsOfTLSAreSetTogether(t *testing.T) {
	var got []string
	(&TLS{TLSKey: "x"}).CheckTLS(func(name, _ string) { got = append(got, name) })
	if strings.Join(got, " ") != "tls_cert tls_ca" {
		t.Errorf("%q", got)
	}
}

func TestClientsAreKnownByTheirCertificatesAndStrangersAreRefused(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	server, client, stranger := issue(t, dir, "server", time.Hour), issue(t, dir, "client", time.Hour), issue(t, other, "stranger", time.Hour)
	address, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range r.TLS.PeerCertificates {
			fmt.Fprint(w, c.Subject.CommonName)
		}
	}), open(t, server))
	get := func(config *tls.Config) (string, error) {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		r, err := c.Get("https://" + address)
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		return string(body), err
	}
	known := open(t, client).Client()
	if name, err := get(known); name != "client" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	if name, err := get(&tls.Config{RootCAs: known.RootCAs}); name != "" || err != nil {
		t.Errorf("without a certificate: %q, %v", name, err)
	}
	if _, err := get(open(t, stranger).Client()); err == nil {
		t.Error("a stranger trusts the server")
	}
	// One that trusts the server and has a stranger's certificate.
	pair, err := tls.LoadX509KeyPair(stranger.TLSCert, stranger.TLSKey)
	if err != nil {
		t.Fatal(err)
	}
	forged := &tls.Config{RootCAs: known.RootCAs, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}
	if name, err := get(forged); err == nil {
		t.Errorf("a stranger is let in as %q", name)
	}
}

func TestCertificatesAreReadAgainWhenTheirFilesChange(t *testing.T) {
	patience := lookEvery
	lookEvery = 0
	defer func() { lookEvery = patience }()
	dir := t.TempDir()
	s := issue(t, dir, "server", time.Hour)
	var log testenv.Output
	c, err := s.Certificates(new(Logging).Logger(&log))
	if err != nil {
		t.Fatal(err)
	}
	first := c.current().own.Leaf.SerialNumber
	if c.current().own.Leaf.SerialNumber.Cmp(first) != 0 {
		t.Error("another certificate, and nothing has changed")
	}
	issue(t, dir, "server", 2*time.Hour)
	second := c.current().own.Leaf.SerialNumber
	if second.Cmp(first) == 0 {
		t.Error("still the first certificate")
	}
	// Files that cannot be used are logged once, and the last usable ones stay.
	if err := os.WriteFile(s.TLSCert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if c.current().own.Leaf.SerialNumber.Cmp(second) != 0 {
			t.Error("another certificate than the last good one")
		}
	}
	if n := strings.Count(log.String(), "cannot be used"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
	issue(t, dir, "server", 3*time.Hour)
	if c.current().own.Leaf.SerialNumber.Cmp(second) == 0 {
		t.Error("the new certificate after the broken one is not taken")
	}
}

func TestANewCertificateThatOthersWouldRefuseIsNotUsed(t *testing.T) {
	patience := lookEvery
	lookEvery = 0
	defer func() { lookEvery = patience }()
	dir := t.TempDir()
	var log testenv.Output
	e := Endpoint{TLS: issue(t, dir, "server", time.Hour), Listen: "127.0.0.1:0"} // as diego-bbs, for 127.0.0.1
	server, err := e.Open(httpapi.Identity{Name: "server", Roles: []httpapi.Role{httpapi.BBSRole}}, new(Logging).Logger(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	first := server.certificates.current().own.Leaf.SerialNumber
	a, err := devcerts.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, unit, host string
		want             string // of the log; "" if it is used
	}{
		{"server", "diego-consumer", "127.0.0.1", "lacks the role bbs"},
		{"other", "diego-bbs", "127.0.0.1", `is of \"other\"`},
		{"server", "diego-bbs", "bbs-1.example", "is not good for 127.0.0.1"},
		{"server", "diego-bbs", "127.0.0.1", ""},
	} {
		if _, _, err := a.Issue(devcerts.Request{File: "server", Name: tt.name, Units: []string{tt.unit}, Hosts: []string{tt.host}, For: time.Hour}); err != nil {
			t.Fatal(err)
		}
		used := server.certificates.current().own.Leaf.SerialNumber.Cmp(first) != 0
		if used != (tt.want == "") || !strings.Contains(log.String(), tt.want) {
			t.Errorf("%+v: used: %t; the log:\n%s", tt, used, log.String())
		}
	}
}

func TestAClientFollowsAChangeOfTheAuthority(t *testing.T) {
	patience := lookEvery
	lookEvery = 0
	defer func() { lookEvery = patience }()
	was, next, files := t.TempDir(), t.TempDir(), t.TempDir()
	settings := issue(t, was, "server", time.Hour)
	later := issue(t, next, "server", 2*time.Hour)
	use := func(s TLS) TLS {
		for _, file := range []*string{&s.TLSCert, &s.TLSKey, &s.TLSCA} {
			text, err := os.ReadFile(*file)
			if err != nil {
				t.Fatal(err)
			}
			*file = filepath.Join(files, filepath.Base(*file))
			if err := os.WriteFile(*file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	c, err := func() (*Certificates, error) {
		s := use(settings)
		return s.Certificates(slog.New(slog.DiscardHandler))
	}()
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", c.Server())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{Convergence: converging{}})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	server.SetKeepAlivesEnabled(false) // each call has a connection
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	ask := func(o httpapi.ClientOptions) error {
		o.Addresses, o.Attempts = []string{"https://" + l.Addr().String()}, 1
		client, err := httpapi.NewRemoteBBS(o)
		if err != nil {
			t.Fatal(err)
		}
		// No role may do that, but only a known caller gets this answer.
		if err := client.Converge(t.Context()); !errors.Is(err, httpapi.ErrForbidden) {
			return err
		}
		return nil
	}
	fixed := httpapi.ClientOptions{TLS: c.Client()}
	if err := errors.Join(ask(fixed), ask(httpapi.ClientOptions{NewTLS: c.Client})); err != nil {
		t.Fatal(err)
	}
	use(later)
	if err := ask(httpapi.ClientOptions{NewTLS: c.Client}); err != nil {
		t.Errorf("with the new authority: %v", err)
	}
	if err := ask(fixed); !errors.Is(err, httpapi.ErrUnreachable) {
		t.Errorf("who trusts the old authority only gets %v", err)
	}
}

type converging struct{}

func (converging) Converge(context.Context) error { return nil }

func TestAConnectionDoesNotLastLongerThanItsClientsCertificate(t *testing.T) {
	var later atomic.Int64
	timeNow = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	defer func() { timeNow = time.Now }()
	dir := t.TempDir()
	certificates := open(t, issue(t, dir, "server", time.Hour))
	address, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }), certificates)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		later.Store(0)
		transport := &http.Transport{TLSClientConfig: certificates.Client(), ForceAttemptHTTP2: protocol == "HTTP/2.0"}
		defer transport.CloseIdleConnections()
		// ask reports whether a connection with HTTP/2 was there already, and whether one
		// with HTTP/1.1, which may not be free again so soon, goes on.
		ask := func() bool {
			t.Helper()
			var reused bool
			trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }}
			r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, "https://"+address, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != protocol {
				t.Fatalf("the answer is %q, %v, want %q", body, err, protocol)
			}
			return !response.Close && (reused || protocol == "HTTP/1.1")
		}
		ask()
		if !ask() {
			t.Errorf("%s: a connection ends after its first use", protocol)
		}
		later.Store(int64(2 * time.Hour))
		ask() // it may still be answered
		for end := time.Now().Add(time.Minute); ask(); {
			if time.Now().After(end) {
				t.Fatalf("%s: a connection is still used although its client's certificate has expired", protocol)
			}
		}
	}
}

func TestARequestEndsSoonAfterItsClientsCertificate(t *testing.T) {
	var later atomic.Int64
	timeNow = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	defer func() { timeNow = time.Now }()
	outlivedTime = time.Millisecond
	defer func() { outlivedTime = time.Minute }()
	certificates := open(t, issue(t, t.TempDir(), "server", time.Hour))
	address, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if end, bounded := r.Context().Deadline(); !bounded {
			fmt.Fprint(w, "has no end")
		} else if time.Until(end) > time.Minute {
			fmt.Fprint(w, "ends with the certificate: ", time.Until(end) < 2*time.Hour)
		} else {
			<-r.Context().Done()
			fmt.Fprint(w, context.Cause(r.Context()))
		}
	}), certificates)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, test := range []struct {
			later time.Duration
			want  string
		}{{0, "ends with the certificate: true"}, {2 * time.Hour, errOutlived.Error()}} {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: certificates.Client(), ForceAttemptHTTP2: protocol == "HTTP/2.0"}}
			defer client.CloseIdleConnections()
			later.Store(int64(test.later))
			response, err := client.Get("https://" + address)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if string(body) != test.want || err != nil || response.Proto != protocol {
				t.Errorf("%s: after %v, a request with %s: %q, %v; want %q", protocol, test.later, response.Proto, body, err, test.want)
			}
		}
	}
}

// Some authorities write the year 9999 for no end.
func TestARequestDoesNotEndWithACertificateThatHasNoEnd(t *testing.T) {
	certificate := &x509.Certificate{NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}, VerifiedChains: [][]*x509.Certificate{{certificate}}}
	ctx, outlived, end := bounded(r)
	defer end()
	if ctx.Err() != nil || outlived {
		t.Errorf("a request has ended: %v (outlived: %v)", context.Cause(ctx), outlived)
	}
}

func TestServingEndsWithAnErrorIfTheListenerDoes(t *testing.T) {
	l, err := Listen("listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := Serve(t.Context(), l, http.NotFoundHandler(), nil, new(Logging).Logger(io.Discard)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestPlainAtAnAddressThatOtherMachinesReachIsWarnedOf(t *testing.T) {
	for listen, warned := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, "0.0.0.0:0": true, ":0": true} {
		e := Endpoint{Plain: true, Listen: listen, Advertise: "http://127.0.0.1:1"}
		log := new(testenv.Output)
		server, err := e.Open(httpapi.Identity{}, new(Logging).Logger(log))
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Serve(t.Context(), httpapi.HandlerOptions{Convergence: converging{}}, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "plain: other machines can reach"); got != warned {
			t.Errorf("%s: %s", listen, log.String())
		}
	}
}

// everything has what most daemons have.
type everything struct {
	Logging
	Endpoint
	Store
}

func (s *everything) Check(report func(name, want string)) {
	s.Endpoint.Check(report)
	s.CheckStore(report)
}

func TestAnAddressAndADatabaseThatCannotBeAreToldBeforeAnythingIsOpened(t *testing.T) {
	const port = "want a host and a port from 0 to 65535 such as 127.0.0.1:8889"
	for _, tt := range []struct {
		name string
		args []string
		want []string // what each problem says
	}{
		{"nothing", []string{"--listen", "127.0.0.1:0", "--store", "sqlite:x.db"}, nil},
		{"both", []string{"--listen", ":99999", "--store", "oracle:x:secret"}, []string{"listen: :99999: " + port, "store: (not shown): the data source name begins with none of"}},
		{"no port", []string{"--listen", "localhost", "--metrics-listen", "localhost:web:1", "--store", "sqlite:"}, []string{"listen: localhost: " + port, "metrics_listen: localhost:web:1: " + port, "store: (not shown): the data source name of SQLite cannot be read"}},
		{"a named port", []string{"--listen", "localhost:http", "--store", "postgres://u:secret@h/db"}, nil},
		{"of a server", []string{"--listen", "localhost:80", "--store", "mysql:secret"}, []string{"the data source name of MySQL cannot be read"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Load(new(everything), append(tt.args, "--plain"))
			var all *SettingsError
			if errors.As(err, &all) != (len(tt.want) > 0) || all != nil && len(all.Problems) != len(tt.want) {
				t.Fatalf("got %v; want %d problems", err, len(tt.want))
			}
			for i, want := range tt.want {
				if got := all.Problems[i].String(); !strings.Contains(got, want) || strings.Contains(got, "secret") {
					t.Errorf("problem %d is %q; want %q in it", i, got, want)
				}
			}
		})
	}
}
