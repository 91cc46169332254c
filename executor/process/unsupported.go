//go:build !unix

package process

import (
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// Backend is an [executor.ContainerBackend] on Unix systems, whose methods may be
// called concurrently. On this system New fails, so there is none.
type Backend struct{ executor.ContainerBackend }

// New fails: sessions and signals are those of Unix.
func New(o Options) (*Backend, error) {
	if _, err := o.orDefault(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: plain processes need a Unix system", executor.ErrUnsupported)
}
