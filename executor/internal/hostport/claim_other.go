//go:build unix && !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package hostport

import (
	"io"
	"sync"
)

// claims are those of this process. No other sees them.
var claims sync.Map // of uint16 to struct{}

type local uint16

// Close implements [io.Closer].
func (l local) Close() error {
	claims.Delete(uint16(l))
	return nil
}

// claim takes a port for this process, or returns nil if somebody else has
// it. Nothing is mapped on these systems, so that occupy makes no difference.
func claim(port uint16, _ bool) io.Closer {
	if _, taken := claims.LoadOrStore(port, struct{}{}); taken {
		return nil
	}
	if !free(port) {
		local(port).Close()
		return nil
	}
	return local(port)
}
