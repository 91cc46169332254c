//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package daemon

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes a file for this process, until it ends or closes it. It says
// whether it is another process that keeps it from doing so.
func lockFile(f *os.File) (taken bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err
}
