//go:build linux && cgo && (amd64 || arm64)

// Package ids gives each container uids and gids of its own. A [Range] of the
// host's ids and a user namespace that maps them belong to one container at a
// time; a [Pool] gives them out. [FindUser] finds a container's user by name.
package ids

import (
	"fmt"
	"os"
	"unsafe"

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
		if err := r.setFileIDs(uid, gid); err != nil {
			return err
		}
		if err := keepCapabilities(); err != nil {
			return err
		}
		return f()
	})
}

// AsUser calls f in the rights that a user of the container has in its files: with
// the user's ids and groups and without a capability. Only what f does in its own
// goroutine counts; see OnOwnThread.
func (r Range) AsUser(u User, f func() error) error { return r.as(u, 0, f) }

// AsMounter is AsUser of root in the container, except that f may mount.
func (r Range) AsMounter(f func() error) error { return r.as(User{}, 1<<unix.CAP_SYS_ADMIN, f) }

func (r Range) as(u User, capabilities uint32, f func() error) error {
	return OnOwnThread(func() error {
		groups := make([]uint32, len(u.Groups)+1) // one more, so that there is a first
		for i, g := range u.Groups {
			groups[i] = uint32(r.Host(g))
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(u.Groups)), uintptr(unsafe.Pointer(&groups[0])), 0); errno != 0 {
			return os.NewSyscallError("setgroups", errno)
		}
		if err := r.setFileIDs(u.UID, u.GID); err != nil {
			return err
		}
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		data[0].Effective, data[0].Permitted = capabilities, capabilities
		if err := unix.Capset(&header, &data[0]); err != nil {
			return os.NewSyscallError("capset", err)
		}
		return f()
	})
}

// setFileIDs makes this thread a user of the container where files are concerned.
func (r Range) setFileIDs(uid, gid uint32) error {
	for _, set := range []struct{ call, id uintptr }{
		{unix.SYS_SETFSGID, uintptr(r.Host(gid))}, {unix.SYS_SETFSUID, uintptr(r.Host(uid))},
	} {
		unix.RawSyscall(set.call, set.id, 0, 0)
		if now, _, _ := unix.RawSyscall(set.call, ^uintptr(0), 0, 0); now != set.id {
			return fmt.Errorf("work with files as user %d of a container: %w", uid, unix.EPERM)
		}
	}
	return nil
}
