//go:build unix

package daemon

import (
	"io/fs"
	"os"
	"syscall"
)

// stranger is the user that a file belongs to, if that is not this process's.
func stranger(info fs.FileInfo) (uid uint32, is bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(s.Uid) == os.Geteuid() {
		return 0, false
	}
	return s.Uid, true
}

// letThrough has this process make directories that others may go through, as
// users of containers must, with any umask that it was started with. What is
// private is made so.
func letThrough() {
	const writing = 0o022
	syscall.Umask(writing)
}
