package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon/otlp"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/rep/logforward/syslog"
)

func TestADestinationOfLogsIsAURL(t *testing.T) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	settings := LogForward{LogForwardEnterprise: 4711}
	for text, want := range map[string]string{
		"syslog-tls://logs.example:7000": "syslog logs.example:7000 encrypted 4711",
		"syslog-tls://logs.example":      "syslog logs.example:6514 encrypted 4711",
		"syslog-tcp://[::1]/":            "syslog [::1]:601 plain 4711",
		"otlp+https://otel.example":      "https://otel.example:4318/v1/logs",
		"otlp+http://10.0.0.1:80/own":    "http://10.0.0.1:80/own",

		"syslog-tls://logs.example:6514/x": "want no path",
		"syslog://logs.example":            "want syslog-tls, syslog-tcp, otlp+https or otlp+http",
		"logs.example:6514":                "want URLs such as",
		"syslog-tls://":                    "want URLs such as",
		"otlp+https://a:b@otel.example":    "without a password",
		"otlp+https://otel.example?a=b":    "want URLs such as",
		"syslog-tls://logs.example:x":      "want URLs such as",
	} {
		sink, err := settings.sink(text, config)
		got := ""
		switch s := sink.(type) {
		case *syslog.Sink:
			kind := map[*tls.Config]string{config: "encrypted", nil: "plain"}[s.TLS]
			got = fmt.Sprint("syslog ", s.Address, " ", kind, " ", s.Enterprise)
		case *otlp.Sink:
			got = s.URL
		default:
			got = err.Error()
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// Otherwise syslog servers would be offered HTTP, while another goroutine writes
// what is offered.
func TestDestinationsShareNoConfigurationOfTLSThatOneChanges(t *testing.T) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	sink, err := new(LogForward).sink("otlp+https://127.0.0.1:1", config)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = sink.Send(ended, nil) // the first request adds protocols
	if len(config.NextProtos) > 0 {
		t.Errorf("offered are %q", config.NextProtos)
	}
}

func TestTheAuthoritiesOfDestinationsAreReadAgainForEachConnection(t *testing.T) {
	at, elsewhere := t.TempDir(), t.TempDir()
	certificates := issue(t, at, "server", time.Hour) // for 127.0.0.1
	a, err := devcerts.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	trust := func(file string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(ca, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var shown atomic.Pointer[tls.Config]
	show := func(s TLS) {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
		if err != nil {
			t.Fatal(err)
		}
		shown.Store(&tls.Config{Certificates: []tls.Certificate{pair}})
	}
	show(certificates)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return shown.Load(), nil }}
	server.StartTLS()
	defer server.Close()
	settings := LogForward{LogForwardTLSCA: ca}
	sink, err := settings.sink("otlp+"+server.URL, &tls.Config{MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	send := func(want string) {
		t.Helper()
		err := sink.Send(t.Context(), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
		_ = sink.Close() // the next Send connects again
	}
	send("log_forward_tls_ca: open")
	trust(issue(t, elsewhere, "other", time.Hour).TLSCA)
	send("unknown authority")
	trust(a.CA())
	send("")
	cert, key, err := a.Issue(devcerts.Request{File: "far", Name: "far", Hosts: []string{"10.0.0.1", "logs.example"}, For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	show(TLS{TLSCert: cert, TLSKey: key})
	send("not 127.0.0.1")
}

func TestSettingsOfLogForwardingThatCannotBeAreNamed(t *testing.T) {
	report := func(change func(*LogForward)) (list []string) {
		var s LogForward
		change(&s)
		s.CheckLogForward(func(name, want string) { list = append(list, name+": "+want) })
		return list
	}
	if got := report(func(s *LogForward) { s.LogForward = []string{"syslog-tls://a", "syslog-tls://a"} }); !cmp.Equal(got, []string{"log_forward: want each once; syslog-tls://a is there twice"}) {
		t.Errorf("got %q", got)
	}
	if got := report(func(s *LogForward) { s.LogForward = []string{"syslog-tls://a", "ftp://a"} }); len(got) != 1 || !strings.Contains(got[0], "ftp://a") {
		t.Errorf("got %q", got)
	}
	c := sampleCell(t.TempDir())
	c.LogForward.LogForward, c.LogForwardTLSCA = []string{"syslog-tls://a"}, t.TempDir()+"/none"
	if _, _, err := c.Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard)); err == nil || !strings.Contains(err.Error(), "log_forward_tls_ca") {
		t.Errorf("got %v", err)
	}
}
