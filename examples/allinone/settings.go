package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// defaultListen is where diegoctl looks if nobody tells it.
const defaultListen = "127.0.0.1:8889"

// settings are what the flags say.
type settings struct {
	Cells    int    `name:"cells" default:"3" range:"1..32" help:"how many cells there are; they share what the host has"`
	Data     string `name:"data" help:"the directory for the database, the containers and the log (default diego-allinone where your programs keep their state)"`
	Listen   string `name:"listen" default:"127.0.0.1:8889" help:"where diegoctl reaches the HTTP API, without TLS and therefore on this machine only; port 0 takes any"`
	LRP      string `name:"lrp" help:"a JSON file with an LRP to run, too; if it has changed at the next start, that is rolled out"`
	NoSample bool   `name:"no_sample" help:"do not desire the sample app and task"`
	Backend  string `name:"backend" default:"auto" oneof:"auto libcontainer process" help:"what containers are: real ones take Linux and root, processes isolate nothing"`
}

// Check implements [daemon.Checker]. Whoever reaches the API runs what he
// likes.
func (s *settings) Check(report func(name, want string)) {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil || !isLoopback(host) {
		report("listen", "want an address of this machine alone, as there is no TLS: 127.0.0.1:PORT, [::1]:PORT or localhost:PORT")
	}
}

// data is the directory: that of the settings or, by default, where programs
// keep what they want to find again; for a user without a home a temporary one.
func (s *settings) data() string {
	if s.Data != "" {
		return s.Data
	}
	home, _ := os.UserHomeDir()
	if info, err := os.Stat(home); err != nil || !info.IsDir() {
		return filepath.Join(os.TempDir(), fmt.Sprintf("diego-allinone-%d", os.Getuid()))
	}
	return filepath.Join(cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state")), "diego-allinone")
}
