//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"os"
	"strconv"
	"strings"

	"github.com/diegosdk/diego/executor"
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
	text, err := os.ReadFile("/sys/class/net/" + w.name + "/statistics/" + name)
	if err != nil {
		return executor.Unknown
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return executor.Unknown
	}
	return n
}
