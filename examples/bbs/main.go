// Command bbs is the control plane as a daemon: desired and actual LRPs, tasks,
// domains, events, convergence and callbacks over HTTP with mutual TLS, in
// SQLite, PostgreSQL or MySQL. Any number of them share a database: one leads,
// and the others answer reads and take over.
//
// It places work by itself, or leaves that to the auctioneers that it is told
// of. Certificates for a try are made by scripts/certs:
//
//	go run ./examples/bbs --store sqlite:diego.db \
//		--tls-cert certs/bbs.pem --tls-key certs/bbs-key.pem --tls-ca certs/ca.pem
package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/console"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
)

type settings struct {
	daemon.Logging
	daemon.Endpoint
	daemon.Store
	daemon.StoreKeys
	daemon.Leading
	Auctioneers []string `name:"auctioneers" help:"base URLs of the auctioneers; without any, this process places work, with a certificate that has the role of an auctioneer too"`
	daemon.Convergence
	daemon.Restarts
	daemon.Tasks
	daemon.Placing
	daemon.Subscribing
	daemon.Callbacks
	Console bool `name:"console" help:"serve the console, pages for browsers, at /console/ of the API; docs/console.md says who may do what there"`
}

// Check implements daemon.Checker.
func (s *settings) Check(report func(name, want string)) {
	s.Endpoint.Check(report)
	s.CheckURLs(report, "auctioneers", s.Auctioneers)
	s.CheckStore(report)
	s.CheckStoreKeys(report)
	s.CheckRestarts(report)
	s.CheckTasks(report)
	s.CheckPlacing(report)
	s.CheckCallbacks(report)
}

func main() {
	s := &settings{Endpoint: daemon.Endpoint{Listen: "127.0.0.1:8889"}}
	daemon.Main("bbs", "the control plane, of which one of several leads", s, s.run)
}

func (s *settings) run(ctx context.Context, log *slog.Logger) error {
	who := httpapi.Identity{Roles: []httpapi.Role{httpapi.BBSRole}}
	if len(s.Auctioneers) == 0 {
		who.Roles = append(who.Roles, httpapi.AuctioneerRole)
	}
	server, err := s.Endpoint.Open(who, log)
	if err != nil {
		return err
	}
	defer server.Close()
	keys, err := s.Keys()
	if err != nil {
		return err
	}
	store, err := s.Store.Open(ctx, keys, log)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := s.CheckSealed(ctx, store); err != nil {
		return err
	}
	o := daemon.PlaneOptions(&s.Convergence, &s.Restarts, &s.Tasks, &s.Placing)
	o.Store, o.Dial, o.Owner, o.Address = store, httpapi.Dial(server.Client()), s.Owner(server.URL), server.URL
	o.LeaderTTL, o.MaxClockSkew, o.Metrics, o.Logger = s.LeaderTTL, s.MaxClockSkew, server.Figures, log
	o.CallbackAllow, o.CallbackDeny = s.Callbacks.Networks()
	if len(s.Auctioneers) > 0 {
		client := server.Client()
		client.Addresses, client.Find = s.Auctioneers, bbs.FindLeader(store, "auctioneer")
		if o.Auctioneer, err = httpapi.NewRemoteAuctioneer(client); err != nil {
			return err
		}
	}
	plane, err := diego.New(o)
	if err != nil {
		return err
	}
	if s.Console {
		server.Console = &console.Options{Cell: httpapi.DialCell(server.Client())}
	}
	return server.Serve(ctx, s.Limit(httpapi.HandlerOptions{
		BBS: plane.BBS, Convergence: plane, Locks: bbs.NewLocks(store), Auctioneer: plane, Ready: plane.Ready,
	}), func(ctx context.Context) error {
		var rotation sync.WaitGroup
		rotation.Go(func() { s.Rotate(ctx, store, log) })
		defer rotation.Wait()
		return plane.Run(ctx)
	})
}
