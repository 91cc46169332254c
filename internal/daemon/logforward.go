package daemon

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/daemon/otlp"
	"github.com/diegosdk/diego/rep/logforward"
	"github.com/diegosdk/diego/rep/logforward/syslog"
)

// LogForward are the settings of where a cell sends the output of its containers,
// for embedding.
type LogForward struct {
	LogForward            []string      `name:"log_forward" option:"logforward.Options.Destinations,by hand" help:"where each line that containers write is sent: syslog-tls://HOST:6514 or syslog-tcp://HOST:601 for RFC 5424, otlp+https://HOST:4318 or otlp+http://HOST:4318 for OpenTelemetry"`
	LogForwardTLSCert     string        `name:"log_forward_tls_cert" help:"PEM file with the certificate that is shown to these servers; it is read again for each connection"`
	LogForwardTLSKey      string        `name:"log_forward_tls_key" help:"PEM file with the private key of log_forward_tls_cert"`
	LogForwardTLSCA       string        `name:"log_forward_tls_ca" help:"PEM file with authorities that the servers' certificates may come from, besides those of the host; it is read again for each connection"`
	LogForwardBufferBytes int64         `name:"log_forward_buffer_bytes" option:"logforward.Options.BufferBytes" default:"8388608" range:"65536..1099511627776" unit:"bytes" help:"how much may wait for each of these servers before the oldest lines are dropped"`
	LogForwardFlush       time.Duration `name:"log_forward_flush" option:"logforward.Options.FlushTimeout" default:"5s" range:"1ms..10m" help:"how long a cell that ends may take to send what waits"`
	LogForwardEnterprise  int64         `name:"log_forward_enterprise" default:"32473" range:"1..4294967295" help:"the private enterprise number in the names of syslog's structured data; 32473 is for examples"`
}

// CheckLogForward is for the Check method of settings that embed LogForward.
func (s *LogForward) CheckLogForward(report func(name, want string)) {
	if (s.LogForwardTLSCert == "") != (s.LogForwardTLSKey == "") {
		report("log_forward_tls_key", "want it set together with log_forward_tls_cert, or not at all")
	}
	for i, text := range s.LogForward {
		if _, err := s.sink(text, nil); err != nil {
			report("log_forward", err.Error())
			return
		}
		if slices.Contains(s.LogForward[:i], text) {
			report("log_forward", fmt.Sprintf("want each once; %s is there twice", text))
			return
		}
	}
}

// Forwarder sends the lines of the containers of a cell once it runs. It is nil if
// there is nowhere to send them to. figures may be nil.
func (s *LogForward) Forwarder(cellID string, figures auction.Metrics, log *slog.Logger) (*logforward.Forwarder, error) {
	if len(s.LogForward) == 0 {
		return nil, nil
	}
	config, err := clientTLS("log_forward_tls", s.LogForwardTLSCert, s.LogForwardTLSKey, s.LogForwardTLSCA)
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	o := logforward.Options{CellID: cellID, Metrics: figures, Logger: log}
	apply(s, &o)
	for _, text := range s.LogForward {
		sink, err := s.sink(text, config)
		if err != nil {
			return nil, fmt.Errorf("log_forward: %w", err)
		}
		o.Destinations = append(o.Destinations, logforward.Destination{Name: text, Sink: sink})
	}
	return logforward.New(o)
}

// sink is what sends to the server of a URL.
func (s *LogForward) sink(text string, config *tls.Config) (logforward.Sink, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return nil, errors.New("want URLs such as syslog-tls://logs.example:6514 or otlp+https://otel.example:4318, with a host and without a password, ? and #")
	}
	if config != nil && s.LogForwardTLSCA != "" {
		config = rereadCA(config, "log_forward_tls", s.LogForwardTLSCA, u.Hostname())
	}
	port := map[string]string{"syslog-tls": "6514", "syslog-tcp": "601", "otlp+https": "4318", "otlp+http": "4318"}[u.Scheme]
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	switch u.Scheme {
	case "syslog-tls", "syslog-tcp":
		if u.Path != "" && u.Path != "/" {
			return nil, fmt.Errorf("want no path after the host of %s", text)
		}
		if u.Scheme == "syslog-tcp" {
			config = nil
		}
		return &syslog.Sink{Address: address, TLS: config, Enterprise: uint32(s.LogForwardEnterprise)}, nil
	case "otlp+https", "otlp+http":
		path := u.Path
		if path == "" || path == "/" {
			path = "/v1/logs"
		}
		to := url.URL{Scheme: u.Scheme[len("otlp+"):], Host: address, Path: path}
		return &otlp.Sink{URL: to.String(), Client: &http.Client{
			// A transport adds its protocols to its own configuration.
			CheckRedirect: otlp.NoRedirect, Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true},
		}}, nil
	}
	return nil, fmt.Errorf("want syslog-tls, syslog-tcp, otlp+https or otlp+http before the :// of %s", text)
}
