package process

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
)

// Options configure a Backend. They are a plain value.
type Options struct {
	// Dir holds the containers' directories. It belongs to one Backend at a
	// time and is made if missing. Empty is an error: what lies there is
	// removed.
	Dir string
	// ExternalIP is the address at which ports are reached from outside;
	// empty means 127.0.0.1.
	ExternalIP string
	// FirstPort and LastPort bound the host ports, both included; 0 means
	// DefaultFirstPort and DefaultLastPort.
	FirstPort, LastPort uint16
	// SwitchUser runs every process as the user that it asks for, which takes
	// root. Otherwise the wish is ignored.
	SwitchUser bool
	// Logger receives what a stop could not find out; nil discards it.
	Logger *slog.Logger
}

// The default port range lies above the ports that systems give to outgoing
// connections.
const (
	DefaultFirstPort = 61001
	DefaultLastPort  = 65535
)

func (o Options) orDefault() (Options, error) {
	if o.Dir == "" {
		return o, fmt.Errorf("process: Options.Dir is empty; name a directory for the containers")
	}
	o.ExternalIP = cmp.Or(o.ExternalIP, "127.0.0.1")
	o.FirstPort = cmp.Or(o.FirstPort, DefaultFirstPort)
	o.LastPort = cmp.Or(o.LastPort, DefaultLastPort)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FirstPort > o.LastPort {
		return o, fmt.Errorf("process: Options.FirstPort %d is above LastPort %d", o.FirstPort, o.LastPort)
	}
	if o.SwitchUser && os.Geteuid() != 0 {
		return o, fmt.Errorf("process: Options.SwitchUser needs root; run as root or leave it off")
	}
	return o, nil
}
