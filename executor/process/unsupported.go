//go:build !unix

package process

import (
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// Options configure a Backend; see the documentation on a Unix system.
type Options struct {
	Dir                 string
	ExternalIP          string
	FirstPort, LastPort uint16
	SwitchUser          bool
}

// New fails: sessions and signals are those of Unix.
func New(Options) (executor.ContainerBackend, error) {
	return nil, fmt.Errorf("%w: plain processes need a Unix system", executor.ErrUnsupported)
}
