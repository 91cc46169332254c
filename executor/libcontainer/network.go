//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/network"
)

// makeLink makes the network of a container before anything of it runs.
func (b *Backend) makeLink(_ context.Context, c *container) error {
	if b.network == nil {
		return nil
	}
	c.link.GUID = c.guid
	defer b.raiseIfSlow()()
	return b.network.Make(&c.link, c.spec.EgressRules)
}

// makeEndpoint maps the ports of a container and says where it is.
func (b *Backend) makeEndpoint(c *container) (executor.Endpoint, error) {
	e := executor.Endpoint{Addresses: executor.Addresses{ExternalIP: b.options.ExternalIP}, SharesHostNetwork: b.options.HostNetwork}
	var err error
	if e.Ports, err = b.ports.Map(c.guid, c.spec.Ports, !b.options.HostNetwork); err != nil {
		return e, err
	}
	c.mappings = e.Ports
	if b.network != nil {
		e.InternalIP = c.link.Address()
		if err := b.network.Publish(&c.link, e.Ports); err != nil {
			return e, fmt.Errorf("container %q: map its ports: %w", c.guid, err)
		}
	}
	return e, nil
}

// networkFiles are what a process with a network of its own needs to know.
func (c *container) networkFiles() []executor.File {
	name := hostname(c.guid)
	files := []executor.File{
		{Path: "/etc/hostname", Content: name + "\n"},
		{Path: "/etc/hosts", Content: "127.0.0.1 localhost\n" + c.link.Address() + " " + name + "\n"},
	}
	// A resolver on the host's loopback is not there for a container; systemd
	// keeps the real list elsewhere.
	for _, source := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		text, err := os.ReadFile(source)
		if err == nil && len(text) > 0 && !strings.Contains(string(text), "nameserver 127.") {
			return append(files, executor.File{Path: "/etc/resolv.conf", Content: string(text)})
		}
	}
	return files
}

// Dial implements [executor.ContainerBackend]. It connects from within, so
// that a process that listens on the container's loopback is reached too.
func (b *Backend) Dial(ctx context.Context, guid string, containerPort uint16) (io.ReadWriteCloser, error) {
	c, err := b.find(guid)
	if err != nil {
		return nil, err
	}
	if b.options.HostNetwork {
		for _, m := range c.mappings {
			if m.ContainerPort == containerPort {
				var d net.Dialer
				return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", m.HostPort))
			}
		}
		return nil, &executor.BackendError{Kind: executor.ErrNoPort, GUID: guid, Detail: fmt.Sprintf("container port %d is not mapped", containerPort)}
	}
	fd, err := c.socket()
	if err != nil {
		return nil, err
	}
	return network.Dial(ctx, fd, containerPort)
}

// socket makes a TCP socket in the network of the container.
func (c *container) socket() (int, error) {
	if err := c.enter(); err != nil {
		return -1, err
	}
	defer c.life.RUnlock()
	return c.link.Socket()
}
