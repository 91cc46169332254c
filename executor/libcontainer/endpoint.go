//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// makeEndpoint maps the ports of a container and says where it is.
func (b *Backend) makeEndpoint(c *container) (executor.Endpoint, error) {
	e := executor.Endpoint{Addresses: executor.Addresses{ExternalIP: b.options.ExternalIP}, SharesHostNetwork: b.options.HostNetwork}
	var err error
	if e.Ports, err = b.ports.Map(c.guid, c.spec.Ports, !b.options.HostNetwork); err != nil {
		return e, err
	}
	c.mappings = e.Ports
	if b.network != nil {
		e.InternalIP = c.link.address()
		if err := b.network.publish(&c.link, e.Ports); err != nil {
			return e, fmt.Errorf("container %q: map its ports: %w", c.guid, err)
		}
	}
	return e, nil
}
