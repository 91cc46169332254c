// Command auctioneer places work on cells, for control planes that leave it to
// another process. Any number of them share the control planes' database: one
// leads, and the others take over.
//
//	go run ./examples/auctioneer --store sqlite:diego.db --bbs https://127.0.0.1:8889 \
//		--tls-cert certs/auctioneer.pem --tls-key certs/auctioneer-key.pem --tls-ca certs/ca.pem
package main

import (
	"context"
	"log/slog"

	"github.com/diegosdk/diego/auction/auctioneer"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
)

type settings struct {
	daemon.Logging
	daemon.Endpoint
	daemon.Store
	daemon.Leading
	BBS []string `name:"bbs" required:"true" help:"base URLs of the control planes"`
	daemon.Placing
}

// Check implements daemon.Checker.
func (s *settings) Check(report func(name, want string)) {
	s.Endpoint.Check(report)
	s.CheckURLs(report, "bbs", s.BBS)
	s.CheckStore(report)
	s.CheckPlacing(report)
}

func main() {
	s := &settings{Endpoint: daemon.Endpoint{Listen: "127.0.0.1:9016"}}
	daemon.Main("auctioneer", "places work on cells; one of several leads", s, s.run)
}

func (s *settings) run(ctx context.Context, log *slog.Logger) error {
	server, err := s.Endpoint.Open(httpapi.Identity{Roles: []httpapi.Role{httpapi.AuctioneerRole}}, log)
	if err != nil {
		return err
	}
	defer server.Close()
	store, err := s.Store.Open(ctx, nil, log) // leases are not encrypted
	if err != nil {
		return err
	}
	defer store.Close()
	client := server.Client()
	client.Addresses, client.Find = s.BBS, bbs.FindLeader(store, "bbs")
	remote, err := httpapi.NewRemoteBBS(client)
	if err != nil {
		return err
	}
	auctioneer, err := auctioneer.New(auctioneer.Options{
		Store: store, BBS: remote, Dial: httpapi.Dial(server.Client()), Auction: s.Auction(),
		Owner: s.Owner(server.URL), Address: server.URL, LeaderTTL: s.LeaderTTL, MaxClockSkew: s.MaxClockSkew, Metrics: server.Figures, Logger: log,
	})
	if err != nil {
		return err
	}
	return server.Serve(ctx, httpapi.HandlerOptions{Auctioneer: auctioneer, Ready: auctioneer.Ready}, auctioneer.Run)
}
