//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package hostport

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// claim takes a port for this process, or returns nil if somebody else has
// it. Nothing is mapped on these systems, so that occupy makes no difference.
func claim(port uint16, _ bool) io.Closer {
	// The files stay: who removed one would let two hold it.
	f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("diego-port-%d", port)), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || !free(port) {
		f.Close()
		return nil
	}
	return f
}
