//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/kernelfile"
)

// Traffic is how many bytes a container has received and sent: executor.Unknown if
// that is not known.
func (l *Link) Traffic() (received, sent int64) {
	if l.wire == nil {
		return executor.Unknown, executor.Unknown
	}
	received, sent = l.wire.traffic()
	if received < l.received || sent < l.sent {
		return executor.Unknown, executor.Unknown
	}
	return received - l.received, sent - l.sent
}

// traffic counts what all containers of the wire have received and sent. What the
// host's end sends is what the container receives.
func (w *wire) traffic() (received, sent int64) {
	return w.counter("tx_bytes"), w.counter("rx_bytes")
}

func (w *wire) counter(name string) int64 {
	n, there := kernelfile.Number("/sys/class/net/"+w.name+"/statistics/"+name, "")
	if !there {
		return executor.Unknown
	}
	return n
}
