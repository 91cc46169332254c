//go:build unix

package daemon

import (
	"io/fs"
	"os"
	"syscall"
)

// stranger returns the owner of a file, if that is another user than this
// process's.
func stranger(info fs.FileInfo) (uid uint32, is bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(s.Uid) == os.Geteuid() {
		return 0, false
	}
	return s.Uid, true
}
