package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/fleetdir"
)

// A service is something that is served over HTTP, to those who have a
// certificate from the data directory. Each has an address and a certificate of
// its own, as daemons on different machines have.
type service struct {
	listener     net.Listener
	handler      http.Handler
	certificates *daemon.Certificates
}

// newService serves what o says as name, with roles.
func newService(l net.Listener, issuer *fleetdir.Issuer, name string, roles []httpapi.Role, o httpapi.HandlerOptions) (s service, err error) {
	s.listener = l
	units := make([]string, len(roles))
	for i, role := range roles {
		units[i] = "diego-" + string(role)
	}
	files, err := issuer.Server(name, units...)
	if err != nil {
		return s, err
	}
	settings := daemon.TLS{TLSCert: files.Cert, TLSKey: files.Key, TLSCA: files.CA}
	if s.certificates, err = settings.Certificates(o.Logger); err != nil {
		return s, err
	}
	s.handler, err = httpapi.NewHandler(o)
	return s, err
}

func (s service) url() string { return "https://" + s.listener.Addr().String() }

// serve returns when ctx has ended and nothing is being answered any more.
func (s service) serve(ctx context.Context, log *slog.Logger) {
	if err := daemon.Serve(ctx, s.listener, s.handler, s.certificates, log); err != nil {
		log.Error("the API failed", "err", err)
	}
}
