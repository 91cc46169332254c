package main

import (
	"fmt"
	"strconv"

	"github.com/diegosdk/diego/storage"
)

// This file holds the commands about domains.

func domains(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
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
	v := &view{heading: []string{"DOMAIN", "FRESH", "EXPIRES", "PROCESSES", "SO"}, empty: "there is no domain"}
	for _, d := range list {
		fresh, so := cell{"yes", green}, "instances that are not desired are stopped"
		expires := "never"
		switch {
		case !d.Known:
			expires = "-"
		case !d.ExpiresAt.IsZero() && d.Fresh:
			expires = "in " + short(d.ExpiresAt.Sub(c.now()))
		case !d.ExpiresAt.IsZero():
			expires = age(c.now(), d.ExpiresAt) + " ago"
		}
		if !d.Fresh {
			fresh, so = cell{"no", yellow}, "nothing is stopped for not being desired"
		}
		v.add(d, text(d.Domain), fresh, text(expires), text(strconv.Itoa(processes[d.Domain])), text(so))
	}
	return c.show(v)
}

func domainUpsert(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	name, ttl := c.arg(0), c.duration("ttl")
	if err := r.bbs.UpsertDomain(c.ctx, name, ttl); err != nil {
		return err
	}
	until := "for ever"
	if ttl > 0 {
		until = fmt.Sprintf("for %s", short(ttl))
	}
	return c.say(done{Done: "fresh", Domain: name}, "domain %s is fresh %s", name, until)
}
