package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/console"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
)

func consoleCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "console", Short: "Show the fleet in a browser", RunE: p.asks(showConsole),
		Long: `Show the fleet in a browser on this machine: print a link and serve the console
until interrupted. The link works once, within 5 minutes; the browser may then do
what the certificate of diegoctl allows, for 12 hours at most.`,
		Example: "  diegoctl console\n  diegoctl console --listen 127.0.0.1:8080",
	}, []cli.Flag{
		{Name: "listen", Kind: &cli.Kind{Name: "ADDRESS"}, Default: "127.0.0.1:0", Help: "where to serve it, on this machine only; port 0 takes any"},
	})
}

// showConsole serves the console and makes the calls of its page.
func showConsole(c *call, r *remote) error {
	host, _, err := net.SplitHostPort(c.text("listen"))
	if err == nil {
		var ip netip.Addr
		if ip, err = netip.ParseAddr(host); err == nil && !ip.IsLoopback() {
			err = fmt.Errorf("other machines can reach %s", host)
		}
	}
	if err != nil {
		return cli.Wrong("--listen wants an address such as 127.0.0.1:8080: %v", err)
	}
	// The page would only show the same failure.
	if _, err := r.bbs.Log(c.ctx); err != nil {
		return err
	}
	calls := httpapi.HandlerOptions{
		BBS: r.bbs, Convergence: r.convergence, Auctioneer: r.auctioneer, Ready: r.ready, AllowPlain: true,
	}
	api, err := httpapi.NewHandler(calls)
	if err != nil {
		return err
	}
	pages, err := console.New(api, console.Options{Calls: calls, Cell: r.cell, Figures: r.figures, Caller: r.caller})
	if err != nil {
		return err
	}
	l, err := daemon.Listen("listen", c.text("listen"))
	if err != nil {
		return err
	}
	door := console.NewDoor(pages, l.Addr().String())
	link := map[string]string{"link": door.Link()}
	if err := c.Say(link, "%s\n\nOpen this link in a browser on this machine. It works once, in the next 5 minutes.\nCtrl-C ends the console.", door.Link()); err != nil {
		return err
	}
	if err := daemon.Serve(c.ctx, l, door, nil, slog.New(slog.DiscardHandler)); c.ctx.Err() == nil {
		return err
	}
	return nil // the only way to end it is no failure
}
