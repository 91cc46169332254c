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

// ports are the host ports that containers hold.
type ports struct {
	first, last uint16
	holders     map[uint16]string
	next        uint16 // where the search goes on, so that ports rest before they come again
}

// take reserves a host port that nobody listens on.
func (p *ports) take(guid string) (uint16, bool) {
	if p.holders == nil {
		p.holders = make(map[uint16]string)
		p.next = p.first
	}
	for range int(p.last) - int(p.first) + 1 {
		port := p.next
		if p.next++; p.next > p.last || p.next < p.first {
			p.next = p.first
		}
		if _, held := p.holders[port]; !held && free(port) {
			p.holders[port] = guid
			return port, true
		}
	}
	return 0, false
}

func (p *ports) release(guid string) {
	for port, holder := range p.holders {
		if holder == guid {
			delete(p.holders, port)
		}
	}
}

// free reports whether a process can listen on a port of the host now.
func free(port uint16) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(int(port))))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// allocate maps container ports to ports of the host.
func (b *Backend) allocate(guid string, wanted []uint16) ([]executor.PortMapping, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var mappings []executor.PortMapping
	for _, port := range wanted {
		host, ok := b.ports.take(guid)
		if !ok {
			return nil, &executor.BackendError{Kind: executor.ErrNoPort, GUID: guid,
				Detail: fmt.Sprintf("all ports from %d to %d are in use", b.ports.first, b.ports.last)}
		}
		mappings = append(mappings, executor.PortMapping{ContainerPort: port, HostPort: host})
	}
	return mappings, nil
}

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
