package hostport

import (
	"fmt"
	"io"
	"syscall"
)

// A socket is only bound: nobody can connect to it.
type socket int

// Close implements [io.Closer].
func (s socket) Close() error { return syscall.Close(int(s)) }

// claim takes a port for this process, or returns nil if somebody else has it.
func claim(port uint16, occupy bool) io.Closer {
	name, err := bind(syscall.AF_UNIX, &syscall.SockaddrUnix{Name: fmt.Sprintf("@diego-port-%d", port)})
	if err != nil {
		return nil
	}
	// Programs that are not backends claim nothing, so one has to try. An
	// address that may be reused is refused only if somebody listens there or
	// occupies it, and keeps nobody from listening meanwhile.
	options := []int{syscall.SO_REUSEADDR}
	if occupy {
		options = nil
	}
	tried, err := bindAll(port, options...)
	if err != nil {
		name.Close()
		return nil
	}
	if occupy { // which everybody sees from now on
		name.Close()
		return tried
	}
	tried.Close()
	return name
}

// bindAll binds a port at all addresses of both families.
func bindAll(port uint16, options ...int) (socket, error) {
	s, err := bind(syscall.AF_INET6, &syscall.SockaddrInet6{Port: int(port)}, options...)
	if err == syscall.EAFNOSUPPORT || err == syscall.EADDRNOTAVAIL { // a host without IPv6
		s, err = bind(syscall.AF_INET, &syscall.SockaddrInet4{Port: int(port)}, options...)
	}
	return s, err
}

func bind(family int, address syscall.Sockaddr, options ...int) (socket, error) {
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for _, o := range options {
		if err == nil {
			err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, o, 1)
		}
	}
	if err == nil && family == syscall.AF_INET6 {
		err = syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = syscall.Bind(fd, address)
	}
	if err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return socket(fd), nil
}
