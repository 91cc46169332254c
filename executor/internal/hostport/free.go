//go:build unix && !linux

package hostport

import (
	"net"
	"strconv"
)

// free reports whether a process can listen on a port of the host now.
func free(port uint16) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(int(port))))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
