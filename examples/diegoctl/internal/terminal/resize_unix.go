//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

func windowChanges() (<-chan os.Signal, func()) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	return changes, func() { signal.Stop(changes) }
}
