//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package daemon

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// lockFile locks a file for this process, until the process ends or closes it.
// taken is true if another process has the lock.
func lockFile(f *os.File) (taken bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err
}

// gone reports whether a process has ended, even if its parent has not been told yet.
func gone(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // on Linux
	_, state, _ := strings.Cut(string(stat), ") ")            // its name has at most 15 bytes, and is ours
	return strings.HasPrefix(state, "Z ") || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// bootID changes with every start of the system.
const bootID = "/proc/sys/kernel/random/boot_id"

// lockPlace identifies the lock of a locked file: of two processes that see the
// same place, at most one has the lock. It is "" if that is not known.
func lockPlace(f *os.File) string {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return ""
	}
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("boot %s device %d inode %d", strings.TrimSpace(string(boot)), stat.Dev, stat.Ino)
}
