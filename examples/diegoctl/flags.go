package main

import (
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/lrp"
)

var globalFlags = []cli.Flag{
	{Name: "bbs", Kind: &cli.Kind{Name: "URL"}, Env: "DIEGO_BBS",
		Help: "address of the BBS; several with commas between them, for an active one and its standbys (without it: your own allinone)"},
	{Name: "data", Kind: cli.Directory, Env: "DIEGO_DATA",
		Help: "without --bbs, the data directory of the allinone to ask (without it: that of your own one)"},
	{Name: "auctioneer", Kind: &cli.Kind{Name: "URL"}, Env: "DIEGO_AUCTIONEER",
		Help: "address of the auctioneer, like --bbs; for plan (without it: the address of the BBS)"},
	{Name: "cert", Kind: cli.File, Env: "DIEGO_CERT", Help: "the client's certificate, PEM"},
	{Name: "key", Kind: cli.File, Env: "DIEGO_KEY", Help: "the key of the certificate, PEM"},
	{Name: "ca", Kind: cli.File, Env: "DIEGO_CA", Help: "the certificates that servers are checked against, PEM"},
	{Name: "timeout", Kind: cli.Duration, Env: "DIEGO_TIMEOUT", Default: "15s", Help: "how long a server may take to answer"},
	{Name: "output", Short: "o", Kind: cli.OneOf("FORMAT", "table", "json"), Env: "DIEGO_OUTPUT", Default: "table",
		Help: "table for people, or json: one document per line for programs"},
	{Name: "color", Kind: cli.OneOf("WHEN", "auto", "always", "never"), Default: "auto",
		Help: "colour: auto means on a terminal unless NO_COLOR is set"},
}

// watchFlags are those of commands that show a state.
var watchFlags = []cli.Flag{
	{Name: "watch", Kind: cli.Switch, Help: "show it again whenever it changes, until interrupted"},
	{Name: "interval", Kind: cli.Duration, Default: "2s", Help: "with --watch, the longest time between two looks"},
}

// waitFlags are those of commands that can wait until their work is done.
var waitFlags = []cli.Flag{
	{Name: "wait", Kind: cli.Switch, Help: "wait until it is done"},
	{Name: "for", Kind: cli.Duration, Default: "5m", Help: "with --wait, how long to wait at most"},
}

// minHealthyFlags are those of commands that desire a process.
var minHealthyFlags = []cli.Flag{
	{Name: "min-healthy", Kind: cli.Duration, Default: "10s",
		Help: "how long a new instance must run and be ready before it replaces an old one; the spec file's rollout_policy counts without this flag"},
}

// rolloutPolicy is the policy p of a spec file, changed by --min-healthy. Where the
// file has none, the default of the flag makes one.
func (c *call) rolloutPolicy(p *lrp.RolloutPolicy) *lrp.RolloutPolicy {
	if p != nil && !c.given("min-healthy") {
		return p
	}
	policy := lrp.RolloutPolicy{}
	if p != nil {
		policy = *p
	}
	policy.MinHealthy = c.duration("min-healthy")
	if policy == (lrp.RolloutPolicy{}) {
		return nil
	}
	return &policy
}

func (p *process) domainFlags() []cli.Flag {
	return []cli.Flag{{Name: "domain", Kind: &cli.Kind{Name: "DOMAIN", Values: p.domainNames()}, Many: true, Help: "only what is in this domain; may be repeated"}}
}

func (p *process) cellFlags() []cli.Flag {
	return []cli.Flag{{Name: "cell", Kind: &cli.Kind{Name: "CELL", Values: p.cellIDs()}, Many: true, Help: "only what is on this cell; may be repeated"}}
}
