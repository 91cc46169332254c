package reach_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/reach"
)

func networks(t *testing.T, list ...string) []netip.Prefix {
	t.Helper()
	parsed, err := reach.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestTheHostAndItsNeighboursAreRefusedInEveryForm(t *testing.T) {
	var p reach.Policy
	for _, addr := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "169.254.169.254", "224.0.0.1", "239.255.255.255", "255.255.255.255",
		"::1", "::", "fe80::1", "fe80::1%eth0", "ff02::1", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42",
		"168.63.129.16", "100.100.100.200", "192.0.0.192", "64:ff9b::100.100.100.200",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", // mapped and compatible
		"::ffff:0:127.0.0.1", "::ffff:0:169.254.169.254", // translated
		"64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1", // NAT64
		"2002:7f00:1::1", "2002:a9fe:a9fe::", // 6to4
		"2001:0:1:2:3:4:80ff:fffe",                                       // Teredo
		"2001:db8::5efe:127.0.0.1", "2001:db8::200:5efe:169.254.169.254", // ISATAP
	} {
		err := p.Check(netip.MustParseAddr(addr))
		var refused *reach.RefusedError
		if !errors.As(err, &refused) || !errors.Is(err, reach.ErrRefused) || !strings.Contains(err.Error(), netip.MustParseAddr(addr).String()+" is in ") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{
		"8.8.8.8", "10.0.0.1", "192.168.1.1", "10.224.0.1", "172.16.0.1", "126.255.255.255", "128.0.0.1", "169.253.255.255", "223.255.255.255",
		"2001:db8::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::8.8.8.8", "::ffff:0:8.8.8.8", "2002:808:808::1",
	} {
		if err := p.Check(netip.MustParseAddr(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestWhatIsAllowedWinsOverWhatIsDenied(t *testing.T) {
	p := reach.Policy{Allow: networks(t, "127.0.0.1", "10.1.0.0/16"), Deny: networks(t, "10.0.0.0/8", "::ffff:192.168.0.0/112")}
	for addr, allowed := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.0.0.1": true, "127.0.0.2": false, "::1": false,
		"10.1.2.3": true, "10.2.0.1": false, "64:ff9b::10.2.0.1": false, "64:ff9b::10.1.0.1": true,
		"192.168.7.7": false, "192.169.0.1": true, "8.8.8.8": true,
	} {
		if err := p.Check(netip.MustParseAddr(addr)); (err == nil) != allowed {
			t.Errorf("%s: %v, want allowed: %t", addr, err, allowed)
		}
	}
	only := reach.Policy{Allow: networks(t, "10.0.0.0/8"), Deny: networks(t, "0.0.0.0/0", "::/0")}
	for addr, allowed := range map[string]bool{"10.0.0.1": true, "8.8.8.8": false, "2001:db8::1": false, "::ffff:10.0.0.1": true} {
		if err := only.Check(netip.MustParseAddr(addr)); (err == nil) != allowed {
			t.Errorf("where only 10.0.0.0/8 is allowed, %s: %v", addr, err)
		}
	}
}

func TestNetworksThatAreNoneAreNamed(t *testing.T) {
	for _, text := range []string{"10.0.0.1/8", "example.com", "10.0.0.0/33", "", "fe80::1%eth0", "127.0.0.1:80"} {
		if _, err := reach.Parse([]string{"10.0.0.0/8", text}); err == nil || !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// inner is a server at a port of loopback that counts what reaches it.
func inner(t *testing.T) (port string, reached *atomic.Int64) {
	t.Helper()
	reached = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, reached
}

func TestAClientIsJudgedByTheAddressThatItDials(t *testing.T) {
	port, reached := inner(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:"+port) // a proxy would reach anything
	client := reach.Policy{}.Client(time.Second)
	for name, to := range map[string]string{
		"an address":                     "http://127.0.0.1:" + port,
		"a name":                         "http://localhost:" + port,
		"an IPv4-mapped address":         "http://[::ffff:127.0.0.1]:" + port,
		"an address of the host":         "http://0.0.0.0:" + port,
		"the other loopback":             "http://[::1]:" + port,
		"a name that only a proxy knows": "http://nowhere.invalid/",
	} {
		_, err := client.Get(to)
		if err == nil || reached.Load() > 0 {
			t.Fatalf("%s reaches it: %v", name, err)
		}
		if !strings.Contains(to, "invalid") && !errors.Is(err, reach.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	allowed := reach.Policy{Allow: networks(t, "127.0.0.0/8", "::1")}.Client(time.Second)
	answer, err := allowed.Get("http://localhost:" + port)
	if err != nil || reached.Load() != 1 {
		t.Fatalf("where it is allowed: %v", err)
	}
	answer.Body.Close()
}

func TestARedirectIsJudgedLikeTheFirstAddress(t *testing.T) {
	port, reached := inner(t)
	outer := httptest.NewServer(http.RedirectHandler("http://0.0.0.0:"+port, http.StatusTemporaryRedirect))
	defer outer.Close()
	client := reach.Policy{Allow: networks(t, "127.0.0.1")}.Client(time.Second)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, outer.URL, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(request); !errors.Is(err, reach.ErrRefused) || reached.Load() > 0 {
		t.Errorf("a redirect reaches it: %v", err)
	}
}

// Tenants choose the servers, and many answers may come at once.
func TestAnAnswerWithManyHeadersIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 10_000 {
			w.Header()[strconv.Itoa(i)] = []string{"12345678"}
		}
	}))
	defer server.Close()
	client := reach.Policy{Allow: networks(t, "127.0.0.0/8")}.Client(time.Minute)
	defer client.CloseIdleConnections()
	if _, err := client.Get(server.URL); err == nil || !strings.Contains(err.Error(), "headers exceeded") {
		t.Errorf("the error is %v", err)
	}
}

type notATransport struct{}

func (notATransport) RoundTrip(*http.Request) (*http.Response, error) { panic("asked") }

// A program may have replaced or changed the default transport.
// A client reads all that a server sends on an HTTP/2 connection that is kept.
func TestAClientDoesNotUseHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Proto))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := reach.Policy{Allow: networks(t, "127.0.0.0/8")}.Client(time.Minute)
	defer client.CloseIdleConnections()
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: trusted}
	answer, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "HTTP/1.1" {
		t.Errorf("the protocol is %q, %v", text, err)
	}
}

func TestAClientDoesNotDependOnTheDefaultTransport(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	defer func(original http.RoundTripper) { http.DefaultTransport = original }(http.DefaultTransport)
	http.DefaultTransport = notATransport{}
	client := reach.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}.Client(time.Minute)
	defer client.CloseIdleConnections()
	if answer, err := client.Get(server.URL); err != nil || answer.StatusCode != http.StatusNotFound {
		t.Errorf("the answer is %v, %v", answer, err)
	}
}
