//go:build linux && cgo && (amd64 || arm64)

// Package ids gives each container uids and gids of its own. A [Range] of the
// host's ids and a user namespace that maps them belong to one container at a
// time; a [Pool] gives them out. [FindUser] finds a container's user by name.
package ids

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Range is the uids and gids of a container. They are a range of the host's,
// which no other container has, and a user namespace that maps them. So
// the kernel applies its limits by uid to each container. The zero
// value stands for the host's own ids, which containers then share.
type Range struct {
	First uint32   // the host's number of the container's 0
	Size  uint32   // how many there are, from First on
	Space *os.File // the user namespace; it belongs to the Pool
}

// Own reports whether the ids are a range of their own.
func (r Range) Own() bool { return r.Space != nil }

// Has reports whether a number is one of a container's ids.
func (r Range) Has(id uint32) bool { return !r.Own() || id < r.Size }

// Host returns what the host calls an id of the container.
func (r Range) Host(id uint32) int { return int(r.First + id) }

// Path is where other processes find the user namespace while this one runs.
func (r Range) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.Space.Fd()) }

// As calls f so that what it makes belongs to a user of the container. Root of
// the host can make no file in a mount that maps the container's ids alone.
// Only what f does in its own goroutine counts; see OnOwnThread.
func (r Range) As(uid, gid uint32, f func() error) error {
	return OnOwnThread(func() error {
		if !r.Own() {
			return f()
		}
		for _, set := range []struct{ call, id uintptr }{
			{unix.SYS_SETFSGID, uintptr(r.Host(gid))}, {unix.SYS_SETFSUID, uintptr(r.Host(uid))},
		} {
			unix.RawSyscall(set.call, set.id, 0, 0)
			if now, _, _ := unix.RawSyscall(set.call, ^uintptr(0), 0, 0); now != set.id {
				return fmt.Errorf("make files as user %d of a container: %w", uid, unix.EPERM)
			}
		}
		if err := keepCapabilities(); err != nil {
			return err
		}
		return f()
	})
}
