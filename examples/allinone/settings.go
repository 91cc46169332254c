package main

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"

	"github.com/diegosdk/diego/examples/allinone/sample"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/fleetdir"
)

// settings are what the flags say. Those of the daemons bbs and rep are in groups,
// except for leadership, certificates and where a cell is, which are given here.
type settings struct {
	Cells    int    `name:"cells" default:"3" range:"1..32" help:"how many cells there are; they share what the host has"`
	Data     string `name:"data" help:"the directory for the database, the containers and the log (default diego-allinone where your programs keep their state)"`
	Listen   string `name:"listen" default:"127.0.0.1:8889" help:"where the HTTP API is served, on this machine only, to the user of this process; diegoctl finds it in the data directory; port 0 takes any"`
	LRP      string `name:"lrp" help:"a YAML or JSON file with an LRP to run, too; if it has changed at the next start, that is rolled out, by default with instances that have been healthy for 10 s"`
	NoSample bool   `name:"no_sample" help:"do not desire the sample app and task"`
	Sync     string `name:"store_sync" default:"normal" oneof:"full normal" help:"what the database does for a power cut: full flushes each commit to the disk; with normal the newest commits may be undone, in order"`
	Identity bool   `name:"identity" help:"give each container a certificate and a key, of an authority in the data directory; definitions may then have certificate_properties"`
	Backend  string `name:"backend" default:"auto" oneof:"auto libcontainer process" help:"what containers are: real ones take Linux and root, processes isolate nothing"`

	daemon.Convergence `group:"convergence"`
	daemon.Restarts    `group:"instances"`
	daemon.Tasks       `group:"tasks and callbacks"`
	daemon.Placing     `group:"placement"`
	daemon.Subscribing `group:"subscriptions"`
	daemon.Upkeep      `group:"cells" prefix:"cell_"`
	daemon.Volumes     `group:"cells" prefix:"cell_"`
	daemon.LogForward  `group:"cells" prefix:"cell_"`
}

// Check implements [daemon.Checker].
func (s *settings) Check(report func(name, want string)) {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil || !isLoopback(host) {
		report("listen", "want an address of this machine alone, such as 127.0.0.1:PORT, [::1]:PORT or localhost:PORT")
	}
	s.CheckRestarts(report)
	s.CheckTasks(report)
	s.CheckPlacing(report)
	ofCells := func(name, want string) { report("cell_"+name, want) }
	s.CheckVolumes(ofCells)
	s.CheckLogForward(ofCells)
	if _, taken := s.VolumePlugins[sample.Driver]; taken {
		ofCells("volume_plugins", fmt.Sprintf("want another name than %q, which is that of the sample app's driver", sample.Driver))
	}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// data is the directory: that of the settings or that of this user.
func (s *settings) data() string { return cmp.Or(s.Data, fleetdir.Default()) }
