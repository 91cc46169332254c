package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/storage"
)

func domainsCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{Use: "domains", Short: "List domains, and whether they are fresh", RunE: p.asks(domains)}, watchFlags)
}

func domainCommands(p *process) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "domain", Short: "Sets of processes that are desired together"},
		cli.With(&cobra.Command{
			Use: "upsert NAME", Short: "Say that what is desired in a domain is complete", RunE: p.asks(domainUpsert), ValidArgsFunction: cli.Completes(p.domainNames(), nil),
			Long: `Say that what is desired in a domain is complete. Only in a fresh domain are
instances stopped that are not desired.`,
		}, []cli.Flag{{Name: "ttl", Kind: cli.Duration, Default: "0s", Help: "for how long; 0s is for ever"}}),
	)
}

func domains(c *call, r *remote) error {
	list, err := r.bbs.Domains(c.ctx)
	if err != nil {
		return err
	}
	processes := map[string]int{}
	for d, err := range r.bbs.Deployments(c.ctx, storage.DeploymentFilter{Bare: true}) {
		if err != nil {
			return err
		}
		processes[d.Domain]++
	}
	v := &show.View{Heading: []string{"DOMAIN", "FRESH", "EXPIRES", "PROCESSES", "SO"}, Empty: "there is no domain"}
	for _, d := range list {
		fresh, so := show.Green.Of("yes"), "instances that are not desired are stopped"
		expires := "never"
		switch {
		case !d.Known:
			expires = "-"
		case !d.ExpiresAt.IsZero() && d.Fresh:
			expires = "in " + show.Short(d.ExpiresAt.Sub(c.now()))
		case !d.ExpiresAt.IsZero():
			expires = show.Age(c.now(), d.ExpiresAt) + " ago"
		}
		if !d.Fresh {
			fresh, so = show.Yellow.Of("no"), "nothing is stopped for not being desired"
		}
		v.Add(d, show.Text(d.Domain), fresh, show.Text(expires), show.Text(strconv.Itoa(processes[d.Domain])), show.Text(so))
	}
	return c.Show(v)
}

func domainUpsert(c *call, r *remote) error {
	name, ttl := c.arg(0), c.duration("ttl")
	if err := r.bbs.UpsertDomain(c.ctx, name, ttl); err != nil {
		return err
	}
	until := "for ever"
	if ttl > 0 {
		until = fmt.Sprintf("for %s", show.Short(ttl))
	}
	return c.Say(done{Done: "fresh", Domain: name}, "domain %s is fresh %s", name, until)
}
