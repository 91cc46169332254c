//go:build unix

package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/diegosdk/diego/executor"
)

// Dial implements [executor.ContainerBackend].
func (b *Backend) Dial(ctx context.Context, guid string, containerPort uint16) (io.ReadWriteCloser, error) {
	c, err := b.find(guid)
	if err != nil {
		return nil, err
	}
	for _, m := range c.ports {
		if m.ContainerPort == containerPort {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(m.HostPort))))
		}
	}
	return nil, &executor.BackendError{Kind: executor.ErrNoPort, GUID: guid,
		Detail: fmt.Sprintf("container port %d is not mapped", containerPort)}
}
