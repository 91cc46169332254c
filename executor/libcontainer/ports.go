//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// ports are the host ports that containers hold. Each is held by a socket that
// nobody can talk to, so that neither the host nor another backend takes it.
type ports struct {
	first, last uint16
	holders     map[uint16]holder
	next        uint16 // where the search goes on, so that ports rest before they come again
}

type holder struct {
	guid string
	fd   int // -1 if nothing holds it
}

// take reserves a host port. With hold nobody else can listen on it, as the
// packets for it go elsewhere; without, the container is to listen on it.
func (p *ports) take(guid string, hold bool) (uint16, bool) {
	if p.holders == nil {
		p.holders = make(map[uint16]holder)
		p.next = p.first
	}
	for range int(p.last) - int(p.first) + 1 {
		port := p.next
		if p.next++; p.next > p.last || p.next < p.first {
			p.next = p.first
		}
		if _, held := p.holders[port]; held {
			continue
		}
		fd, err := bindPort(port)
		if err != nil {
			continue
		}
		if !hold {
			unix.Close(fd)
			fd = -1
		}
		p.holders[port] = holder{guid, fd}
		return port, true
	}
	return 0, false
}

// bindPort takes a port for all addresses of both families.
func bindPort(port uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		if err = unix.Bind(fd, &unix.SockaddrInet6{Port: int(port)}); err == nil {
			return fd, nil
		}
		unix.Close(fd)
		if err != unix.EADDRNOTAVAIL {
			return -1, err
		}
	}
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: netip.IPv4Unspecified().As4()}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (p *ports) release(guid string) {
	for port, h := range p.holders {
		if h.guid == guid {
			if h.fd >= 0 {
				unix.Close(h.fd)
			}
			delete(p.holders, port)
		}
	}
}

func (p *ports) releaseAll() {
	for _, h := range p.holders {
		if h.fd >= 0 {
			unix.Close(h.fd)
		}
	}
	p.holders = nil
}

// makeEndpoint maps the ports of a container and says where it is.
func (b *Backend) makeEndpoint(c *container) (executor.Endpoint, error) {
	e := executor.Endpoint{Addresses: executor.Addresses{ExternalIP: b.options.ExternalIP}, SharesHostNetwork: b.options.HostNetwork}
	b.mu.Lock()
	for _, port := range c.spec.Ports {
		host, ok := b.ports.take(c.guid, !b.options.HostNetwork)
		if !ok {
			b.mu.Unlock()
			return e, &executor.BackendError{Kind: executor.ErrNoPort, GUID: c.guid,
				Detail: fmt.Sprintf("all ports from %d to %d are in use", b.ports.first, b.ports.last)}
		}
		e.Ports = append(e.Ports, executor.PortMapping{ContainerPort: port, HostPort: host})
	}
	b.mu.Unlock()
	c.mappings = e.Ports
	if b.network != nil {
		e.InternalIP = c.link.address()
		if err := b.network.publish(&c.link, e.Ports); err != nil {
			return e, fmt.Errorf("container %q: map its ports: %w", c.guid, err)
		}
	}
	return e, nil
}
