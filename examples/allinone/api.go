package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/internal/daemon"
)

// A service is something that is served over HTTP. Each has an address of its
// own, as daemons on different machines have.
type service struct {
	listener net.Listener
	handler  http.Handler
}

func newService(l net.Listener, o diego.HandlerOptions) (service, error) {
	o.AllowPlain = true // settings.Check sees to it that only this machine is served
	handler, err := diego.NewHandler(o)
	return service{l, localOnly(handler)}, err
}

func (s service) url() string { return "http://" + s.listener.Addr().String() }

// serve returns when ctx has ended and nothing is being answered any more.
func (s service) serve(ctx context.Context, log *slog.Logger) {
	if err := daemon.Serve(ctx, s.listener, s.handler, nil, log); err != nil {
		log.Error("the API failed", "err", err)
	}
}

// localOnly refuses what a browser sends for a page of somebody else: such a
// page reaches this machine, too, under a name that it has made up.
func localOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if r.Header.Get("Origin") != "" || !isLoopback(host) {
			http.Error(w, "only programs on this machine are served, by the names 127.0.0.1, [::1] and localhost", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
