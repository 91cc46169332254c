package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/diegosdk/diego/console"
	"github.com/diegosdk/diego/httpapi"
)

// Endpoint are the settings of what a daemon serves and of how it calls others,
// for embedding. The value of Listen before the settings are loaded is its
// default.
type Endpoint struct {
	TLS
	Listen        string        `name:"listen" required:"true" help:"host and port of the API, with /healthz and /readyz; port 0 is any that is free"`
	Advertise     string        `name:"advertise" option:"diego.Options.Address auctioneer.Options.Address,by hand" help:"base URL at which others reach this process; unless set, that of listen"`
	Plain         bool          `name:"plain" option:"httpapi.HandlerOptions.AllowPlain httpapi.ClientOptions.AllowPlain,by hand" help:"serve and ask without TLS: everybody who reaches this process may do everything"`
	MaxBodyBytes  int64         `name:"max_body_bytes" option:"httpapi.HandlerOptions.MaxBodyBytes" default:"4194304" range:"1024..1073741824" unit:"bytes" help:"how long the arguments of a call may be"`
	ServeTimeout  time.Duration `name:"serve_timeout" option:"httpapi.HandlerOptions.Timeout" default:"30s" range:"100ms..1h" help:"how long a call may take, including the arrival of its arguments"`
	WriteTimeout  time.Duration `name:"write_timeout" option:"httpapi.HandlerOptions.WriteTimeout" default:"30s" range:"100ms..1h" help:"how long a reader may take to accept what was sent to it"`
	MetricsListen string        `name:"metrics_listen" help:"host and port of /metrics, /healthz and /readyz over plain HTTP, for clients without a certificate"`
}

// Check implements [Checker].
func (e *Endpoint) Check(report func(name, want string)) {
	switch {
	case e.Plain && e.TLS != TLS{}:
		report("plain", "want either plain or tls_cert, tls_key and tls_ca")
	case !e.Plain && e.TLS == TLS{}:
		report("tls_cert", "missing: set tls_cert, tls_key and tls_ca (scripts/certs makes such files), or plain where nobody else reaches this process")
	}
	e.CheckTLS(report)
	checkListen(report, "listen", e.Listen)
	checkListen(report, "metrics_listen", e.MetricsListen)
	if e.Advertise != "" {
		u, err := url.Parse(e.Advertise)
		if err != nil || u.Host == "" || u.Scheme != e.scheme() || u.Path != "" {
			report("advertise", "want a base URL such as "+e.scheme()+"://bbs-1.example:8889")
		}
	}
}

// checkListen reports an address, if it is set, at which nothing can listen.
func checkListen(report func(name, want string), name, address string) {
	if address == "" {
		return
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		report(name, fmt.Sprintf("want a host and a port from 0 to 65535 such as 127.0.0.1:8889 (%v)", err))
	}
}

// CheckURLs is for the Check method of settings that name other processes. list
// is the value of the setting name.
func (e *Endpoint) CheckURLs(report func(name, want string), name string, list []string) {
	if len(list) == 0 {
		return
	}
	// A new client does not connect yet.
	if _, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: list, AllowPlain: e.Plain}); err != nil {
		report(name, "want base URLs such as "+e.scheme()+"://host-1.example:8889")
	}
}

func (e *Endpoint) scheme() string {
	if e.Plain {
		return "http"
	}
	return "https"
}

// A Server is an Endpoint that listens.
type Server struct {
	// URL is where others reach it.
	URL string
	// Figures are served at /metrics.
	Figures *httpapi.Prometheus
	// Console, unless nil, says how the console reaches cells; it is served beside
	// the API.
	Console *console.Options

	settings     *Endpoint
	certificates *Certificates
	api, metrics net.Listener // metrics may be nil
	log          *slog.Logger
}

// Open reads the certificates, which must have the roles and the name of who
// (an empty name allows any), and listens. Nothing is answered before Serve.
func (e *Endpoint) Open(who httpapi.Identity, log *slog.Logger) (*Server, error) {
	s := &Server{URL: e.Advertise, Figures: new(httpapi.Prometheus), settings: e, log: log}
	var err error
	if s.certificates, err = e.Certificates(log); err != nil {
		return nil, err
	}
	if s.api, err = Listen("listen", e.Listen); err != nil {
		return nil, err
	}
	if e.MetricsListen != "" {
		if s.metrics, err = Listen("metrics_listen", e.MetricsListen); err != nil {
			return nil, errors.Join(err, s.api.Close())
		}
	}
	if s.URL == "" {
		at := s.api.Addr().(*net.TCPAddr)
		if at.IP.IsUnspecified() {
			s.Close()
			return nil, fmt.Errorf("listen is %s, which is every address of this host: say with advertise (--advertise) at which one others reach it", e.Listen)
		}
		s.URL = e.scheme() + "://" + at.String()
	}
	if s.certificates != nil {
		u, err := url.Parse(s.URL)
		if err == nil {
			err = s.certificates.require(func(l loaded) error { return e.check(l.own.Leaf, who, u) })
		}
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close stops listening, if Serve has not done so.
func (s *Server) Close() {
	_ = s.api.Close()
	if s.metrics != nil {
		_ = s.metrics.Close()
	}
}

// Client returns how this process calls others.
func (s *Server) Client() httpapi.ClientOptions {
	o := httpapi.ClientOptions{AllowPlain: s.settings.Plain}
	if s.certificates != nil {
		o.NewTLS = s.certificates.Client
	}
	return o
}

// Serve serves o and runs work beside it until ctx ends or one of them fails.
// Then it waits for both.
func (s *Server) Serve(ctx context.Context, o httpapi.HandlerOptions, work func(context.Context) error) error {
	apply(s.settings, &o)
	o.AllowPlain, o.Metrics, o.Logger = s.settings.Plain, s.Figures, s.log
	api, err := httpapi.NewHandler(o)
	if err != nil {
		return err
	}
	all := WithFigures(api, s.Figures, s.settings.Plain)
	if s.Console != nil {
		if all, err = console.New(all, s.consoleOptions(o)); err != nil {
			return err
		}
		s.log.Info("console", "url", s.URL+"/console/")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	if at := s.api.Addr().(*net.TCPAddr); s.settings.Plain && !at.IP.IsLoopback() {
		s.log.Warn("plain: other machines can reach this address, and callers are not identified; set tls_cert, tls_key and tls_ca, or listen at 127.0.0.1", "listen", at)
	}
	s.log.Info("listening", "url", s.settings.scheme()+"://"+s.api.Addr().String(), "others_use", s.URL)
	g.Go(func() error { return Serve(ctx, s.api, all, s.certificates, s.log) })
	if s.metrics != nil {
		open := http.NewServeMux()
		open.Handle("GET /metrics", s.Figures)
		open.Handle("GET /healthz", api)
		open.Handle("GET /readyz", api)
		s.log.Info("figures", "url", "http://"+s.metrics.Addr().String()+"/metrics")
		g.Go(func() error { return Serve(ctx, newDoor(s.metrics), open, nil, s.log) })
	}
	g.Go(func() error {
		defer stop() // what has done its work takes the servers with it
		if err := work(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	return g.Wait()
}

// consoleOptions are those of the console beside the calls of o.
func (s *Server) consoleOptions(o httpapi.HandlerOptions) console.Options {
	c := *s.Console
	c.Calls, c.Figures = o, s.Figures
	if u, err := url.Parse(s.URL); err == nil {
		c.Hosts = []string{u.Hostname()}
	}
	return c
}

// WithFigures serves figures at /metrics, to clients whose certificate was
// verified unless it is plain, and everything else by api.
func WithFigures(api http.Handler, figures *httpapi.Prometheus, plain bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if _, known := httpapi.CallerOf(r); !known && !plain {
			http.Error(w, "a client certificate is required; metrics_listen opens an address that requires none", http.StatusForbidden)
			return
		}
		figures.ServeHTTP(w, r)
	})
	return mux
}
